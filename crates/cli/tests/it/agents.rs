//! Programs that only know `OPENAI_BASE_URL` become rollouts.

use crate::program::Server;
use crate::run::{accepted, engine, exact, lines, prompts, start, wait_until};
use rollyard_core::wire::rollout;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

/// The agent of the gateway's own tests, told what to do.
fn agent(how: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/tests/it/agent.py");
    format!("python3 {} {how}", script.display())
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn every_episode_of_an_agent_is_exact_to_the_token() {
    let (dir, engine) = (prompts(3), engine(|_| {}));
    let agent = agent("chat {prompt} 'and then?'");
    let flags = ["--agent", agent.as_str(), "--group-size", "2", "--concurrency", "4", "--out", "out"];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("3 accepted"), "{outcome:?}");
    let lines = lines(&dir.path().join("out/rollouts.jsonl"));
    assert!(accepted(&lines).values().all(|group| *group == [0, 1]));
    assert_eq!(lines.len(), 6);
    for line in &lines {
        let rollout = rollout::decode(line.to_string().as_bytes()).unwrap();
        assert!(rollout.is_exact());
        assert_eq!(rollout.episode_reward, 0.5);
    }
    // What is there is not made again, and another agent does not go into the same folder.
    let asked = engine.engine.counters().requests;
    assert!(exact(dir.path(), &engine, &flags).stderr.contains("nothing is missing"));
    assert_eq!(engine.engine.counters().requests, asked);
    let other = exact(dir.path(), &engine, &["--agent", "true", "--group-size", "2", "--out", "out"]);
    assert!(other.stderr.contains("the folder holds a run with agent"), "{other:?}");
}

#[test]
fn a_reward_of_ours_judges_an_agent_and_its_rollouts_go_to_a_yard() {
    let (dir, engine) = (prompts(2), engine(|_| {}));
    let server = Server::start(dir.path(), &[]);
    let out = format!("{}/runs/agents", server.url);
    let agent = agent("chat {prompt}");
    // Otherwise all members would be worth the same, and the yard would drop the group.
    let reward = r#"cmd:python3 -c "import json,sys; print(json.load(sys.stdin)['context']['sample_idx'])""#;
    let flags = ["--agent", agent.as_str(), "--reward", reward, "--group-size", "2", "--out", out.as_str()];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("mean reward 0.500"), "{outcome:?}");
    let (_, books) = server.client().get("/api/runs/agents/books");
    assert_eq!(books["admitted"], 4, "{books}");
}

#[test]
fn an_agent_that_fails_says_why_and_the_others_go_on() {
    let (dir, engine) = (prompts(3), engine(|_| {}));
    let agent =
        format!("case {{prompt}} in 1*) echo 'no luck' >&2; exit 7;; *) {};; esac", agent("chat {prompt}"));
    let flags = ["--agent", agent.as_str(), "--attempts", "2", "--out", "out"];
    let outcome = exact(dir.path(), &engine, &flags);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("2 accepted, 0 rejected, 1 failed"), "{outcome:?}");
    assert!(outcome.stderr.contains("it ended with exit status: 7: no luck"), "{outcome:?}");
}

#[test]
fn ctrl_c_ends_the_agents_with_their_children() {
    let (dir, engine) = (prompts(1), engine(|_| {}));
    let agent = agent("hangs pids");
    let child = start(dir.path(), &engine, &["--agent", agent.as_str(), "--out", "out"]);
    let pids = || std::fs::read_to_string(dir.path().join("pids")).unwrap_or_default();
    wait_until("the agent runs", || pids().contains(' '));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped; what was made is kept"));
    for pid in pids().split(' ') {
        wait_until("the agent is gone", || is_gone(pid));
    }
}

#[test]
fn what_an_agent_cannot_be_told_is_said_before_it_runs() {
    let (dir, engine) = (prompts(1), engine(|_| {}));
    for (flags, told) in [
        (vec!["--stop", "x"], "stop is given, but an agent says that itself with every call; leave it out"),
        (vec!["--system", "x"], "--system is given, but an agent says and calls what it wants itself"),
        (vec!["--dialect", "openai"], "an openai engine takes no token ids"),
        (vec!["--workflow", "single-turn"], "cannot be used with"),
    ] {
        let flags = [vec!["--agent", "true", "--out", "out"], flags].concat();
        let outcome = exact(dir.path(), &engine, &flags);
        assert_ne!(outcome.code, Some(0));
        assert!(outcome.stderr.contains(told), "{flags:?}: {outcome:?}");
    }
    assert!(
        exact(dir.path(), &engine, &["--agent", " ", "--out", "out"]).stderr.contains("command is empty")
    );
    assert_eq!(engine.engine.counters().requests, 0);
}
