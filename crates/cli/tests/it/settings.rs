//! Where settings come from, and what wins.

use crate::program::{Outcome, Server, rollyard, run};
use serde_json::json;

/// What `--show-config` says with this file, these variables and these flags.
fn show(file: &str, variables: &[(&str, &str)], flags: &[&str]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    if !file.is_empty() {
        std::fs::write(dir.path().join("rollyard.toml"), file).unwrap();
    }
    let mut program = rollyard(dir.path());
    program.args(["serve", "--show-config"]).args(flags).envs(variables.iter().copied());
    run(program)
}

/// The line of a setting, with its spaces made one.
fn line(outcome: &Outcome, name: &str) -> String {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let mut lines = outcome.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.find(|line| line.trim_start_matches("# ").starts_with(name)).unwrap_or_default()
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_defaults() {
    const FILE: &str = "[run]\ngroup_size = 3\n";
    const VARIABLE: &[(&str, &str)] = &[("ROLLYARD_GROUP_SIZE", "4")];
    const FLAG: &[&str] = &["--group-size", "5"];
    for (file, variables, flags, expected) in [
        ("", &[][..], &[][..], "group_size = 8 # default"),
        (FILE, &[], &[], "group_size = 3 # rollyard.toml"),
        (FILE, VARIABLE, &[], "group_size = 4 # ROLLYARD_GROUP_SIZE"),
        (FILE, VARIABLE, FLAG, "group_size = 5 # --group-size"),
        ("", VARIABLE, FLAG, "group_size = 5 # --group-size"),
        (FILE, &[], FLAG, "group_size = 5 # --group-size"),
    ] {
        assert_eq!(line(&show(file, variables, flags), "group_size ="), expected);
    }
}

#[test]
fn every_kind_of_value_can_come_from_every_place() {
    let file = "[server]\nallow_host = [\"a\", \"b\"]\nmax_body_bytes = 1000\ntoken = \"s3cret\"\n\
                [run]\nauto_commit = false\nreward_min = -1.5\npad = \"mask\"\n";
    let variables = [
        ("ROLLYARD_ALLOW_HOST", "a, b"),
        ("ROLLYARD_MAX_BODY_BYTES", "1000"),
        ("ROLLYARD_TOKEN", "s3cret"),
        ("ROLLYARD_AUTO_COMMIT", "false"),
        ("ROLLYARD_REWARD_MIN", "-1.5"),
        ("ROLLYARD_PAD", "mask"),
    ];
    let flags = [
        "--allow-host",
        "a",
        "--allow-host",
        "b",
        "--max-body-bytes",
        "1000",
        "--token",
        "s3cret",
        "--auto-commit",
        "false",
        "--reward-min",
        "-1.5",
        "--pad",
        "mask",
    ];
    for outcome in [show(file, &[], &[]), show("", &variables, &[]), show("", &[], &flags)] {
        for expected in [
            "allow_host = [\"a\", \"b\"]",
            "max_body_bytes = 1000",
            "token = \"***\"",
            "auto_commit = false",
            "reward_min = -1.5",
            "pad = \"mask\"",
        ] {
            let name = expected.split_once('=').unwrap().0;
            assert!(
                line(&outcome, &format!("{name}=")).starts_with(expected),
                "{expected}: {}",
                outcome.stdout
            );
        }
        assert!(!outcome.stdout.contains("s3cret"), "{}", outcome.stdout);
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    let shown = show("", &[], &["--group-size", "16", "--root", "/tmp", "--listen", "localhost:9999"]);
    let again = show(&shown.stdout, &[], &[]);
    assert_eq!(line(&again, "group_size ="), "group_size = 16 # rollyard.toml");
    assert_eq!(line(&again, "root ="), "root = [\"/tmp\"] # rollyard.toml");
    assert_eq!(line(&again, "listen ="), "listen = \"localhost:9999\" # rollyard.toml");
}

#[test]
fn a_named_file_is_read_instead() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rollyard.toml"), "[run]\ngroup_size = 3\n").unwrap();
    std::fs::write(dir.path().join("other.toml"), "[run]\ngroup_size = 6\n").unwrap();
    let mut program = rollyard(dir.path());
    program.args(["serve", "--show-config", "--config", "other.toml"]);
    assert_eq!(line(&run(program), "group_size ="), "group_size = 6 # other.toml");
    let mut program = rollyard(dir.path());
    program.args(["serve", "--show-config"]).env("ROLLYARD_CONFIG", "other.toml");
    assert_eq!(line(&run(program), "group_size ="), "group_size = 6 # other.toml");
}

#[test]
fn the_nearer_of_token_and_token_file_wins() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "from-file\n").unwrap();
    let path = file.to_str().unwrap();
    let outcome = show("[server]\ntoken = \"x\"\n", &[], &["--token-file", path]);
    assert_eq!(line(&outcome, "token "), "# token # not set");
    assert!(line(&outcome, "token_file").ends_with("# --token-file"), "{}", outcome.stdout);
}

