//! Groups, histograms and two runs side by side.

use super::query::{choice, open, refresh, write, yard};
use rollyard_store::query::{GROUP_SORTS, Group, Query, QueryError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One rollout of a prompt at a step.
fn line(step: u64, prompt: &str, sample: u64, reward: Option<f64>, more: Value) -> String {
    let mut row = json!({
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt},
            {"role": "assistant", "content": "x".repeat(10 * (1 + sample as usize))}],
        "attributes": {"step": step, "sample_index": sample, "reward": reward, "data_source": "math", "tokens": 4 + sample},
    });
    if let (Value::Object(attributes), Value::Object(more)) = (&mut row["attributes"], more) {
        attributes.extend(more);
    }
    format!("{row}\n")
}

fn of_lines(folder: &Path, lines: &[String]) -> Query {
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::write(folder.join("data/a.jsonl"), lines.concat()).unwrap();
    open(folder)
}

fn groups(query: &Query, filter: &str, sort: &[(&str, bool)]) -> Vec<Group> {
    let found = query.groups(&choice(filter, sort), 0.5, 0..1000).unwrap();
    assert_eq!(found.total as usize, found.groups.len());
    found.groups
}

#[test]
fn groups_have_the_figures_that_sql_has() {
    let (_folder, query) = yard();
    for filter in ["", "reward > 0", "validate", "step < 3 and response_chars > 30", "step == 999"] {
        let found = groups(&query, filter, &[]);
        let where_ = if filter.is_empty() { "1" } else { filter }.replace("==", "=");
        let sql = format!(
            "SELECT cast(group_id AS text), count(*), avg(reward), min(reward), max(reward), sum(reward > 0.5),
               avg(response_chars), min(step), avg(reward * reward) - avg(reward) * avg(reward),
               count(*) > 1 AND count(reward) = count(*) AND min(reward) = max(reward)
             FROM rollouts WHERE {where_} GROUP BY group_id"
        );
        let mut rows: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        query
            .sql(&sql, &mut |_, row| {
                rows.insert(row[0].as_str().unwrap().to_owned(), row.to_vec());
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(found.len(), rows.len(), "{filter}");
        for group in found {
            let row = &rows[&group.group_id.to_string()];
            let close = |mine: Option<f64>, theirs: &Value| match (mine, theirs.as_f64()) {
                (Some(mine), Some(theirs)) => (mine - theirs).abs() < 1e-6,
                (mine, theirs) => mine == theirs,
            };
            assert_eq!(group.n, row[1].as_u64().unwrap());
            assert!(close(group.reward_mean, &row[2]), "{group:?} {row:?}");
            assert_eq!((group.reward_min, group.reward_max), (row[3].as_f64(), row[4].as_f64()));
            assert_eq!(group.passes, row[5].as_u64().unwrap_or_default());
            assert!(close(group.response_chars_mean, &row[6]));
            assert_eq!(group.step, row[7].as_i64());
            assert!(close(group.reward_std.map(|std| std * std), &row[8]), "{group:?} {row:?}");
            assert_eq!(group.zero_variance, row[9] == json!(1), "{group:?}");
        }
    }
}

#[test]
fn groups_sort_by_every_field_with_null_last_and_page_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for (prompt, rewards) in [
        ("one", vec![Some(1.0), Some(1.0)]),
        ("two", vec![Some(0.0), Some(1.0), Some(0.5)]),
        ("three", vec![None]),
    ] {
        for (sample, reward) in rewards.into_iter().enumerate() {
            lines.push(line(prompt.len() as u64, prompt, sample as u64, reward, json!({})));
        }
    }
    let query = of_lines(folder.path(), &lines);
    let n = |sort: &[(&str, bool)]| groups(&query, "", sort).iter().map(|group| group.n).collect::<Vec<_>>();
    assert_eq!(n(&[]), [2, 3, 1]);
    assert_eq!(n(&[("reward_mean", false)]), [3, 2, 1]);
    assert_eq!(n(&[("reward_mean", true)]), [2, 3, 1]);
    assert_eq!(n(&[("step", true), ("n", false)]), [1, 2, 3]);
    assert_eq!(n(&[("zero_variance", true)]), [2, 3, 1]);
    for field in GROUP_SORTS {
        assert_eq!(n(&[(field, false)]).len(), 3, "{field}");
    }
    let dead: Vec<bool> = groups(&query, "", &[]).iter().map(|group| group.zero_variance).collect();
    assert_eq!(dead, [true, false, false], "one alone is not dead, and nothing is without a reward");
    let page = query.groups(&choice("", &[("n", true)]), 0.0, 1..2).unwrap();
    assert_eq!((page.total, page.groups.len(), page.groups[0].n), (3, 1, 2));
    assert_eq!(page.groups[0].first.len(), 32);
    assert!(query.groups(&choice("", &[]), 0.0, 9..20).unwrap().groups.is_empty());
    let error = query.groups(&choice("", &[("reward", true)]), 0.0, 0..9).unwrap_err();
    assert!(matches!(&error, QueryError::Mistake(m) if m.message.contains("reward_mean")), "{error}");
}

#[test]
fn groups_take_in_what_is_appended() {
    let (folder, query) = yard();
    let before = groups(&query, "", &[]).len();
    write(&folder.path().join("data/b.jsonl"), 100..110);
    refresh(&query);
    assert_eq!(groups(&query, "", &[]).len(), before + 10);
}

#[test]
fn every_number_is_in_the_bin_that_a_filter_by_its_edges_finds() {
    let folder = tempfile::tempdir().unwrap();
    let rewards = [0.0, 0.1, 0.3, 0.7, 0.7, 1.0, 1.0 / 3.0, 2.0 / 3.0, 0.9, 0.3];
    let mut lines: Vec<String> = (0..)
        .zip(rewards)
        .map(|(n, reward)| line(0, "p", n, Some(reward), json!({"difficulty": n, "mood": "good"})))
        .collect();
    lines.push(line(0, "p", 99, None, json!({"difficulty": "hard"})));
    let query = of_lines(folder.path(), &lines);
    for bins in [1, 2, 3, 7, 10, 40, 200] {
        let told = query.histogram("", "reward", bins).unwrap();
        assert_eq!((told.n, told.nulls, told.not_numbers, told.bins.len()), (10, 1, 0, bins));
        assert_eq!((told.min, told.max), (Some(0.0), Some(1.0)));
        for (nth, bin) in told.bins.iter().enumerate() {
            let upper = if nth + 1 == bins { "<=" } else { "<" };
            let filter = format!("reward >= {:?} and reward {upper} {:?}", bin.from, bin.to);
            let rows = query.rows(&choice(&filter, &[])).unwrap().len() as u64;
            assert_eq!(bin.count, rows, "{bins} {bin:?}");
        }
    }
    let extra = query.histogram("", "difficulty", 40).unwrap();
    assert_eq!((extra.n, extra.nulls, extra.not_numbers, extra.mean), (10, 0, 1, Some(4.5)));
    let whole = query.histogram("", "sample_index", 200).unwrap();
    assert_eq!(whole.bins.len(), 100, "one for each whole number");
    assert_eq!((whole.bins[9].from, whole.bins[9].to, whole.bins[9].count), (9.0, 10.0, 1));
    let same = query.histogram("reward == 0.7", "reward", 40).unwrap();
    assert_eq!(same.bins.len(), 1);
    assert_eq!((same.bins[0].from, same.bins[0].to, same.bins[0].count), (0.7, 0.7, 2));
    let none = query.histogram("reward > 5", "reward", 40).unwrap();
    assert_eq!((none.n, none.min, none.mean, none.bins.len()), (0, None, None, 0));
    for (field, expected) in [("data_source", "is text"), ("rewrd", "did you mean reward"), ("id", "is text")]
    {
        let error = query.histogram("", field, 10).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn runs_are_compared_on_the_prompts_that_both_have() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rows = |prompts: &[(&str, &[Option<f64>])]| -> Vec<String> {
        let each = |(prompt, rewards): &(&str, &[Option<f64>])| {
            let rollout = |(n, reward)| line(3, prompt, n, reward, json!({}));
            (0..).zip(rewards.iter().copied()).map(rollout).collect::<Vec<_>>()
        };
        prompts.iter().flat_map(each).collect()
    };
    let here = of_lines(
        here.path(),
        &rows(&[
            ("up", &[Some(0.0), Some(0.5)]),
            ("down", &[Some(1.0)]),
            ("same", &[Some(1.0), Some(0.0)]),
            ("gone", &[Some(1.0)]),
            ("unrated", &[None]),
        ]),
    );
    let there = of_lines(
        there.path(),
        &rows(&[
            ("up", &[Some(1.0), Some(1.0), Some(1.0)]),
            ("down", &[Some(0.5)]),
            ("same", &[Some(0.5)]),
            ("new", &[Some(1.0)]),
            ("unrated", &[Some(1.0)]),
        ]),
    );
    let found = here.compare(&there, &choice("", &[("delta", true)]), 0..10).unwrap();
    assert_eq!((found.shared, found.only_here, found.only_there), (4, 1, 1));
    assert_eq!((found.better, found.worse, found.same), (1, 1, 1));
    let prompts: Vec<_> = found.pairs.iter().map(|pair| (pair.prompt.as_str(), pair.delta)).collect();
    assert_eq!(prompts, [("up", Some(0.75)), ("same", Some(0.0)), ("down", Some(-0.5)), ("unrated", None)]);
    let up = &found.pairs[0];
    assert_eq!(
        (up.here.n, up.there.n, up.here.reward_mean, up.there.reward_mean),
        (2, 3, Some(0.25), Some(1.0))
    );
    let page = here.page(&choice("reward == 0.5", &[]), &["id".to_owned()], 0..1).unwrap();
    assert_eq!(up.here.best, page.rows[0].1[0].as_str().unwrap());
    // Deltas 0.75, 0 and -0.5: their mean is 1/12 and their deviation sqrt(0.395833).
    let close =
        |one: Option<f64>, other: f64| assert!((one.unwrap() - other).abs() < 1e-9, "{one:?} {other}");
    let half = 1.959_963_984_540_054 * (0.395_833_333_333_333_3_f64 / 3.0).sqrt();
    close(found.delta_mean, 0.25 / 3.0);
    close(found.delta_low, 0.25 / 3.0 - half);
    close(found.delta_high, 0.25 / 3.0 + half);
    close(found.mean_there.zip(found.mean_here).map(|(there, here)| there - here), 0.25 / 3.0);
    let page = here.compare(&there, &choice("", &[("n", true)]), 0..1).unwrap();
    assert_eq!((page.pairs.len(), page.pairs[0].prompt.as_str(), page.shared), (1, "up", 4));
    let one = here.compare(&there, &choice("reward == 1", &[]), 0..9).unwrap();
    assert_eq!((one.shared, one.delta_low), (0, None));
    assert!(here.compare(&there, &choice("", &[("reward", true)]), 0..9).is_err());
}
