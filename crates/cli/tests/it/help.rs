//! What the program says about itself.

use crate::program::{rollyard, run};

fn help(command: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(command).arg("--help");
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

#[test]
fn every_command_shows_an_example() {
    for command in [
        vec!["serve"],
        vec!["stats"],
        vec!["assign-ids"],
        vec!["tokens"],
        vec!["engine"],
        vec!["engine", "check"],
        vec!["tiny"],
        vec!["tiny", "serve"],
        vec!["tiny", "tokenizer"],
        vec!["run"],
        vec!["demo"],
        vec!["demo", "sweep"],
        vec!["demo", "yard"],
        vec!["query"],
        vec!["grep"],
        vec!["convert"],
        vec!["view"],
        vec!["ledger"],
        vec!["ledger", "rollout"],
        vec!["ledger", "step"],
        vec!["ledger", "check"],
        vec!["ledger", "events"],
        vec!["ledger", "copy"],
    ] {
        let text = help(&command);
        let example = format!("Example:\n    rollyard {}", command[0]);
        assert!(text.contains(&example), "{command:?}: {text}");
    }
}

#[test]
fn every_knob_is_a_flag_with_its_default() {
    let text = help(&["serve"]);
    let defaults = rollyard_core::run_config::RunConfig::default().to_map();
    for knob in rollyard_core::run_config::KNOBS {
        let flag = format!("--{} <", knob.name.replace('_', "-"));
        let after = text.split_once(&flag).unwrap_or_else(|| panic!("{flag} is missing")).1;
        let shown =
            defaults[knob.name].as_str().map_or_else(|| defaults[knob.name].to_string(), str::to_owned);
        let words: String =
            after.split("      --").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("[default: {shown}]")), "{flag}: {words}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.arg("--version");
    assert_eq!(run(program).stdout, format!("rollyard {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_ends_with_code_2() {
    for args in
        [vec![], vec!["serv"], vec!["serve", "--group-sizes", "8"], vec!["assign-ids"], vec!["ledger"]]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut program = rollyard(dir.path());
        program.args(&args);
        let outcome = run(program);
        assert_eq!(outcome.code, Some(2), "{args:?}: {outcome:?}");
    }
}
