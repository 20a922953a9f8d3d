//! The demos keep their promises, and leave nothing behind that is broken.

use rollyard_tiny::model::{Shape, Weights};
use rollyard_tiny::train::Checkpoint;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Outcome, rollyard, run, run_within};

/// A course takes seconds; a busy machine may take minutes.
const PATIENCE: Duration = Duration::from_secs(300);

fn demo(dir: &Path, flags: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.args(["demo", "--out", "run", "--listen", "127.0.0.1:0"]).args(flags);
    run_within(program, PATIENCE)
}

fn curve(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("run/curve.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn kept_its_promises(outcome: &Outcome) {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout.matches('✓').count(), 4, "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('✗'), "{}", outcome.stdout);
}

#[test]
fn a_policy_learns_and_a_crash_in_the_middle_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = demo(dir.path(), &["--steps", "24", "--seed", "3", "--crash"]);
    kept_its_promises(&outcome);
    assert!(outcome.stdout.contains("kill -9 of the whole process group"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("24 steps trained on 6,144 rollouts, each once"), "{}", outcome.stdout);

    let curve = curve(dir.path());
    let steps: Vec<u64> = curve.iter().map(|report| report["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, (0..=24).collect::<Vec<u64>>());
    for report in &curve {
        assert!(report["stale_max"].as_i64().unwrap() <= 2, "{report}");
    }
    let reward = |part: &[Value]| mean(part.iter().map(|report| report["reward"].as_f64().unwrap()));
    let (first, last) = (reward(&curve[1..7]), reward(&curve[19..]));
    assert!(last > first + 0.1, "from {first} to {last}");
    let exams: Vec<f64> = curve.iter().filter_map(|report| report["held_out"].as_f64()).collect();
    assert!(exams[0] < 0.4 && exams[exams.len() - 1] > exams[0] + 0.2, "{exams:?}");

    let mut check = rollyard(dir.path());
    check.args(["ledger", "--data", "run/yard", "--run", "demo", "check", "--payloads"]);
    let checked = run(check);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let mut query = rollyard(dir.path());
    query.env("XDG_CACHE_HOME", dir.path().join("cache"));
    let trained = "select count(*) from rollouts where status = 'trained' and data_source = 'arithmetic'";
    query.args(["query", trained, "run/archive/demo"]);
    let counted = run(query);
    assert!(counted.stdout.contains("6144"), "{counted:?}");
    let drawn = std::fs::read_to_string(dir.path().join("run/curve.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.matches("<polyline").count() == 2, "{drawn}");
}

#[test]
fn killed_again_and_again_it_trains_on_every_rollout_once_and_drops_none() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["demo", "--out", "run", "--listen", "127.0.0.1:0", "--steps", "20", "--seed", "2"];
    for wait_ms in [0, 35, 90, 140, 210, 330] {
        let before = curve(dir.path()).len();
        let mut program = rollyard(dir.path());
        let mut child = program.args(flags).stdout(Stdio::null()).spawn().unwrap();
        wait_for(&format!("a step behind line {before}"), || curve(dir.path()).len() > before);
        // Anywhere in a step: between two of them, while it trains, while it saves.
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let outcome = demo(dir.path(), &["--steps", "20", "--seed", "2"]);
    kept_its_promises(&outcome);
    assert!(outcome.stdout.contains("20 steps trained on 5,120 rollouts, each once"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("5,120 trained + 0 dropped"), "{}", outcome.stdout);
}

#[test]
fn nothing_is_stale_where_nothing_may_be_and_no_token_drifts() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = demo(dir.path(), &["--steps", "6", "--task", "tool", "--staleness", "0", "--kl", "0.01"]);
    kept_its_promises(&outcome);
    for report in &curve(dir.path())[1..] {
        assert_eq!(report["stale_max"], 0, "{report}");
        // Every token was sampled by the very weights that learn from it.
        assert!(report["drift_max"].as_f64().unwrap() < 1e-4, "{report}");
    }
    // Two turns, the second behind what the tool said.
    let archive = std::fs::read_dir(dir.path().join("run/archive/demo")).unwrap();
    let days = archive.map(|day| day.unwrap().path()).filter(|day| !day.ends_with("fates"));
    let files = days.flat_map(|day| std::fs::read_dir(day).unwrap().map(|file| file.unwrap().path()));
    let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(text.contains("\"role\":\"tool\""), "no rollout called the tool");
}

#[test]
fn ctrl_c_leaves_a_run_that_can_be_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["demo", "--out", "run", "--listen", "127.0.0.1:0", "--steps", "90000"]);
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("three steps", || curve(dir.path()).len() > 3);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("go on with: rollyard demo --out run --task arithmetic --steps 90000"), "{said}");
    let done = curve(dir.path()).last().unwrap()["step"].as_u64().unwrap();
    let outcome = demo(dir.path(), &["--steps", &(done + 2).to_string()]);
    kept_its_promises(&outcome);
    assert!(outcome.stdout.contains(&format!("going on from the checkpoint of step {done}")), "{outcome:?}");
}

#[test]
fn what_cannot_be_done_is_said_and_harms_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["demo", "--out", "run", "--steps", "2", "--listen", &port.to_string()]);
    let outcome = run_within(program, PATIENCE);
    kept_its_promises(&outcome);
    let said = format!("port {} is taken, so this is port", port.port());
    assert!(outcome.stderr.contains(&said), "{outcome:?}");

    let refused = |flags: &[&str], code: i32, message: &str| {
        let outcome = demo(dir.path(), flags);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{message}: {outcome:?}");
    };
    refused(&["--task", "chess"], 2, "there is no task \"chess\"; there are arithmetic and tool");
    refused(&["--steps", "0"], 2, "0 is not in 1..=100000");
    refused(&["--seed", "2"], 1, "this folder has a demo with seed 1, but 2 is asked for");
    let mut program = rollyard(dir.path());
    program.args(["demo", "--out", "."]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("this one has something else in it: ."), "{outcome:?}");

    let policy = dir.path().join("run/policy.safetensors");
    let good = std::fs::read(&policy).unwrap();
    let shape = Shape { layers: 1, ..Shape::demo(rollyard_tiny::tokenizer::vocabulary_len()) };
    let other = Checkpoint { weights: Weights::random(shape, 1), adam: None, notes: serde_json::Map::new() };
    other.save(&policy).unwrap();
    refused(&["--steps", "3"], 1, "the checkpoint has another shape: its layers is 1, but 2 is wanted");
    std::fs::write(&policy, &good[..100]).unwrap();
    refused(&["--steps", "3"], 1, "this is no checkpoint");
    std::fs::write(&policy, &good).unwrap();

    // A device that is always full.
    std::os::unix::fs::symlink("/dev/full", dir.path().join("run/policy.part")).unwrap();
    refused(&["--steps", "3"], 1, "there is no room to save the checkpoint; make some, then start again");
    let outcome = demo(dir.path(), &["--steps", "4"]);
    kept_its_promises(&outcome);
    assert!(outcome.stdout.contains("4 steps trained on 1,024 rollouts, each once"), "{}", outcome.stdout);
}

#[test]
fn a_sweep_compares_its_bounds_and_is_not_run_twice() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = || {
        let mut program = rollyard(dir.path());
        program.args(["demo", "sweep", "--staleness", "0,1", "--steps", "4", "--out", "swept"]);
        run_within(program, PATIENCE)
    };
    let outcome = sweep();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let drawn = std::fs::read_to_string(dir.path().join("swept/sweep.svg")).unwrap();
    assert!(drawn.contains(">staleness 0</text>") && drawn.contains(">staleness 1</text>"), "{drawn}");
    assert!(
        outcome.stdout.contains("reward at") && outcome.stdout.contains("90% after"),
        "{}",
        outcome.stdout
    );
    assert_eq!(sweep().stdout, outcome.stdout);
}

#[test]
fn a_yard_under_load_survives_its_own_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program
        .args(["demo", "yard", "--writers", "8", "--rollouts", "400", "--dir", "kept"])
        .env("TMPDIR", dir.path());
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("400 writes were answered"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('✗'), "{}", outcome.stdout);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"]);

    let mut program = rollyard(dir.path());
    program.args(["demo", "yard", "--dir", "kept"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("not empty"), "{outcome:?}");
}
