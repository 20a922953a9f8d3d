//! Generators in the server, with real Python: found, run, restarted, stopped and gone on with.

use rollyard_server::Settings;
use rollyard_test_engine::{TestEngine, interpreter};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::server::Server;

/// A generator that knows nothing of us: it names its rollouts by chance, and writes them one by one. `crash` and
/// `wait` are files that tell it to end in the middle of a group, once, and not to go on while they are there.
pub(crate) const PLAIN: &str = r#"
import json, os, time, urllib.request, uuid
TASK_TYPE = "plain"

def write(data, item):
    url = data["remote_buffer_url"] + "/buffer/write"
    body = json.dumps(item).encode()
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()

def told(data, name):
    return os.path.exists(os.path.join(os.path.dirname(data["input_file"]), name))

def run_rollout(data):
    print("begins with", len(data.get("skip_instance_ids") or []), "skipped")
    skip = [str(instance) for instance in data.get("skip_instance_ids") or []]
    for line in open(data["input_file"]):
        instance = json.loads(line)["instance_id"]
        if instance in skip:
            skip.remove(instance)
            continue
        for repeat in range(int(data["num_repeat_per_sample"])):
            write(data, {"uid": str(uuid.uuid4()), "instance_id": instance, "reward": repeat % 2,
                "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]})
            if repeat == 0 and instance == "i2":
                while told(data, "wait"):
                    time.sleep(0.01)
                if told(data, "crash"):
                    os.remove(os.path.join(os.path.dirname(data["input_file"]), "crash"))
                    print("the last words")
                    os._exit(3)
"#;

const HOOKED: &str = r#"
TASK_TYPE = "hooked"
def run_rollout(data): pass
def is_valid_group(group, min_valid_group_size, task_type): return True
def transform_group(group, task_type): return group
def filter_item(item, task_type): return True
def normalize_group_data(group): return group
def pad_group_data(group, group_size): return group
def get_group_data_meta_info(groups): return {}
"#;

pub(crate) struct Yard {
    pub(crate) server: Server,
    files: TempDir,
}

impl Yard {
    /// A server with these generator files, and a data set of five instances.
    pub(crate) fn start(generators: &[(&str, &str)]) -> Self {
        let files = TempDir::new().unwrap();
        fs::create_dir(files.path().join("generators")).unwrap();
        let lines: String =
            (0..5).map(|n| format!("{{\"instance_id\": \"i{n}\", \"prompt\": \"?\"}}\n")).collect();
        fs::write(files.path().join("input.jsonl"), lines).unwrap();
        for (name, text) in generators {
            fs::write(files.path().join("generators").join(name), text).unwrap();
        }
        let server = Server::start_with(json!({}), settings(&files));
        Self { server, files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub(crate) fn payload(&self, task_type: &str) -> Value {
        json!({
            "task_type": task_type, "input_file": self.path("input.jsonl"), "num_repeat_per_sample": "2",
            "remote_engine_url": "http://127.0.0.1:9/v1", "remote_buffer_url": "http://0.0.0.0:8889",
        })
    }

    pub(crate) fn start_rollout(&self, payload: Value) -> Value {
        let (status, answer) = self.server.post("/start_rollout", payload);
        assert_eq!(status, 200, "{answer}");
        answer["generator"].clone()
    }

    pub(crate) fn run(&self) -> Value {
        self.server.get("/api/runs/default").1
    }

    pub(crate) fn generator(&self) -> Value {
        self.run()["generator"].clone()
    }

    /// The generator once it is in this state.
    fn once(&self, state: &str) -> Value {
        self.eventually(state, |run| run["generator"]["state"] == state)["generator"].clone()
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let run = self.run();
            if holds(&run) {
                return run;
            }
            assert!(Instant::now() < deadline, "{what} did not come to be: {run:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Once the generator waits in the middle of its third group.
    fn once_in_the_middle(&self) -> Value {
        self.eventually("the middle", |run| {
            run["books"]["admitted"] == 5 && !run["generator"]["pid"].is_null()
        })["generator"]
            .clone()
    }

    pub(crate) fn restart(&mut self) {
        let dir = self.server.dir.take().unwrap();
        let settings = settings(&self.files);
        // The old one must be gone before the new one opens its folder.
        let old = std::mem::replace(&mut self.server, Server::start(json!({})));
        drop(old);
        self.server = Server::start_in(dir, json!({}), settings);
    }

    /// Every instance has one whole group, and nothing else is held.
    fn check_all_made_once(&self) {
        let run = self.run();
        assert_eq!((&run["ready_groups"], &run["open_groups"]), (&json!(5), &json!(0)), "{run:#}");
        let mut rows: Vec<String> =
            self.server.read(json!({})).iter().map(|row| row["instance_id"].to_string()).collect();
        rows.sort_unstable();
        let expected: Vec<String> = (0..10).map(|n| format!("\"i{}\"", n / 2)).collect();
        assert_eq!(rows, expected);
    }
}

fn settings(files: &TempDir) -> Settings {
    Settings {
        generators: Some(files.path().join("generators")),
        python: Some(interpreter()),
        roots: vec![files.path().to_owned()],
        import_within: Duration::from_secs(12),
        generator_restarts: 1,
        ..Settings::default()
    }
}

fn kill(pid: &Value) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

fn is_alive(pid: &Value) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn has_line(generator: &Value, part: &str) -> bool {
    generator["log"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(part))
}

#[test]
fn every_file_is_found_or_named_with_its_problem() {
    let raises = "TASK_TYPE = \"raises\"\ndef run_rollout(data): pass\ndef filter_item(item, task_type): raise ValueError(1)\n";
    let yard = Yard::start(&[
        ("a_generator.py", PLAIN),
        ("b_generator.py", HOOKED),
        ("c_generator.py", raises),
        ("d_generator.py", "import time\ntime.sleep(600)\n"),
        ("e_generator.py", "def run_rollout(data:\n"),
        ("f_generator.py", "import os\nos._exit(7)\n"),
        ("g_generator.py", "def run_rollout(data): pass\n"),
        ("not_one.py", "raise SystemExit\n"),
    ]);
    let (_, found) = yard.server.get("/api/generators");
    let files: Vec<(&str, usize)> = found["generators"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["task_type"].as_str().unwrap(), file["hooks"].as_array().unwrap().len()))
        .collect();
    assert_eq!(files, [("plain", 0), ("hooked", 6), ("raises", 1)], "{found:#}");
    let problems = found["problems"].as_array().unwrap();
    for (problem, (name, part)) in problems.iter().zip([
        ("d_generator.py", "not imported within 12 s"),
        ("e_generator.py", "not Python"),
        ("f_generator.py", "exit status: 7"),
        ("g_generator.py", "TASK_TYPE"),
    ]) {
        assert!(problem["file"].as_str().unwrap().ends_with(name), "{problem}");
        assert!(problem["problem"].as_str().unwrap().contains(part), "{problem}");
    }
    assert_eq!(problems.len(), 4, "{found:#}");

    let (status, refused) = yard.server.post("/start_rollout", yard.payload("chess"));
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("unknown_task_type")));
    for part in ["chess", "plain", "hooked", "math", "e_generator.py", "not Python"] {
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{part}: {refused}");
    }
}

#[test]
fn of_two_files_for_one_task_none_is_picked_by_chance() {
    let yard = Yard::start(&[("a_generator.py", PLAIN), ("b_generator.py", PLAIN)]);
    let (_, found) = yard.server.get("/api/generators");
    assert_eq!(found["generators"], json!([]), "{found:#}");
    let (status, refused) = yard.server.post("/start_rollout", yard.payload("plain"));
    assert_eq!(status, 400);
    for part in ["a_generator.py", "b_generator.py", "neither is used"] {
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{part}: {refused}");
    }
}

#[test]
fn a_start_that_cannot_work_is_refused_by_its_field() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("no_ids.jsonl"), "{\"prompt\": \"?\"}\n").unwrap();
    let with = |task_type: &str, field: &str, value: Value| {
        let mut payload = yard.payload(task_type);
        payload[field] = value;
        payload
    };
    for (payload, code, part) in [
        (with("plain", "input_file", json!(yard.path("none.jsonl"))), "unreadable_input_file", "none.jsonl"),
        (with("plain", "input_file", json!("/etc/passwd")), "unreadable_input_file", "--root"),
        (with("plain", "remote_engine_url", Value::Null), "missing_field", "remote_engine_url"),
        (with("math", "remote_engine_url", Value::Null), "missing_field", "remote_engine_url"),
        (with("math", "num_epoch", json!("two")), "wrong_start", "num_epoch"),
        (with("math", "input_file", json!(yard.path("no_ids.jsonl"))), "wrong_start", "assign-ids"),
        (with("plain", "task_type", json!(7)), "wrong_field", "task_type"),
    ] {
        let (status, refused) = yard.server.post("/start_rollout", payload.clone());
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(code)), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{refused}");
    }
    assert_eq!(yard.generator(), Value::Null);
    for action in ["start", "stop"] {
        let (status, refused) = yard.server.post(&format!("/api/runs/default/generator/{action}"), json!({}));
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("no_generator")));
    }
}

