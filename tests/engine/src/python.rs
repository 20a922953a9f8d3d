//! Where the tests find a Python that has the package.

use std::path::{Path, PathBuf};

/// Names another interpreter.
const VARIABLE: &str = "ROLLYARD_PYTHON";

/// The interpreter that is named, or else the one that `make` installs the package for.
///
/// # Panics
/// If there is none: a test that needs it has to fail, and to say why.
pub fn interpreter() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os(VARIABLE).map_or(made, PathBuf::from);
    assert!(
        python.exists(),
        "no interpreter has the package rollyard; `make test-rust` installs it, and {VARIABLE} names another: {}",
        python.display()
    );
    python
}
