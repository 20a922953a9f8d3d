//! The demo keeps its promises, and leaves nothing behind.

use crate::program::{rollyard, run};

#[test]
fn the_demo_survives_its_own_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["demo", "--writers", "8", "--rollouts", "400", "--dir", "kept"]).env("TMPDIR", dir.path());
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("400 writes were answered"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('✗'), "{}", outcome.stdout);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"]);

    let mut program = rollyard(dir.path());
    program.args(["demo", "--dir", "kept"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("not empty"), "{outcome:?}");
}
