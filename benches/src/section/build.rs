//! How long a newcomer waits for the binary: a clean release build, sources already downloaded.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::setup::{Setup, repository};
use crate::table::{Bar, Row, seconds};

pub(crate) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let target = tempfile::Builder::new().prefix("build-").tempdir_in(&setup.dir)?;
    cargo(&["fetch"])?;
    let target_dir = target.path().canonicalize()?.display().to_string();
    let begin = Instant::now();
    cargo(&["build", "--release", "--package", "rollyard", "--target-dir", &target_dir])?;
    let elapsed = begin.elapsed().as_secs_f64();
    Ok(vec![Row::value("clean release build", elapsed, seconds, Bar::Below { limit: 360.0, unit: "s" })])
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    // A compiler cache would make the build look shorter than it is.
    command
        .args(arguments)
        .current_dir(repository())
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_BUILD_JOBS");
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
