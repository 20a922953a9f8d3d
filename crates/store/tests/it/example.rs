//! The example run opens without surprises, and everything that was planted in it can be found.

use rollyard_core::wire::rollout::decode;
use rollyard_store::catalog::{Catalog, Health};
use rollyard_store::example::{self, Example, SOURCES, STEPS};
use rollyard_store::places::{Places, Roots};
use rollyard_store::query::{Choice, Query};
use serde_json::Value;
use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

fn open() -> (tempfile::TempDir, Query) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("example");
    example::write(&data).unwrap();
    let specs = [data.display().to_string()];
    let catalog = Catalog::open(Places::new(Roots::Anywhere), &specs, &folder.path().join("cache")).unwrap();
    let query = Query::new(catalog);
    query.catalog().refresh(&|_| {}, &AtomicBool::new(false)).unwrap();
    (folder, query)
}

fn count(query: &Query, filter: &str) -> usize {
    query.rows(&Choice { filter: filter.to_owned(), sort: Vec::new() }).unwrap().len()
}

fn number(query: &Query, sql: &str) -> f64 {
    query.catalog().connect().unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn the_health_of_the_example_is_what_was_planted() {
    let (_folder, query) = open();
    let made = Example::make();
    let expected = Health {
        rows: made.rows,
        bad_rows: made.bad_rows,
        copies: made.copies,
        unclosed: made.unclosed,
        truncated: made.truncated,
        odd: made.odd,
        dead_groups: made.dead_groups,
        groups: made.groups,
        half_written: 0,
        unread_files: Vec::new(),
    };
    assert_eq!(query.catalog().health().unwrap(), expected);
    assert_eq!((made.rows, made.bad_rows, made.copies, made.odd, made.groups), (1923, 2, 1, 1, 240));
    let bytes: usize = made.files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 25_000_000, "{bytes} bytes");
}

#[test]
fn every_kind_of_rollout_in_the_example_is_found_by_a_filter() {
    let (_folder, query) = open();
    for (filter, least, most) in [
        ("step >= 1 AND step <= 60", 1920, 1920),
        ("data_source == \"math/gsm\"", 480, 480),
        ("status == \"trained\"", 1000, 1800),
        ("status == \"held\"", 20, 64),
        ("reason == \"no_variance\"", 80, 600),
        ("reason == \"stale_step\" AND lag >= 5", 16, 200),
        ("reason == \"filtered\" AND why contains \"too long\"", 20, 200),
        ("reason == \"hook_rejected\"", 8, 8),
        ("lag == 0", 300, 1200),
        ("lag == 4", 16, 200),
        ("mixed", 80, 300),
        ("unclosed AND NOT truncated", 20, 200),
        ("truncated", 30, 200),
        ("stop_reason == \"tool_calls\"", 10, 200),
        ("stop_reason == \"content_filter\" AND response_chars == 0", 1, 1),
        ("repetition > 0.9", 3, 3),
        ("message_count > 100", 1, 1),
        ("reward is null", 1, 1),
        ("odd", 1, 1),
        ("reward.correct == 0 AND reward > 0", 1, 1),
        ("leak", 1, 1),
        ("tampering", 1, 1),
        ("format_only", 1, 1),
        ("dead_group", 80, 600),
        ("length_ratio > 5", 1, 40),
        ("advantage > 1", 100, 900),
        ("tokens > 0", 1920, 1920),
    ] {
        let found = count(&query, filter);
        assert!((least..=most).contains(&found), "{filter}: {found}, and not {least} to {most}");
    }
}

#[test]
fn texts_that_were_planted_in_the_example_are_found_in_their_rollouts() {
    let (_folder, query) = open();
    for (condition, least, most) in [
        ("length(body) > 1000000", 1, 1),
        ("instr(body, 'reference_solution.py')", 1, 1),
        ("instr(body, 'conftest.py')", 1, 1),
        ("instr(response, '<|channel|>analysis')", 1, 1),
        ("instr(response, '<reasoning>')", 50, 400),
        ("instr(body, 'ToolTimeout')", 20, 200),
        ("instr(prompt, '强化学习')", 32, 32),
        ("instr(prompt, 'الذاكرة')", 32, 32),
        ("instr(prompt, '👩‍👩‍👧‍👦')", 32, 32),
    ] {
        let mut found = 0;
        let sql = format!("select id from rollouts where {condition}");
        let counted = query.sql(&sql, &mut |_, _| {
            found += 1;
            ControlFlow::Continue(())
        });
        counted.unwrap();
        assert!((least..=most).contains(&found), "{condition}: {found}, and not {least} to {most}");
    }
}

#[test]
fn the_example_learns_and_code_gets_worse_for_a_while() {
    let (_folder, query) = open();
    let mean = |what: &str| number(&query, &format!("select avg(reward) from rollouts where {what}"));
    assert!((0.1..0.3).contains(&mean("step <= 5")), "{}", mean("step <= 5"));
    assert!((0.75..0.95).contains(&mean("step > 52")), "{}", mean("step > 52"));
    let code = "data_source = 'code/unit-tests' and step between";
    assert!(mean(&format!("{code} 38 and 44")) + 0.2 < mean(&format!("{code} 30 and 37")));
    let chars = |steps: &str| {
        let of = "select avg(response_chars) from rollouts where data_source = 'chat/safety' and step";
        number(&query, &format!("{of} {steps}"))
    };
    assert!(chars("> 50") > 1.8 * chars("< 10"), "{} and {}", chars("> 50"), chars("< 10"));
}

#[test]
fn prompts_of_the_example_come_again_and_groups_are_of_eight() {
    let (_folder, query) = open();
    let prompts = number(&query, "select count(distinct prompt_hash) * 1.0 from rollouts");
    assert_eq!(prompts, 15.0 * SOURCES.len() as f64);
    let of_eight =
        "select count(*) * 1.0 from (select 1 from rollouts group by group_id having count(*) = 8)";
    assert_eq!(number(&query, of_eight), STEPS as f64 * SOURCES.len() as f64);
}

#[test]
fn half_of_the_example_has_tokens_and_all_of_them_are_read() {
    let made = Example::make();
    let (mut read, mut masked, mut mixed) = (0, 0, 0);
    for (_, lines) in &made.files {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(row) = serde_json::from_slice::<Value>(line) else { continue };
            let Some(texts) = row.get("token_texts").and_then(Value::as_array) else { continue };
            let rollout = decode(line).unwrap();
            assert_eq!(texts.len(), rollout.tokens().len());
            assert_eq!(row["entropies"].as_array().unwrap().len(), rollout.response_tokens().len());
            read += 1;
            masked += usize::from(rollout.sampled().spans().any(|(_, sampled)| !sampled));
            mixed += usize::from(rollout.versions().spans().count() > 1);
        }
    }
    assert!((900..=1000).contains(&read), "{read}");
    assert!(masked > 200 && mixed > 40, "{masked} have masked tokens, {mixed} mixed versions");
}

#[test]
fn writing_the_example_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    example::write(folder.path()).unwrap();
    let name = Example::make().files[0].0;
    let path = folder.path().join(name);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    example::write(folder.path()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    fs::write(&path, "cut off").unwrap();
    example::write(folder.path()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), Example::make().files[0].1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing half-written is left");
}
