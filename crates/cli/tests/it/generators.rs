//! Generators as their users meet them: flags, what is printed, what is left after `kill -9`.

use rollyard_test_engine::{Settings, TestEngine, interpreter};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::program::{Server, rollyard, run};

/// Writes one rollout a group by its own names; `wait` is a file that holds it in the middle of a group.
const GENERATOR: &str = r#"
import json, os, time, urllib.request, uuid
TASK_TYPE = "slow"

def run_rollout(data):
    skip = list(data.get("skip_instance_ids") or [])
    folder = os.path.dirname(data["input_file"])
    for line in open(data["input_file"]):
        instance = json.loads(line)["instance_id"]
        if instance in skip:
            continue
        for repeat in range(2):
            item = {"uid": str(uuid.uuid4()), "instance_id": instance, "reward": repeat,
                "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
            url = data["remote_buffer_url"] + "/buffer/write"
            urllib.request.urlopen(urllib.request.Request(
                url, json.dumps(item).encode(), {"Content-Type": "application/json"})).read()
            while repeat == 0 and instance == "b" and os.path.exists(os.path.join(folder, "wait")):
                time.sleep(0.01)
    print("all is made")
"#;

fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("generators")).unwrap();
    fs::write(dir.path().join("generators/slow_generator.py"), GENERATOR).unwrap();
    fs::write(dir.path().join("generators/bad_generator.py"), "TASK_TYPE =\n").unwrap();
    fs::write(dir.path().join("input.jsonl"), "{\"instance_id\": \"a\"}\n{\"instance_id\": \"b\"}\n")
        .unwrap();
    dir
}

fn serve(dir: &Path) -> Server {
    let python = interpreter().display().to_string();
    Server::start(dir, &["--generators", "generators", "--python", &python, "--root", "."])
}

fn eventually(server: &Server, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    once(server, "default", what, holds)
}

fn once(server: &Server, run: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (_, run) = server.client().get(&format!("/api/runs/{run}"));
        if holds(&run) {
            return run;
        }
        assert!(Instant::now() < deadline, "{what} did not come to be: {run:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(dir: &Path, arguments: &[&str]) -> String {
    let mut program = rollyard(dir);
    program.args(arguments);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

#[test]
fn a_generator_outlives_no_server_and_is_gone_on_with_by_the_next() {
    let dir = folder();
    fs::write(dir.path().join("wait"), "").unwrap();
    let mut server = serve(dir.path());
    let payload = json!({
        "task_type": "slow", "input_file": dir.path().join("input.jsonl"), "num_repeat_per_sample": 2,
        "remote_engine_url": "http://127.0.0.1:9",
    });
    let (status, answer) = server.client().post("/start_rollout", &payload);
    assert_eq!(status, 200, "{answer}");
    let run = eventually(&server, "the middle", |run| run["books"]["admitted"] == 3);
    let process = format!("/proc/{}", run["generator"]["pid"]);
    let shown = text(dir.path(), &["stats", "--url", &server.url, "--once"]);
    assert!(shown.contains("generator of default: running, "), "{shown}");
    assert!(shown.contains("slow_generator.py, process "), "{shown}");

    server.kill();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Path::new(&process).exists() {
        assert!(Instant::now() < deadline, "{process} outlives its server");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::remove_file(dir.path().join("wait")).unwrap();
    let server = serve(dir.path());
    let run = eventually(&server, "the end", |run| run["generator"]["state"] == "finished");
    assert_eq!((&run["ready_groups"], &run["open_groups"]), (&json!(2), &json!(0)), "{run:#}");
    assert_eq!(server.stop(), Some(0));

    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    for part in ["generator for task slow, hooks none", "bad_generator.py", "not Python", "all is made"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let events = text(dir.path(), &["ledger", "events", "--data", "data"]);
    for part in ["generator running: runs as process", "dropped: regenerated", "generator finished"] {
        assert!(events.contains(part), "{part}: {events}");
    }
}

#[test]
fn a_generator_of_ours_that_is_killed_makes_only_what_is_missing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine =
        runtime.block_on(TestEngine::start(Settings { latency_ms: 10, ..Settings::default() })).unwrap();
    let dir = folder();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/generators/gsm_generator.py");
    fs::copy(example, dir.path().join("generators/gsm_generator.py")).unwrap();
    let problems =
        (0..100).map(|n| json!({"instance_id": n, "prompt": format!("{n}+1?"), "label": "#### 1"}));
    let problems: String = problems.map(|line| format!("{line}\n")).collect();
    fs::write(dir.path().join("input.jsonl"), problems).unwrap();
    let python = interpreter().display().to_string();
    let flags = ["--generators", "generators", "--python", &python, "--root", ".", "--token", "s3cret/@"];
    let mut server = Server::start(dir.path(), &flags);
    server.token = Some("s3cret/@".to_owned());
    let payload = json!({
        "task_type": "gsm", "run": "two", "input_file": dir.path().join("input.jsonl"), "num_repeat_per_sample": 4,
        "num_process": 2, "remote_engine_url": engine.url(), "remote_buffer_url": "http://0.0.0.0:8889",
        "sampling_params": {"max_tokens": 8},
    });
    let (status, answer) = server.client().post("/start_rollout", &payload);
    assert_eq!(status, 200, "{answer}");
    let run = once(&server, "two", "the first rollouts", |run| run["books"]["admitted"].as_u64() > Some(0));
    let pid = run["generator"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).unwrap_or_else(|| panic!("{run:#}"));
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let run = once(&server, "two", "the end", |run| run["generator"]["state"] == "finished");
    assert_eq!(
        (&run["books"]["admitted"], &run["generator"]["restarts"]),
        (&json!(400), &json!(1)),
        "{run:#}"
    );
    assert_eq!(run["books"]["dropped_by_reason"]["regenerated"], Value::Null);
}

#[test]
fn a_folder_or_a_number_that_makes_no_sense_is_refused() {
    let dir = folder();
    for (flags, part) in [
        (["--generators", "nowhere"], "generators = \"nowhere\" is not a folder"),
        (["--generator-restarts", "often"], "generator_restarts = \"often\" is not a whole number"),
    ] {
        let mut program = rollyard(dir.path());
        program.arg("serve").args(flags);
        let outcome = run(program);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
}
