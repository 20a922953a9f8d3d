//! Questions to a catalog of real files: pages, facets, curves, SQL, search, completion.

use rollyard_store::catalog::{Catalog, RowNo};
use rollyard_store::places::{Places, Roots};
use rollyard_store::query::{Choice, Found, Hit, Pattern, Query, QueryError, Sort, Wanted};
use rollyard_store::records::Channel;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn line(n: usize) -> String {
    let source = ["math/train", "coding/basic", "maze"][n % 3];
    let mut attributes = json!({"step": n / 10, "rollout_n": n, "sample_index": n % 10, "data_source": source,
        "experiment_name": "first", "validate": n % 10 == 9, "difficulty": if n.is_multiple_of(2) { json!("hard") } else { json!(n) }});
    attributes["reward"] = if n % 7 == 6 { Value::Null } else { json!((n % 4) as f64 / 2.0) };
    let messages = json!([
        {"role": "user", "content": format!("What is {n} + \"one\"?")},
        {"role": "assistant", "content": format!("<think>carry ü the {n}</think>It is {} / done", n + 1)},
    ]);
    let row = json!({"messages": messages, "attributes": attributes, "timestamp": "2026-01-16T11:33:10"});
    format!("{row}\n")
}

pub(super) fn write(path: &Path, rows: std::ops::Range<usize>) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(rows.map(line).collect::<String>().as_bytes()).unwrap();
}

pub(super) fn refresh(query: &Query) {
    query.catalog().refresh(&|_| {}, &AtomicBool::new(false)).unwrap();
}

pub(super) fn open(folder: &Path) -> Query {
    let specs = [folder.join("data").display().to_string()];
    let catalog = Catalog::open(Places::new(Roots::Anywhere), &specs, &folder.join("cache")).unwrap();
    let query = Query::new(catalog);
    refresh(&query);
    query
}

/// A hundred rollouts in two files.
pub(super) fn yard() -> (tempfile::TempDir, Query) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    write(&folder.path().join("data/a.jsonl"), 0..60);
    write(&folder.path().join("data/b.jsonl"), 60..100);
    let query = open(folder.path());
    (folder, query)
}

pub(super) fn choice(filter: &str, sort: &[(&str, bool)]) -> Choice {
    let sort = sort
        .iter()
        .map(|(field, descending)| Sort { field: (*field).into(), descending: *descending })
        .collect();
    Choice { filter: filter.into(), sort }
}

fn numbers(query: &Query, choice: &Choice) -> Vec<i64> {
    let page = query.page(choice, &["rollout_n".into()], 0..1000).unwrap();
    assert_eq!(page.total as usize, page.rows.len());
    page.rows.iter().map(|(_, values)| values[0].as_i64().unwrap()).collect()
}

#[test]
fn filters_choose_rows_by_columns_extras_and_functions() {
    let (_folder, query) = yard();
    type Holds = fn(usize) -> bool;
    let table: [(&str, Holds); 9] = [
        ("", |_| true),
        ("step == 3", |n| n / 10 == 3),
        ("reward > 0.5 AND data_source contains \"coding\"", |n| n % 7 != 6 && n % 4 >= 2 && n % 3 == 1),
        ("reward is null", |n| n % 7 == 6),
        ("validate and not step < 5", |n| n % 10 == 9 && n >= 50),
        ("difficulty == hard", |n| n % 2 == 0),
        ("attributes.difficulty > 90", |n| n % 2 == 0 || n > 90),
        ("length(data_source) == 4", |n| n % 3 == 2),
        ("source_file endswith b.jsonl and sample_index == 0", |n| n >= 60 && n % 10 == 0),
    ];
    for (filter, expected) in table {
        let expected: Vec<i64> = (0..100).filter(|n| expected(*n)).map(|n| n as i64).collect();
        assert_eq!(numbers(&query, &choice(filter, &[])), expected, "{filter}");
    }
}