#[test]
fn a_generator_of_nobodys_writes_over_http_and_finishes() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    assert_eq!(yard.start_rollout(yard.payload("plain")), "started");
    let generator = yard.once("finished");
    assert_eq!((&generator["kind"], &generator["task_type"]), (&json!("file"), &json!("plain")));
    assert!(generator["file"].as_str().unwrap().ends_with("a_generator.py"));
    assert!(generator["told"].as_str().unwrap().contains("10 rollouts"), "{generator}");
    assert!(has_line(&generator, "begins with 0 skipped"), "{generator:#}");

    // Once more: it is told what is there, and makes nothing.
    assert_eq!(yard.start_rollout(yard.payload("plain")), "started");
    yard.eventually("a second life", |run| has_line(&run["generator"], "begins with 5 skipped"));
    yard.once("finished");
    yard.check_all_made_once();
}

#[test]
fn a_run_of_another_name_gets_its_own_rollouts() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    let (status, answer) = yard.server.post("/runs/two/start_rollout", yard.payload("plain"));
    assert_eq!(status, 200, "{answer}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while yard.server.get("/api/runs/two").1["ready_groups"] != 5 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(yard.run()["books"]["admitted"], 0);
}

#[test]
fn a_crash_is_told_and_the_generator_goes_on_with_what_is_missing() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("crash"), "").unwrap();
    yard.start_rollout(yard.payload("plain"));
    let generator = yard.once("finished");
    assert_eq!(generator["restarts"], 1);
    for line in
        ["ended with exit code 3: ", "the last words", "started again in 1 s", "begins with 2 skipped"]
    {
        assert!(has_line(&generator, line), "{line}: {generator:#}");
    }
    assert_eq!(yard.run()["books"]["dropped_by_reason"], json!({"regenerated": 1}));
    yard.check_all_made_once();
}

