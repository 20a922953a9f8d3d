//! A run to look at before there is one of one's own: for a first visit, for tests of the viewer, for pictures.
//!
//! Four kinds of tasks, 60 steps, groups of 8; the same prompts come again every 15 steps. It learns, it gets worse
//! at one thing for a while, its answers to another grow longer, and among its rollouts are the things that make
//! people look: answers that were found instead of worked out, tests that were rewritten, loops, thoughts that never
//! end, rows that are broken. Nothing in it is drawn at random: it is the same, byte for byte, wherever it is written.

mod chance;
mod chat;
mod code;
mod math;
mod run;
mod search;
mod task;
mod tokens;

pub use run::{Example, SOURCES, STEPS};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    #[error("the example run cannot be written: {error}: {}", path.display())]
    Write { error: io::Error, path: PathBuf },
}

/// Writes the files of the example run into a folder of its own, unless they are there.
pub fn write(dir: &Path) -> Result<(), ExampleError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| ExampleError::Write { error, path }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    for (name, bytes) in &Example::make().files {
        let path = dir.join(name);
        // A file that is open in a view must not change under it for nothing.
        if fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        let unfinished = dir.join(format!(".{name}.{}", std::process::id()));
        fs::write(&unfinished, bytes).map_err(failed(&unfinished))?;
        fs::rename(&unfinished, &path).map_err(failed(&path))?;
    }
    Ok(())
}