#[test]
fn null_sorts_last_in_both_directions_and_ties_stay_in_order() {
    let (_folder, query) = yard();
    for descending in [false, true] {
        let found = numbers(&query, &choice("step < 2", &[("reward", descending), ("step", true)]));
        let mut expected: Vec<usize> = (0..20).collect();
        expected.sort_by_key(|n| {
            let reward = (n % 4) as i64;
            (
                n % 7 == 6,
                if n % 7 == 6 {
                    0
                } else if descending {
                    -reward
                } else {
                    reward
                },
                -((n / 10) as i64),
            )
        });
        assert_eq!(found, expected.iter().map(|n| *n as i64).collect::<Vec<_>>());
    }
}

#[test]
fn a_page_is_a_slice_with_ids_files_and_extras() {
    let (_folder, query) = yard();
    let columns = ["id", "source_file", "validate", "difficulty", "reward"].map(str::to_owned);
    let page = query.page(&choice("", &[("rollout_n", true)]), &columns, 2..4).unwrap();
    assert_eq!((page.total, page.rows.len()), (100, 2));
    let (row, values) = &page.rows[0];
    assert_eq!(values[0].as_str().unwrap().len(), 32);
    assert!(values[1].as_str().unwrap().ends_with("b.jsonl"));
    assert_eq!(values[2..], [json!(false), json!(97), Value::Null]);
    let id = format!("id == {}", values[0].as_str().unwrap());
    assert_eq!(query.rows(&choice(&id, &[])).unwrap()[..], [*row]);
    assert!(query.page(&choice("", &[]), &columns, 200..300).unwrap().rows.is_empty());
}

#[test]
fn appended_rows_are_there_with_the_next_question() {
    let (folder, query) = yard();
    let last = choice("step >= 9", &[("rollout_n", true)]);
    assert_eq!(numbers(&query, &last).len(), 10);
    write(&folder.path().join("data/b.jsonl"), 100..105);
    refresh(&query);
    assert_eq!(numbers(&query, &last)[..2], [104, 103]);
    fs::remove_file(folder.path().join("data/a.jsonl")).unwrap();
    refresh(&query);
    assert_eq!(numbers(&query, &choice("", &[])), (60..105).collect::<Vec<_>>());
}

#[test]
fn facets_count_values_and_give_ranges() {
    let (_folder, query) = yard();
    let fields = ["data_source", "reward", "validate", "difficulty"].map(str::to_owned);
    let facets = query.facets("step < 3", &fields, 3).unwrap();
    let counted = |i: usize| -> Vec<(Value, u64)> {
        facets[i].values.iter().map(|found| (found.value.clone(), found.count)).collect()
    };
    assert_eq!(counted(0), [(json!("coding/basic"), 10), (json!("math/train"), 10), (json!("maze"), 10)]);
    assert_eq!((facets[1].range, facets[1].distinct), (Some((0.0, 1.5)), 4));
    assert_eq!(counted(2), [(json!(false), 27), (json!(true), 3)]);
    assert_eq!((counted(3)[0].clone(), facets[3].distinct), ((json!("hard"), 15), 16));
}

#[test]
fn curves_have_a_point_for_every_step_and_series() {
    let (_folder, query) = yard();
    let points = query.steps("", None, 1.0).unwrap();
    assert_eq!(
        points.iter().map(|point| (point.step, point.n)).collect::<Vec<_>>(),
        (0..10).map(|s| (s, 10)).collect::<Vec<_>>()
    );
    let rewards: Vec<f64> = (0..10).filter(|n| n % 7 != 6).map(|n| f64::from(n % 4) / 2.0).collect();
    let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
    assert!((points[0].reward_mean.unwrap() - mean).abs() < 1e-12);
    assert_eq!((points[0].reward_min, points[0].reward_max), (Some(0.0), Some(1.5)));
    assert_eq!(points[0].n_prompts, 10);
    let series = query.steps("step < 2", Some("data_source"), 1.0).unwrap();
    let told: Vec<_> = series.iter().map(|p| (p.series.as_deref().unwrap(), p.step, p.n)).collect();
    assert_eq!(told[..2], [("coding/basic", 0, 3), ("coding/basic", 1, 4)]);
}