#[test]
fn math_brings_its_rule_unless_told_otherwise() {
    let outcome = show("", &[], &["--task-type", "math"]);
    assert_eq!(line(&outcome, "validate ="), "validate = \"answered\" # task_type = \"math\"");
    let outcome = show("", &[], &["--task-type", "math", "--validate", "sized"]);
    assert_eq!(line(&outcome, "validate ="), "validate = \"sized\" # --validate");
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (file, variables, flags, parts) in [
        (
            "[run]\ngroup_sizes = 3\n",
            &[][..],
            &[][..],
            &["\"group_sizes\"", "[run]", "rollyard.toml", "group_size,"][..],
        ),
        ("[server]\nlistn = \"x\"\n", &[], &[], &["\"listn\"", "[server]", "rollyard.toml", "listen,"]),
        ("[server]\ngroup_size = 8\n", &[], &[], &["\"group_size\"", "[server]"]),
        ("group_size = 8\n", &[], &[], &["\"group_size\"", "[server] and [run]", "rollyard.toml"]),
        ("[runs]\ngroup_size = 8\n", &[], &[], &["\"runs\"", "[server] and [run]"]),
        ("[run\n", &[], &[], &["not TOML", "rollyard.toml"]),
        ("[run]\ngroup_size = 0\n", &[], &[], &["group_size = 0", "whole number", "rollyard.toml"]),
        ("[run]\nreward_max = inf\n", &[], &[], &["reward_max = \"inf\"", "rollyard.toml"]),
        ("[server]\nroot = 7\n", &[], &[], &["root = 7", "list of texts", "rollyard.toml"]),
        ("", &[("ROLLYARD_GROUP_SIZE", "many")], &[], &["group_size", "\"many\"", "ROLLYARD_GROUP_SIZE"]),
        (
            "",
            &[("ROLLYARD_LOG_LEVEL", "loud")],
            &[],
            &["log_level = \"loud\"", "\"warn\"", "ROLLYARD_LOG_LEVEL"],
        ),
        ("", &[("ROLLYARD_CONFIG", "missing.toml")], &[], &["cannot read the settings", "missing.toml"]),
        ("", &[], &["--config", "missing.toml"], &["cannot read the settings", "missing.toml"]),
        ("", &[], &["--group-size", "-3"], &["group_size", "-3", "--group-size"]),
        ("", &[], &["--pad", "zeros"], &["pad", "zeros", "repeat", "--pad"]),
        ("", &[], &["--reward-min", "2"], &["reward_min", "2", "--reward-min"]),
        ("", &[], &["--listen", "8889"], &["listen", "\"8889\"", "127.0.0.1:8889", "--listen"]),
        ("", &[], &["--max-body-bytes", "0"], &["max_body_bytes", "above 0"]),
        ("", &[], &["--compress-answers", "maybe"], &["compress_answers", "\"maybe\"", "remote"]),
        ("", &[], &["--token", "s3 cret"], &["token", "without spaces", "--token"]),
        ("", &[], &["--token", ""], &["token", "--token"]),
        ("", &[], &["--token-file", "missing"], &["cannot read the token", "missing"]),
        ("", &[], &["--token", "a", "--token-file", "b"], &["both token and token_file", "flags"]),
        ("", &[], &["--listen", "0.0.0.0:8889"], &["0.0.0.0:8889", "token", "--token-file", "127.0.0.1"]),
        ("", &[], &["--listen", "[::]:8889"], &["[::]:8889", "token"]),
        ("", &[], &["--log", "redis://a:1"], &["log = \"redis://a:1\"", "nats://host:4222", "--log"]),
        ("", &[], &["--log", "nats://a:1,b"], &["log = \"nats://a:1,b\"", "nats://host:4222"]),
        ("", &[], &["--log", "nats://u:s3cret@a,x"], &["log = \"nats://a,x\""]),
        ("", &[], &["--log", "nats://a", "--log-replicas", "6"], &["log_replicas", "6", "from 1 to 5"]),
        ("", &[], &["--log", "nats://a", "--log-replicas", "0"], &["log_replicas", "from 1 to 5"]),
        ("", &[], &["--log", "nats://a", "--log-yard", "a_b"], &["log_yard", "\"a_b\"", "letters"]),
        ("", &[], &["--log", "nats://a", "--log-credentials", "none"], &["log_credentials", "\"none\""]),
        ("", &[], &["--log", "nats://a", "--log-max-bytes", "much"], &["log_max_bytes", "\"much\"", "bytes"]),
        (
            "",
            &[],
            &["--log", "nats://a", "--blobs", "ftp://x"],
            &["blobs", "\"ftp://x\"", "s3://bucket/prefix"],
        ),
        ("", &[], &["--log", "nats://a", "--archive", "x"], &["archive and log", "rollyard ledger copy"]),
        ("", &[], &["--log", "nats://a", "--node", "a/b"], &["node = \"a/b\"", "letters"]),
        ("", &[], &["--log", "nats://a", "--advertise", "host"], &["advertise", "\"host\"", "http://"]),
        (
            "",
            &[],
            &["--log", "nats://a", "--advertise", "http://0.0.0.0:1"],
            &["advertise", "0.0.0.0", "reach"],
        ),
        (
            "",
            &[],
            &["--log", "nats://a", "--listen", "0.0.0.0:8889", "--token", "x"],
            &["0.0.0.0:8889", "--advertise http://HOST:8889"],
        ),
        ("", &[], &["--node", "a"], &["node = \"a\"", "without log", "--log nats://HOST:4222"]),
        ("[server]\nlog = 7\n", &[], &[], &["log = 7", "rollyard.toml"]),
    ] {
        let outcome = show(file, variables, flags);
        assert_eq!(outcome.code, Some(2), "{file:?} {variables:?} {flags:?}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part:?} is not in {:?}", outcome.stderr);
        }
        let is_told = ["s3 cret", "s3cret"].iter().any(|secret| outcome.stderr.contains(secret));
        assert!(!is_told, "the secret is told: {}", outcome.stderr);
    }
}

