//! Prompts become groups of rollouts.

use crate::program::{Outcome, Server, rollyard, run};
use crate::tokens::with;
use rollyard_core::wire::rollout;
use rollyard_test_engine::{Settings, TestEngine};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A test engine on threads of its own.
pub(crate) struct Engine {
    pub(crate) engine: TestEngine,
    _runtime: tokio::runtime::Runtime,
}

pub(crate) fn engine(change: impl FnOnce(&mut Settings)) -> Engine {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // Tokens that the model's tokenizer knows.
    let mut settings = Settings { vocabulary: 600, stop_one_in: 20, ..Settings::default() };
    change(&mut settings);
    let engine = runtime.block_on(TestEngine::start(settings)).unwrap();
    Engine { engine, _runtime: runtime }
}

/// A folder with a model and so many prompts in `data.jsonl`.
pub(crate) fn prompts(count: usize) -> tempfile::TempDir {
    let line = |n| json!({"instance_id": format!("q{n}"), "prompt": format!("{n}+{n}?"), "answer": 2 * n});
    with(&(0..count).map(|n| line(n).to_string()).collect::<Vec<_>>())
}

fn command(dir: &Path, engine: &Engine, flags: &[&str]) -> Command {
    let mut program = rollyard(dir);
    program.args(["run", "--input", "data.jsonl", "--engine", &engine.engine.url(), "--model", "model"]);
    program.args(["--max-new-tokens", "64"]).args(flags);
    program
}

pub(crate) fn exact(dir: &Path, engine: &Engine, flags: &[&str]) -> Outcome {
    run(command(dir, engine, flags))
}

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Places in the group by prompt, of what was accepted.
pub(crate) fn accepted(lines: &[Value]) -> BTreeMap<u64, Vec<u64>> {
    let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["attributes"]["status"] == "accepted") {
        let attributes = &line["attributes"];
        let group = groups.entry(attributes["sample_index"].as_u64().unwrap()).or_default();
        group.push(attributes["rollout_n"].as_u64().unwrap());
    }
    groups
}