#[test]
fn sql_reads_and_never_writes() {
    let (_folder, query) = yard();
    let ask = |sql: &str| {
        let mut rows = Vec::new();
        let names = query.sql(sql, &mut |_, values| {
            rows.push(values.to_vec());
            ControlFlow::Continue(())
        });
        names.map(|names| (names, rows))
    };
    let (names, rows) =
        ask("select step, count(*) as n from rollouts group by step order by step limit 1").unwrap();
    assert_eq!((names, rows), (vec!["step".into(), "n".into()], vec![vec![json!(0), json!(10)]]));
    assert_eq!(
        ask("with x as (select 1 as a) select a, x'00ff' from x").unwrap().1,
        [[json!(1), json!("00ff")]]
    );
    assert_eq!(
        ask("select count(*) from rollouts where data_source regexp '^ma'").unwrap().1[0][0],
        json!(67)
    );
    assert!(!ask("explain select 1").unwrap().1.is_empty());
    for denied in [
        "delete from rows",
        "update rows set step = 1",
        "drop table rows",
        "attach 'x.db' as x",
        "pragma query_only = 0",
        "create temp table x (a)",
        "select load_extension('x')",
        "vacuum into 'x.db'",
        "begin",
    ] {
        match ask(denied) {
            Err(QueryError::Mistake(mistake)) => assert!(
                mistake.message.contains("only SELECT") || mistake.message.contains("not authorized"),
                "{denied}: {mistake}"
            ),
            other => panic!("{denied}: {other:?}"),
        }
    }
    let Err(QueryError::Mistake(mistake)) = ask("select rewrd from rollouts") else { panic!() };
    assert_eq!(
        (mistake.message.as_str(), mistake.at),
        ("no such column: rewrd; did you mean reward?", 7..12)
    );
    assert!(mistake.expected.contains(&"data_source".to_owned()));
    let Err(QueryError::Mistake(mistake)) = ask("select step from rollouts whre 1") else { panic!() };
    assert!(mistake.message.contains("syntax error"), "{mistake}");
    assert_eq!(mistake.at, 31..32);
}

