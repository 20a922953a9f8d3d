//! Questions to files of rollouts.

use crate::program::{Outcome, rollyard, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Sixty rollouts of three steps in groups of four; the rewards rise.
fn lines() -> Vec<Value> {
    (0..60)
        .map(|n| {
            let (step, prompt) = (n / 20, n / 4);
            let think = if n % 7 == 0 { "wait, actually" } else { "so" };
            json!({
                "messages": [
                    {"role": "user", "content": format!("What is {prompt} + {prompt}?")},
                    {"role": "assistant", "content": format!("<think>{think} {n}</think>\nIt is {}.", 2 * prompt)},
                ],
                "attributes": {
                    "sample_index": n % 4, "step": step, "rollout_n": n, "reward": f64::from(step) * 0.25,
                    "data_source": if n % 2 == 0 { "math/easy" } else { "math/hard" }, "experiment_name": "e",
                    "validate": false,
                },
                "timestamp": "2026-01-16T11:33:10.744140",
            })
        })
        .collect()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text: Vec<String> = lines().iter().map(Value::to_string).collect();
    std::fs::create_dir(dir.path().join("runs")).unwrap();
    std::fs::write(dir.path().join("runs/a.jsonl"), text[..30].join("\n") + "\n").unwrap();
    std::fs::write(dir.path().join("runs/b.jsonl"), text[30..].join("\n") + "\n").unwrap();
    dir
}

fn ask(dir: &Path, arguments: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.env("ROLLYARD_CACHE", dir.join("cache")).args(arguments);
    run(program)
}

fn told(dir: &Path, arguments: &[&str]) -> String {
    let outcome = ask(dir, arguments);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    outcome.stdout
}

const CURVE: &str =
    "select step, avg(reward) as reward, count(*) as n from rollouts group by step order by step";

#[test]
fn sql_is_answered_in_every_format() {
    let dir = folder();
    for (format, expected) in [
        ("csv", "step,reward,n\n0,0.0,20\n1,0.25,20\n2,0.5,20\n"),
        ("table", "step  reward   n\n0          0  20\n1       0.25  20\n2        0.5  20\n"),
        (
            "json",
            "{\"step\":0,\"reward\":0.0,\"n\":20}\n{\"step\":1,\"reward\":0.25,\"n\":20}\n{\"step\":2,\"reward\":0.5,\"n\":20}\n",
        ),
    ] {
        assert_eq!(told(dir.path(), &["query", CURVE, "runs", "--format", format]), expected);
    }
    assert_eq!(told(dir.path(), &["query", CURVE, "runs/*.jsonl", "--out", "curve.csv"]), "");
    let written = std::fs::read_to_string(dir.path().join("curve.csv")).unwrap();
    assert_eq!(written, "step,reward,n\n0,0.0,20\n1,0.25,20\n2,0.5,20\n");
    assert_eq!(told(dir.path(), &["query", CURVE, "runs", "--out", "curve.parquet"]), "");
    let again = told(dir.path(), &["query", "select count(*) as n from rollouts", "runs", "curve.parquet"]);
    assert_eq!(again, "n\n63\n", "a Parquet file of anything is rows too");
}

#[test]
fn a_curve_is_drawn_in_the_terminal() {
    let dir = folder();
    let drawn = told(dir.path(), &["query", "--plot", CURVE, "runs"]);
    assert!(drawn.starts_with("reward\n0.5 │") && drawn.ends_with("2  step\n"), "{drawn}");
}

#[test]
fn bodies_are_columns_when_asked_for() {
    let dir = folder();
    let sql = "select prompt, response from rollouts where rollout_n = 8";
    let answer = told(dir.path(), &["query", sql, "runs", "--format", "json"]);
    let row: Value = serde_json::from_str(&answer).unwrap();
    assert!(row["prompt"].as_str().unwrap().contains("What is 2 + 2?"), "{row}");
    assert!(row["response"].as_str().unwrap().contains("It is 4."), "{row}");
}

#[test]
fn wrong_sql_shows_where_and_what_there_is() {
    let dir = folder();
    for (sql, words) in [
        ("select rewrad from rollouts", &["rewrad", "reward", "^"][..]),
        ("select * form rollouts", &["form", "^"]),
        ("delete from rollouts", &["only SELECT", "^^^^^^"]),
        ("attach database 'x.db' as x", &["only SELECT"]),
        ("select 1; select 2", &["one"]),
    ] {
        let outcome = ask(dir.path(), &["query", sql, "runs"]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "{word:?} is not in: {}", outcome.stderr);
        }
    }
    assert!(!dir.path().join("x.db").exists());
}