#[test]
fn every_prompt_becomes_a_group_that_is_exact_to_the_token() {
    let (dir, engine) = (prompts(20), engine(|settings| settings.version = 7));
    let outcome =
        exact(dir.path(), &engine, &["--group-size", "4", "--reward", "math", "--out", "out", "--dump"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("20 accepted, 0 rejected, 0 failed; 80 episodes"), "{}", outcome.stderr);

    let lines = lines(&dir.path().join("out/rollouts.jsonl"));
    let groups = accepted(&lines);
    assert_eq!(groups.len(), 20);
    assert!(groups.values().all(|group| *group == [0, 1, 2, 3]), "{groups:?}");
    let mut answers = BTreeSet::new();
    for line in &lines {
        assert_eq!(line["is_exact"], true);
        let rollout = rollout::decode(line.to_string().as_bytes()).unwrap();
        assert!(rollout.versions().values().all(|version| version == 7));
        assert!(
            rollout.response_logprobs().is_some_and(|logprobs| logprobs.iter().all(|value| *value < 0.0))
        );
        answers.insert(rollout.tokens().to_vec());
    }
    assert_eq!(answers.len(), 80, "each member has a seed of its own");
    let dump = dir.path().join("out/dump/run/seed-0/rollout/0/3.jsonl");
    let text = std::fs::read_to_string(dump).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(first["prompt"].as_str().unwrap().contains("3+3?"), "{first}");
    assert_eq!((&first["head_version"], &first["tail_version"]), (&json!(7), &json!(7)));
}

#[test]
fn the_same_seed_makes_the_same_rollouts() {
    let (dir, engine) = (prompts(5), engine(|_| {}));
    let answers = |out: &str, seed: &str| -> Vec<Value> {
        let outcome = exact(dir.path(), &engine, &["--group-size", "2", "--seed", seed, "--out", out]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let mut lines = lines(&dir.path().join(out).join("rollouts.jsonl"));
        lines.sort_by_key(|line| line["uid"].to_string());
        lines.into_iter().map(|line| line["response_tokens"].clone()).collect()
    };
    assert_eq!(answers("a", "3"), answers("b", "3"));
    assert_ne!(answers("a", "3"), answers("c", "4"));
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn start(dir: &Path, engine: &Engine, flags: &[&str]) -> Child {
    let mut command = command(dir, engine, flags);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_run_that_is_killed_goes_on_and_makes_only_what_is_missing() {
    let (dir, engine) = (prompts(60), engine(|settings| settings.latency_ms = 5));
    let flags = ["--group-size", "3", "--concurrency", "12", "--out", "out"];
    let path = dir.path().join("out/rollouts.jsonl");
    for round in 1..=3 {
        let mut child = start(dir.path(), &engine, &flags);
        wait_until("lines are written", || accepted(&lines(&path)).len() > round * 12);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = accepted(&lines(&path)).len() as u64;
    let asked = engine.engine.counters().requests;
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    // The file may have ended in a line that was torn in the middle of its group.
    let made = (engine.engine.counters().requests - asked) / 3;
    assert!((60 - before..=61 - before).contains(&made), "{made} after {before}");
    let groups = accepted(&lines(&path));
    assert_eq!(groups.len(), 60);
    assert!(groups.values().all(|group| group.len() == 3), "nothing is there twice: {groups:?}");

    let asked = engine.engine.counters().requests;
    let outcome = exact(dir.path(), &engine, &flags);
    assert!(outcome.stderr.contains("nothing is missing: all 60 prompts are done"), "{}", outcome.stderr);
    assert_eq!(engine.engine.counters().requests, asked);
}

#[test]
fn ctrl_c_leaves_whole_groups_and_says_how_to_go_on() {
    let (dir, engine) = (prompts(60), engine(|settings| settings.latency_ms = 5));
    let flags = ["--group-size", "3", "--concurrency", "12", "--out", "out"];
    let path = dir.path().join("out/rollouts.jsonl");
    let child = start(dir.path(), &engine, &flags);
    wait_until("lines are written", || accepted(&lines(&path)).len() > 5);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("stopped; what was made is kept, and the same command goes on"), "{stderr}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with('\n'));
    assert!(accepted(&lines(&path)).values().all(|group| group.len() == 3));
    wait_until("the engine is left alone", || engine.engine.counters().in_flight == 0);
}

/// Every other member is right.
const MEMBER: &str =
    r#"cmd:python3 -c "import json,sys; print(json.load(sys.stdin)['context']['sample_idx'] % 2)""#;

#[test]
fn rollouts_go_to_a_yard_once_and_it_remembers_them() {
    let (dir, engine) = (prompts(12), engine(|_| {}));
    let server = Server::start(dir.path(), &[]);
    let out = format!("{}/runs/maths", server.url);
    // A group in which all are equal is not worth training on, and the yard would drop it.
    let flags = ["--group-size", "4", "--reward", MEMBER, "--out", out.as_str()];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let client = server.client();
    let (_, books) = client.get("/api/runs/maths/books");
    assert_eq!((&books["admitted"], &books["held"]), (&json!(48), &json!(48)), "{books}");
    let asked = engine.engine.counters().requests;
    let outcome = exact(dir.path(), &engine, &flags);
    assert!(outcome.stderr.contains("nothing is missing"), "{outcome:?}");
    assert_eq!(engine.engine.counters().requests, asked);
    let uids = leased(&client, "maths");
    assert_eq!(uids.len(), 48);
    let one = uids.first().unwrap();
    let (status, answer) = client.post("/api/runs/maths/known", &json!({"uids": ["nobody", one]}));
    assert_eq!((status, &answer["known"]), (200, &json!([one])));
    let (status, answer) = client.post("/api/runs/maths/known", &json!({"uids": vec!["x"; 10_001]}));
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("10001 entries"), "{answer}");
}

#[test]
fn a_group_that_came_out_smaller_is_closed_in_the_yard_and_not_made_again() {
    // One answer is refused for good, and its group has one member less.
    let (dir, engine) =
        (prompts(3), engine(|settings| (settings.fail_next, settings.fail_status) = (1, 400)));
    let server = Server::start(dir.path(), &[]);
    let out = format!("{}/runs/maths", server.url);
    let flags = ["--group-size", "4", "--concurrency", "4", "--reward", MEMBER, "--out", out.as_str()];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (_, books) = server.client().get("/api/runs/maths/books");
    assert_eq!(books["admitted"], 11, "{books}");
    let outcome = exact(dir.path(), &engine, &flags);
    assert!(outcome.stderr.contains("nothing is missing"), "{outcome:?}");
    let (_, stats) = server.client().get("/api/runs/maths");
    assert_eq!((&stats["open_groups"], &stats["ready_groups"]), (&json!(0), &json!(3)), "{stats}");
}

/// The uids of all groups that can be had of a run.
fn leased(client: &crate::program::Client, run: &str) -> BTreeSet<String> {
    let (status, answer) = client.post(&format!("/api/runs/{run}/lease"), &json!({"groups": 12}));
    assert_eq!(status, 200, "{answer}");
    let mut uids = BTreeSet::new();
    collect_uids(&answer, &mut uids);
    uids
}

fn collect_uids(value: &Value, uids: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(uid)) = fields.get("uid") {
                uids.insert(uid.clone());
            }
            fields.values().for_each(|value| collect_uids(value, uids));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_uids(value, uids)),
        _ => {}
    }
}

#[test]
fn bad_lines_are_named_and_the_rest_runs() {
    let engine = engine(|_| {});
    let good = r#"{"prompt": "1+1?"}"#.to_owned();
    let lines =
        [good.clone(), "{\"prompt\": 5}".into(), String::new(), "[1]".into(), "nonsense".into(), good];
    let dir = with(&lines);
    let outcome = exact(dir.path(), &engine, &["--out", "out"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for expected in [
        "line 2: field \"prompt\" is 5, but must be a text or a list of messages",
        "line 4: [1], but must be a JSON object",
        "line 5: not JSON",
        "2 accepted, 0 rejected, 0 failed",
        "3 lines of the input could not be read",
    ] {
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
    }
}

#[test]
fn a_run_in_which_everything_fails_says_why_and_can_be_run_again() {
    let (dir, engine) =
        (prompts(4), engine(|settings| (settings.fail_next, settings.fail_status) = (1000, 400)));
    let outcome = exact(dir.path(), &engine, &["--out", "out"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("all 4 tasks failed: 4 × the engine answered with status 400"),
        "{}",
        outcome.stderr
    );
    engine.engine.change(|settings| settings.fail_next = 0);
    let outcome = exact(dir.path(), &engine, &["--out", "out"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(accepted(&lines(&dir.path().join("out/rollouts.jsonl"))).len(), 4);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is() {
    let (dir, engine) = (prompts(2), engine(|_| {}));
    assert_eq!(exact(dir.path(), &engine, &["--out", "made"]).code, Some(0));
    let cases: [(&[&str], &str); 8] = [
        (&["--out", "made", "--seed", "9"], "the folder holds a run with seed 0, not 9; give another folder"),
        (&["--out", "made", "--temperature", "0.5"], "a run with sampling.temperature 1.0, not 0.5"),
        (&["--out", "x", "--reward", "maths!"], "no reward is called \"maths!\"; there are math, exact"),
        (&["--out", "x", "--dialect", "openai"], "an openai engine takes no token ids"),
        (&["--out", "x", "--incomplete", "keep"], "must be wait, replace, drop, accept, or accept:K"),
        (
            &["--out", "x", "--workflow", "nothing"],
            "there is no workflow \"nothing\"; there are single-turn, multi-turn, and module.Class for one in Python",
        ),
        (
            &["--out", "x", "--workflow", "multi-turn", "--tool", "none.json"],
            "the tool cannot be read (No such file",
        ),
        (&["--out", "http://127.0.0.1:1"], "the yard cannot be reached (Connection refused"),
    ];
    for (flags, expected) in cases {
        let outcome = exact(dir.path(), &engine, flags);
        assert!(outcome.code.is_some_and(|code| code > 0), "{flags:?}");
        assert!(outcome.stderr.contains(expected), "{flags:?}: {}", outcome.stderr);
    }
}

#[test]
fn an_engine_without_token_ids_is_not_taken_for_an_exact_one() {
    let (dir, engine) = (
        prompts(2),
        engine(|settings| {
            (settings.gives_token_ids, settings.gives_token_ids_as_words) = (false, false);
        }),
    );
    let outcome = exact(dir.path(), &engine, &["--dialect", "vllm", "--out", "out"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("exact tokens were asked for"), "{}", outcome.stderr);
}

#[test]
fn only_groups_with_something_to_learn_are_accepted_on_request() {
    let (dir, engine) = (prompts(6), engine(|_| {}));
    let reward = r#"cmd:python3 -c "import json,sys; d=json.load(sys.stdin); print(d['context']['sample_idx'] if d['data']['answer'] % 4 else 1)""#;
    let flags = ["--group-size", "2", "--accept", "varied", "--reward", reward, "--out", "out"];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("3 accepted, 3 rejected, 0 failed"), "{}", outcome.stderr);
    let lines = lines(&dir.path().join("out/rollouts.jsonl"));
    let rejected: Vec<_> = lines.iter().filter(|line| line["attributes"]["status"] == "rejected").collect();
    assert_eq!(rejected.len(), 6);
    assert!(rejected.iter().all(|line| line["attributes"]["reason"] == "the accept filter said no"));
}

#[test]
fn a_model_calls_a_program_and_is_told_what_it_says() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}}]});
    let engine = engine(|settings| settings.answers = vec![call, json!("It is \\boxed{5}.")]);
    let dir = with(&[json!({"prompt": "2+3?", "answer": 5}).to_string()]);
    let tool = json!({
        "function": {"name": "add", "parameters": {"type": "object"}},
        "command": "python3 -c \"import json,sys; d=json.load(sys.stdin); print(d['a']+d['b'])\"",
    });
    std::fs::write(dir.path().join("add.json"), tool.to_string()).unwrap();
    let mut program = rollyard(dir.path());
    program.args([
        "run",
        "--workflow",
        "multi-turn",
        "--tool",
        "add.json",
        "--input",
        "data.jsonl",
        "--out",
        "out",
    ]);
    program.args(["--engine", &engine.engine.url(), "--dialect", "openai", "--reward", "math"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines = lines(&dir.path().join("out/rollouts.jsonl"));
    let roles: Vec<_> =
        lines[0]["messages"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(lines[0]["messages"][2]["content"], "5");
    assert_eq!(lines[0]["reward"], 1.0);
}