#[test]
fn a_generator_that_is_killed_is_started_again() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("wait"), "").unwrap();
    yard.start_rollout(yard.payload("plain"));
    let pid = yard.once_in_the_middle()["pid"].clone();
    assert_eq!(yard.start_rollout(yard.payload("plain")), "running");
    kill(&pid);
    fs::remove_file(yard.path("wait")).unwrap();
    let generator = yard.once("finished");
    assert!(has_line(&generator, "ended with signal 9"), "{generator:#}");
    yard.check_all_made_once();
}

#[test]
fn a_generator_that_never_writes_is_given_up_with_what_to_do() {
    let broken = "TASK_TYPE = \"broken\"\ndef run_rollout(data): raise KeyError(\"tokenizer\")\n";
    let yard = Yard::start(&[("a_generator.py", broken)]);
    yard.start_rollout(yard.payload("broken"));
    let generator = yard.once("failed");
    let stuck = yard.server.get("/api/live").1["runs"][0]["stuck"][0].clone();
    assert_eq!(stuck["kind"], "generator_failed", "{stuck:#}");
    assert!(stuck["next"].as_str().unwrap().contains("/generator/start"), "{stuck:#}");
    for part in ["exit code 1", "KeyError: 'tokenizer'", "2 times in a row", "/generator/start"] {
        assert!(generator["told"].as_str().unwrap().contains(part), "{part}: {generator:#}");
    }
    assert!(generator["problem"].as_str().unwrap().contains("KeyError"), "{generator:#}");
}

