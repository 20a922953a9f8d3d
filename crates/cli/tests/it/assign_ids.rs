//! Ids for data sets.

use crate::program::{Outcome, rollyard, run};
use std::path::Path;

fn assign(dir: &Path, flags: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.args(["assign-ids", "--input", "data.jsonl"]).args(flags);
    run(program)
}

#[test]
fn lines_without_an_id_get_the_next_free_one() {
    for (before, flags, after) in [
        ("", &[][..], ""),
        (
            "{\"a\": 1}\n{\"a\": 2}\n",
            &[],
            "{\"a\": 1, \"instance_id\": \"math_0\"}\n{\"a\": 2, \"instance_id\": \"math_1\"}\n",
        ),
        // No newline at the end, a blank line, Windows line ends: all stay.
        (
            "{\"a\":1}\r\n\r\n{\"a\":2}",
            &[],
            "{\"a\":1, \"instance_id\": \"math_0\"}\r\n\r\n{\"a\":2, \"instance_id\": \"math_1\"}",
        ),
        // Taken further down, so not given out before.
        (
            "{}\n{}\n{\"instance_id\": \"math_1\"}\n{}",
            &[],
            "{\"instance_id\": \"math_0\"}\n{\"instance_id\": \"math_2\"}\n{\"instance_id\": \"math_1\"}\n{\"instance_id\": \"math_3\"}",
        ),
        // Not the ids of this task.
        (
            "{\"instance_id\": \"math_0\"}\n{\"instance_id\": 0}\n{\"instance_id\": \"code_00\"}\n{}",
            &["--task-type", "code"],
            "{\"instance_id\": \"math_0\"}\n{\"instance_id\": 0}\n{\"instance_id\": \"code_00\"}\n{\"instance_id\": \"code_0\"}",
        ),
        ("{\"instance_id\": null}\n", &[], "{\"instance_id\": \"math_0\"}\n"),
        // A name that JSON must escape.
        ("{}", &["--task-type", "a\"b"], "{\"instance_id\": \"a\\\"b_0\"}"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data.jsonl");
        std::fs::write(&file, before).unwrap();
        let outcome = assign(dir.path(), flags);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
        assert_eq!(assign(dir.path(), flags).code, Some(0));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "a second time changes nothing");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_is_changed() {
    for (text, parts) in [
        ("{}\n{}\n{\"a\": }\n", &["line 3", "data.jsonl"][..]),
        ("{}\n[1]\n", &["line 2", "JSON object"]),
        ("{}\n{\"instance_id\": []}\n", &["line 2", "instance_id is []"]),
        ("{}\n{\"a\": 1", &["line 2"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data.jsonl");
        std::fs::write(&file, text).unwrap();
        for flags in [&[][..], &["--output", "new.jsonl"]] {
            let outcome = assign(dir.path(), flags);
            assert_eq!(outcome.code, Some(1), "{outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
            for part in parts {
                assert!(outcome.stderr.contains(part), "{part:?} is not in {:?}", outcome.stderr);
            }
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        }
    }
}

#[test]
fn an_output_leaves_the_input_alone_and_links_and_rights_as_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("data.jsonl"), "{}\n").unwrap();
    std::fs::write(at("real.jsonl"), "old").unwrap();
    std::fs::set_permissions(at("real.jsonl"), PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.jsonl", at("link.jsonl")).unwrap();
    assert_eq!(assign(dir.path(), &["--output", "link.jsonl"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(at("data.jsonl")).unwrap(), "{}\n");
    assert_eq!(std::fs::read_to_string(at("real.jsonl")).unwrap(), "{\"instance_id\": \"math_0\"}\n");
    assert!(at("link.jsonl").is_symlink());
    assert_eq!(std::fs::metadata(at("real.jsonl")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_that_is_not_there_or_a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = assign(dir.path(), &[]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("cannot read") && outcome.stderr.contains("data.jsonl"), "{outcome:?}");
    std::fs::write(dir.path().join("data.jsonl"), "{}\n").unwrap();
    let outcome = assign(dir.path(), &["--output", "/proc/x.jsonl"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("cannot write") && outcome.stderr.contains("/proc/x.jsonl"),
        "{outcome:?}"
    );
}
