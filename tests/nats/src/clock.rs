//! A clock of its own for a process: libfaketime, of Debian's package `faketime`.
//!
//! Only the time of day is shifted. The clock that measures waits stays true, as it does when an administrator or
//! NTP sets a real clock.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Names another library.
const VARIABLE: &str = "ROLLYARD_FAKETIME";

/// Goes on for as long as its value.
#[derive(Debug)]
pub struct Clock {
    folder: TempDir,
}

impl Clock {
    /// Off by so many seconds.
    ///
    /// # Panics
    /// If the library is missing: a test that needs it has to fail, and to say what to do.
    pub fn off_by(secs: i64) -> Self {
        let clock = Self { folder: tempfile::tempdir().expect("a folder for the clock") };
        clock.set(secs);
        clock
    }

    /// Off by another number of seconds from now on; processes look once a second.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn set(&self, secs: i64) {
        // Renamed into place: half a number would be another time.
        let next = self.folder.path().join("next");
        std::fs::write(&next, format!("{secs:+}\n")).expect("the folder takes a file");
        std::fs::rename(next, self.file()).expect("the folder takes a file");
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// What a process that has this clock needs in its environment.
    pub(crate) fn vars(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("LD_PRELOAD", library()),
            ("FAKETIME_TIMESTAMP_FILE", self.file()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}

fn library() -> PathBuf {
    let multiarch = format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH);
    let usual = ["/usr/lib64/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1"];
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let places = named.into_iter().chain([multiarch.into()]).chain(usual.map(PathBuf::from));
    let found = places.into_iter().find(|path: &PathBuf| Path::exists(path));
    found.unwrap_or_else(|| {
        panic!(
            "no libfaketime to test clocks with: run `make test` as root, or `apt-get install faketime`; \
             {VARIABLE} names the library elsewhere"
        )
    })
}