#[test]
fn a_stopped_generator_stays_so_until_it_is_started_again() {
    let mut yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("wait"), "").unwrap();
    yard.start_rollout(yard.payload("plain"));
    let pid = yard.once_in_the_middle()["pid"].clone();
    for _ in 0..2 {
        let (status, run) = yard.server.post("/api/runs/default/generator/stop", json!({}));
        assert_eq!((status, &run["generator"]["state"]), (200, &json!("stopped")), "{run:#}");
        assert!(!is_alive(&pid));
    }
    yard.restart();
    assert_eq!(yard.generator()["state"], "stopped");
    fs::remove_file(yard.path("wait")).unwrap();
    let (status, _) = yard.server.post("/api/runs/default/generator/start", json!({}));
    assert_eq!(status, 200);
    yard.once("finished");
    yard.check_all_made_once();
}

#[test]
fn other_work_takes_the_place_of_what_runs() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("wait"), "").unwrap();
    yard.start_rollout(yard.payload("plain"));
    let pid = yard.once_in_the_middle()["pid"].clone();
    fs::remove_file(yard.path("wait")).unwrap();
    let mut other = yard.payload("plain");
    other["num_epoch"] = json!(2);
    let answered = yard.start_rollout(other);
    assert!(answered == "replaced" || answered == "started", "{answered}");
    yard.once("finished");
    assert!(!is_alive(&pid));
    assert_eq!(
        yard.start_rollout(json!({"task_type": "default"})),
        "external: rollouts are awaited at /buffer/write"
    );
}

#[test]
fn a_server_that_starts_again_goes_on_with_its_generators() {
    let mut yard = Yard::start(&[("a_generator.py", PLAIN)]);
    fs::write(yard.path("wait"), "").unwrap();
    yard.start_rollout(yard.payload("plain"));
    let pid = yard.once_in_the_middle()["pid"].clone();
    yard.restart();
    assert!(!is_alive(&pid));
    fs::remove_file(yard.path("wait")).unwrap();
    let generator = yard.once("finished");
    assert!(has_line(&generator, "begins with 2 skipped"), "{generator:#}");
    yard.check_all_made_once();
}