#[test]
fn the_servers_of_the_log_are_shown_without_their_password() {
    let outcome = show("", &[], &["--log", "nats://u:s3cret@a:4222"]);
    assert_eq!(line(&outcome, "log ="), "log = \"***\" # --log");
    let outcome = show("", &[("ROLLYARD_LOG", "nats://a:4222,nats://b:4222")], &[]);
    assert_eq!(line(&outcome, "log ="), "log = [\"nats://a:4222\", \"nats://b:4222\"] # ROLLYARD_LOG");
}

#[test]
fn other_addresses_are_fine_with_a_token() {
    assert_eq!(show("", &[], &["--listen", "0.0.0.0:8889", "--token", "x"]).code, Some(0));
    assert_eq!(show("", &[("ROLLYARD_TOKEN", "x")], &["--listen", "[::]:8889"]).code, Some(0));
    assert_eq!(show("", &[], &["--listen", "[::1]:8889"]).code, Some(0));
}

#[test]
fn the_default_run_keeps_the_knobs_that_are_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "3", "--keep-commits", "5"]);
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(dir.path(), &["--keep-commits", "6"]);
    let config = server.client().get("/api/runs/default").1["config"].clone();
    assert_eq!((&config["group_size"], &config["keep_commits"]), (&json!(3), &json!(6)), "{config}");
}

#[test]
fn a_stray_variable_is_mentioned() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    // The folder cannot be used, so the server ends at once, after it has read its settings.
    program.args(["serve", "--data", "/proc/x", "--listen", "127.0.0.1:0"]).env("ROLLYARD_GROUPSIZE", "4");
    let outcome = run(program);
    assert!(outcome.stderr.contains("ROLLYARD_GROUPSIZE is not a setting"), "{outcome:?}");
}