#[test]
fn what_is_not_there_or_no_rollouts_is_said() {
    let dir = folder();
    std::fs::write(dir.path().join("empty.jsonl"), "").unwrap();
    std::fs::write(dir.path().join("binary.jsonl"), [0u8, 159, 146, 150, 255, 10, 0, 1, 10]).unwrap();
    let nothing = ask(dir.path(), &["query", CURVE, "nowhere.jsonl"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("nowhere.jsonl"), "{}", nothing.stderr);
    let empty = told(dir.path(), &["query", "select count(*) as n from rollouts", "empty.jsonl"]);
    assert_eq!(empty, "n\n0\n");
    let binary = ask(dir.path(), &["query", "select count(*) as n from rollouts", "binary.jsonl"]);
    assert_eq!((binary.code, binary.stdout.as_str()), (Some(0), "n\n0\n"));
    assert!(binary.stderr.contains("2 of 2 rows could not be read"), "{}", binary.stderr);
    let listed = ask(dir.path(), &["query", "select line, problem from bad_rows", "binary.jsonl"]);
    assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
}

#[test]
fn new_lines_are_seen_by_the_next_question() {
    let dir = folder();
    let count = || told(dir.path(), &["query", "select count(*) as n from rollouts", "runs"]);
    assert_eq!(count(), "n\n60\n");
    let mut more = lines()[0].clone();
    more["attributes"]["rollout_n"] = json!(60);
    let mut text = std::fs::read_to_string(dir.path().join("runs/a.jsonl")).unwrap();
    text += &format!("{more}\n");
    std::fs::write(dir.path().join("runs/a.jsonl"), text).unwrap();
    assert_eq!(count(), "n\n61\n");
}

#[test]
fn grep_finds_by_channel_and_filter() {
    let dir = folder();
    let count = |arguments: &[&str]| {
        let mut all = vec!["grep", "--count"];
        all.extend(arguments);
        ask(dir.path(), &all).stdout
    };
    for (arguments, expected) in [
        (&["wait, actually", "runs"][..], "9\n"),
        (&["WAIT, ACTUALLY", "runs", "-i"], "9\n"),
        (&["wait, (actually|no)", "runs", "--channel", "reasoning"], "9\n"),
        (&["wait", "runs", "--channel", "assistant"], "0\n"),
        (&["wait", "runs", "--filter", "step == 0"], "3\n"),
        (&["It is 2.", "runs", "-F"], "4\n"),
        (&["wait", "runs", "-m", "2"], "2\n"),
    ] {
        assert_eq!(count(arguments), expected, "{arguments:?}");
    }
    let line = ask(dir.path(), &["grep", "It is 28", "runs/b.jsonl", "-m", "1"]).stdout;
    assert!(
        line.contains("b.jsonl:27: step 2, reward 0.500, assistant: ") && line.contains("It is 28"),
        "{line}"
    );
    let object: Value =
        serde_json::from_str(&ask(dir.path(), &["grep", "It is 28", "runs", "-m", "1", "--json"]).stdout)
            .unwrap();
    assert_eq!((&object["channel"], &object["message"]), (&json!("assistant"), &json!(1)), "{object}");
}

#[test]
fn grep_says_what_is_wrong() {
    let dir = folder();
    for (arguments, code, words) in [
        (&["zebra", "runs"][..], 1, "no rollout has it"),
        (&["wait(", "runs"], 1, "wait("),
        (&["wait", "runs", "--filter", "reward >"], 1, "reward >"),
        (&["wait"], 2, "PATH"),
    ] {
        let mut all = vec!["grep"];
        all.extend(arguments);
        let outcome = ask(dir.path(), &all);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}

#[test]
fn every_column_is_in_the_reference() {
    let dir = tempfile::tempdir().unwrap();
    let page = include_str!("../../../../docs/reference/catalog.md");
    let listed = told(dir.path(), &["query", "--columns"]);
    assert!(listed.lines().count() > 30, "{listed}");
    for line in listed.lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        let (kind, about) = rest.trim().split_once(' ').unwrap();
        let about = about.trim().replace("<think>", "`<think>`");
        let row = format!("| `{name}` | {kind} | {about} |");
        assert!(page.contains(&row), "docs/reference/catalog.md lacks: {row}");
    }
}

#[test]
fn conversion_keeps_every_byte_and_every_id() {
    let dir = folder();
    let bad = "{\"messages\": [half\n";
    let mut text = std::fs::read_to_string(dir.path().join("runs/b.jsonl")).unwrap();
    text.insert_str(0, bad);
    std::fs::write(dir.path().join("runs/b.jsonl"), &text).unwrap();
    let ids = |place: &str| {
        let told = ask(dir.path(), &["query", "select id from rollouts order by id", place]).stdout;
        assert_eq!(told.lines().count(), 61, "{place}: {told}");
        told
    };
    let outcome = ask(dir.path(), &["convert", "runs", "all.parquet"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("wrote 60 rollouts"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_to_string(dir.path().join("all.parquet.bad")).unwrap(), bad);
    assert_eq!(ask(dir.path(), &["convert", "all.parquet", "again.jsonl"]).code, Some(0));
    assert_eq!((ids("all.parquet"), ids("again.jsonl")), (ids("runs"), ids("runs")));
    let first = std::fs::read_to_string(dir.path().join("runs/a.jsonl")).unwrap();
    let again = std::fs::read_to_string(dir.path().join("again.jsonl")).unwrap();
    assert_eq!(again, first + text.strip_prefix(bad).unwrap(), "byte for byte, in order");
}

#[test]
fn other_formats_become_the_viewers() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("verl")).unwrap();
    let verl = json!({"input": "What is 1+1?", "output": "It is 2.", "gts": "2", "score": 1.0, "step": 7});
    std::fs::write(dir.path().join("verl/7.jsonl"), format!("{verl}\n")).unwrap();
    let outcome = ask(dir.path(), &["convert", "verl", "out.jsonl", "--unique"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let line: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap()).unwrap();
    assert_eq!(line["messages"][1], json!({"role": "assistant", "content": "It is 2."}), "{line}");
    assert_eq!(
        (&line["attributes"]["step"], &line["attributes"]["reward"]),
        (&json!(7), &json!(1.0)),
        "{line}"
    );
    assert_eq!(line["gts"], json!("2"), "what the viewer does not know is kept: {line}");
}

#[test]
fn a_conversion_that_cannot_be_done_writes_nothing() {
    let dir = folder();
    for (arguments, words) in [
        (&["convert", "runs", "out.xyz"][..], "out.xyz"),
        (&["convert", "runs", "nowhere/deep/out.jsonl", "--filter", "reward >"], "reward >"),
        (&["convert", "missing", "out.jsonl"], "missing"),
    ] {
        let outcome = ask(dir.path(), arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
    let mut left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| name != "runs" && name != "cache");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn view_shows_what_was_named_and_nothing_else() {
    let dir = folder();
    std::fs::write(dir.path().join("secret.jsonl"), "{}\n").unwrap();
    let mut program = rollyard(dir.path());
    program.env("ROLLYARD_CACHE", dir.path().join("cache")).env("XDG_DATA_HOME", dir.path().join("share"));
    let mut child = program
        .args(["view", "runs", "--no-open"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let page = line.strip_prefix("viewing at ").unwrap_or_else(|| panic!("{line:?}")).trim();
    let site = page.split("/?").next().unwrap();
    let open = |place: &Path| {
        let agent =
            ureq::Agent::new_with_config(ureq::Agent::config_builder().http_status_as_error(false).build());
        let asked = json!({"places": [place.to_str().unwrap()]});
        agent.post(format!("{site}/api/view/open")).send_json(asked).unwrap().status().as_u16()
    };
    assert_eq!(ureq::get(page).call().unwrap().status(), 200);
    let opened = [open(&dir.path().join("runs")), open(&dir.path().join("secret.jsonl"))];
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(opened, [200, 403]);
}

#[test]
fn view_shows_an_example_to_who_has_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.env("ROLLYARD_CACHE", dir.path().join("cache")).env("XDG_DATA_HOME", dir.path().join("share"));
    let mut child = program
        .args(["view", "--example", "--no-open"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let page = line.strip_prefix("viewing at ").unwrap_or_else(|| panic!("{line:?}")).trim();
    let (site, place) = page.split_once("/?place=").unwrap();
    let mut opened =
        ureq::post(format!("{site}/api/view/open")).send_json(json!({"places": [place]})).unwrap();
    let opened: Value = serde_json::from_str(&opened.body_mut().read_to_string().unwrap()).unwrap();
    // The same place as the page asks for: a link to the one opens the other.
    let mut asked = ureq::post(format!("{site}/api/view/example")).send_json(json!({})).unwrap();
    let asked: Value = serde_json::from_str(&asked.body_mut().read_to_string().unwrap()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((&opened["places"][0], &asked["place"]), (&json!(place), &json!(place)));
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 3);
}

#[test]
fn view_says_at_once_what_is_not_there() {
    let dir = folder();
    for (arguments, words) in [
        (&["view", "nowhere", "--no-open"][..], "nowhere"),
        (&["view", "runs", "--listen", "0.0.0.0:0"], "token"),
        (&["view", "runs", "--tokenizer", "none", "--no-open"], "tokenizer.json"),
    ] {
        let outcome = ask(dir.path(), arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}
