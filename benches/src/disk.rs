//! The disk on its own: how fast a bare log could be, how much room there is, and forgetting what is cached.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{Advice, fadvise, statvfs};

use crate::items::{DEFAULT_RUN, Request, Sequence};

/// Appends items to one file, with an fdatasync after every `items_per_sync`, for this long: items per second.
///
/// Nothing is parsed, indexed or answered; it is the ceiling for anything durable on this disk.
pub(crate) fn bare_append(under: &Path, items_per_sync: u64, window: Duration) -> Result<f64> {
    let mut sequence = Sequence::new('b', 8);
    let folder = tempfile::Builder::new().prefix("bare-").tempdir_in(under)?;
    let mut file = OpenOptions::new().create_new(true).append(true).open(folder.path().join("log"))?;
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut items: Vec<Request> =
        (0..items_per_sync).map(|seed| Request::single(nowhere, DEFAULT_RUN, seed + 1)).collect();
    let begin = Instant::now();
    let mut written = 0;
    while begin.elapsed() < window {
        for item in &mut items {
            item.stamp(&mut sequence);
            file.write_all(item.body())?;
        }
        file.sync_data()?;
        written += items_per_sync;
    }
    Ok(written as f64 / begin.elapsed().as_secs_f64())
}

pub(crate) fn require_free_bytes(under: &Path, needed: u64) -> Result<()> {
    let stats = statvfs(under).with_context(|| format!("{}", under.display()))?;
    let free = stats.f_bavail * stats.f_frsize;
    ensure!(
        free >= needed,
        "needs {:.1} GB of disk and {:.1} GB are free; choose another --dir or fewer --items: {}",
        needed as f64 / 1e9,
        free as f64 / 1e9,
        under.display()
    );
    Ok(())
}

/// Asks the kernel to drop the cached pages of all files below, so that the next read comes from the disk.
pub(crate) fn evict(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            evict(&entry.path())?;
        } else {
            let file = File::open(entry.path())?;
            // Dirty pages are not dropped, so they go to the disk first.
            file.sync_data()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