#[test]
fn a_changed_file_is_used_as_it_is_now_and_a_bad_change_is_told() {
    let yard = Yard::start(&[("a_generator.py", PLAIN)]);
    let file = yard.path("generators/a_generator.py");
    let found = |what: &str, holds: &dyn Fn(&Value) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (_, found) = yard.server.get("/api/generators");
            if holds(&found) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {found:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    found("the first", &|found| found["generators"][0]["task_type"] == "plain");
    fs::write(&file, "TASK_TYPE = ").unwrap();
    found("a problem, and the version before", &|found| {
        let problem = found["problems"][0]["problem"].as_str().unwrap_or_default();
        problem.contains("stays in use") && found["generators"][0]["task_type"] == "plain"
    });
    fs::write(&file, HOOKED).unwrap();
    found("the new one", &|found| {
        found["generators"][0]["task_type"] == "hooked" && found["problems"] == json!([])
    });
    fs::write(yard.path("generators/b_generator.py"), PLAIN).unwrap();
    found("two", &|found| found["generators"].as_array().unwrap().len() == 2);
    fs::remove_file(&file).unwrap();
    found("one", &|found| found["generators"].as_array().unwrap().len() == 1);
}

#[test]
fn hooks_of_the_file_turn_the_knobs_unless_the_payload_does() {
    let yard = Yard::start(&[("a_generator.py", PLAIN), ("b_generator.py", HOOKED)]);
    let names = ["validate", "transform", "filter", "normalize", "pad", "meta"];
    let knobs = || names.map(|name| yard.run()["config"][name].as_str().unwrap().to_owned());
    let before = knobs();
    let mut payload = yard.payload("hooked");
    yard.start_rollout(payload.clone());
    assert_eq!(knobs(), names.map(|_| "hook"));
    payload["pad"] = json!("none");
    yard.start_rollout(payload);
    assert_eq!(knobs(), ["hook", "hook", "hook", "hook", "none", "hook"]);
    yard.start_rollout(yard.payload("plain"));
    let mut expected = before;
    // It was said, not a hook, so it stays.
    expected[4] = "none".to_owned();
    assert_eq!(knobs(), expected);
}

/// A server that is asked for the built-in task, and the engine that the task asks.
fn with_engine(runtime: &tokio::runtime::Runtime) -> (Yard, TestEngine, Value) {
    let engine = runtime.block_on(TestEngine::start(rollyard_test_engine::Settings::default())).unwrap();
    let yard = Yard::start(&[]);
    let problem = |n| json!({"instance_id": format!("i{n}"), "prompt": format!("{n}+1?"), "label": "1"});
    let problems: String = (0..5).map(|n| format!("{}\n", problem(n))).collect();
    fs::write(yard.path("input.jsonl"), problems).unwrap();
    let mut payload = yard.payload("math");
    payload["remote_engine_url"] = json!(format!("{}/v1", engine.url()));
    payload["sampling_params"] = json!({"max_tokens": 8, "temperature": 1.0});
    (yard, engine, payload)
}

#[test]
fn the_built_in_task_makes_its_rollouts_in_the_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut yard, _engine, payload) = with_engine(&runtime);
    assert_eq!(yard.start_rollout(payload.clone()), "started");
    let generator = yard.once("finished");
    assert_eq!(generator["kind"], "built_in");
    assert_eq!(generator["progress"]["written"], 10, "{generator:#}");
    let run = yard.run();
    assert_eq!((&run["config"]["version_spread_max"], &run["books"]["admitted"]), (&json!(1), &json!(10)));

    // Everything is known by its name, also to the next server.
    yard.restart();
    assert_eq!(yard.generator()["state"], "finished");
    assert_eq!(yard.start_rollout(payload), "started");
    let run = yard.eventually("all known", |run| run["generator"]["progress"]["known"] == 10);
    assert_eq!(run["books"]["admitted"], 10);
}

#[test]
fn a_tokenizer_outside_of_the_named_folders_is_not_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (yard, _engine, mut payload) = with_engine(&runtime);
    // A folder that would be an error if anybody looked into it.
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("tokenizer.json"), "not JSON").unwrap();
    payload["tokenizer_path"] = json!(elsewhere.path());
    yard.start_rollout(payload);
    let generator = yard.once("finished");
    assert!(has_line(&generator, "rollouts are text only"), "{generator:#}");
    assert_eq!(yard.run()["books"]["admitted"], 10);
}

#[test]
fn the_built_in_task_is_stopped_and_gone_on_with() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut yard, engine, payload) = with_engine(&runtime);
    engine.change(|settings| settings.hang = true);
    let under_way = |run: &Value| run["generator"]["progress"]["in_flight"] == 10;
    yard.start_rollout(payload.clone());
    yard.eventually("requests", under_way);
    assert_eq!(yard.start_rollout(payload), "running");
    let (status, run) = yard.server.post("/api/runs/default/generator/stop", json!({}));
    assert_eq!((status, &run["generator"]["state"]), (200, &json!("stopped")), "{run:#}");

    yard.server.post("/api/runs/default/generator/start", json!({}));
    yard.eventually("requests again", under_way);
    yard.restart();
    yard.eventually("requests of the next server", under_way);
    engine.change(|settings| settings.hang = false);
    // What hangs stays so: the engine is asked anew.
    yard.server.post("/api/runs/default/generator/stop", json!({}));
    yard.server.post("/api/runs/default/generator/start", json!({}));
    yard.once("finished");
    assert_eq!(yard.run()["books"]["admitted"], 10);
}