#[test]
fn endless_sql_is_cancelled() {
    let (_folder, query) = yard();
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut seen = 0;
    let endless = "with recursive n(i) as (select 0 union all select i + 1 from n) select i from n where i < 3 or i < 0";
    let answer = query.sql_until(endless, &cancelled, &mut |_, _| {
        seen += 1;
        if seen == 3 {
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(answer, Err(QueryError::Cancelled)), "{answer:?}");
}

fn pattern(text: &str) -> Pattern {
    Pattern { text: text.into(), is_regex: false, ignore_case: false, channels: Vec::new() }
}

fn search(query: &Query, filter: &str, wanted: &Wanted) -> Vec<Hit> {
    let mut hits = Vec::new();
    let scanned = query
        .search_for(filter, wanted, &mut |found| {
            if let Found::Hit(hit) = found {
                hits.push(hit);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((scanned.rows_done, scanned.bytes_done), (scanned.rows, scanned.bytes));
    assert_eq!(scanned.hits as usize, hits.len());
    hits
}

#[test]
fn text_is_found_however_json_spells_it() {
    let (_folder, query) = yard();
    let all: Vec<RowNo> = query.rows(&choice("", &[])).unwrap().to_vec();
    let has = |pattern: Pattern| Wanted::Has(pattern);
    let regex = |text: &str| Pattern { is_regex: true, ..pattern(text) };
    let only = |channel, text: &str| Pattern { channels: vec![channel], ..pattern(text) };
    let table: Vec<(Wanted, Vec<usize>)> = vec![
        (has(pattern("What is 42 +")), vec![42]),
        (has(pattern("7 + \"one\"")), (7..100).step_by(10).collect()),
        (has(pattern("43 / done")), vec![42]),
        (has(Pattern { ignore_case: true, ..pattern("WHAT IS 5 ") }), vec![5]),
        (has(pattern("ü the 77")), vec![77]),
        (has(only(Channel::Reasoning, "What")), vec![]),
        (has(only(Channel::Reasoning, "the 12")), vec![12]),
        (has(regex(r"What is (3|4)1 ")), vec![31, 41]),
        (has(regex(r"\b99\b")), vec![98, 99]),
        (has(pattern("sample_index")), vec![]),
        (Wanted::All(vec![has(pattern("What is 8")), has(pattern("the 85"))]), vec![85]),
        (Wanted::Any(vec![has(pattern("is 20 +")), has(pattern("is 10 +"))]), vec![10, 20]),
        // The answer to 9 is 10, and to 99 it is 100.
        (
            Wanted::All(vec![has(pattern("is 1")), Wanted::Not(Box::new(has(regex("What is 1[0-9]? "))))]),
            vec![0, 9, 99],
        ),
    ];
    for (wanted, expected) in table {
        let rows: Vec<RowNo> = search(&query, "", &wanted).iter().map(|hit| hit.row).collect();
        let expected: Vec<RowNo> = expected.into_iter().map(|n| all[n]).collect();
        assert_eq!(rows, expected, "{wanted:?}");
    }
    let without = Wanted::Not(Box::new(Wanted::Has(pattern("What is"))));
    assert!(search(&query, "", &without).is_empty());
    assert_eq!(search(&query, "step == 3", &Wanted::Has(pattern("What is"))).len(), 10);
}

#[test]
fn a_hit_says_where_it_is() {
    let (_folder, query) = yard();
    let hits = search(&query, "rollout_n == 12", &Wanted::Has(pattern("the 12")));
    let [hit] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!((hit.message, hit.channel, hit.count_in_row), (1, Channel::Reasoning, 1));
    // The tag belongs to the text of its channel.
    assert_eq!(hit.range, "<think>carry ü ".chars().count().."<think>carry ü the 12".chars().count());
    assert_eq!(&hit.snippet[hit.in_snippet.clone()], "the 12");
}

#[test]
fn a_search_stops_when_it_is_told_to() {
    let (_folder, query) = yard();
    let mut hits = 0;
    let scanned = query
        .search("", &[pattern("What")], &mut |found| {
            hits += usize::from(matches!(found, Found::Hit(_)));
            if hits == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((hits, scanned.hits), (5, 5));
    let bad = Pattern { is_regex: true, ..pattern("a(") };
    let Err(QueryError::Mistake(mistake)) = query.search("", &[bad], &mut |_| ControlFlow::Continue(()))
    else {
        panic!()
    };
    assert!(mistake.message.contains("unclosed group"), "{mistake}");
}

#[test]
fn values_and_names_are_suggested_from_the_data() {
    let (_folder, query) = yard();
    let first = |text: &str| {
        let completion = query.complete(text, text.len()).unwrap();
        completion.suggestions.first().map(|found| (found.text.clone(), found.about.clone()))
    };
    assert_eq!(first("data_source == ma"), Some(("\"math/train\"".into(), "34 rollouts".into())));
    assert_eq!(first("diffic"), Some(("difficulty".into(), "an extra attribute".into())));
    assert_eq!(query.values("data_source", "cod", 5).unwrap()[0].count, 33);
    let Err(QueryError::Mistake(mistake)) = query.check("step > 1 and dificulty == 2") else { panic!() };
    assert_eq!((mistake.at, mistake.expected[0].as_str()), (13..22, "difficulty"));
}

#[test]
fn a_group_and_a_prompt_are_choices() {
    let (_folder, query) = yard();
    let row = query.rows(&choice("rollout_n == 5", &[])).unwrap()[0];
    for choice in [query.group(row).unwrap(), query.same_prompt(row).unwrap()] {
        assert_eq!(query.rows(&choice).unwrap()[..], [row], "{choice:?}");
    }
    assert!(query.group(RowNo(123_456)).is_err());
}
