//! Compares the files with what the catalog knows of them.
//!
//! A file whose size and stamp are as they were is not opened. One that grew, and is at its front and around its last
//! known byte what it was, is read on from there. Anything else is read anew. A stamp is only as fine as the file
//! system's clock: a file that was written just before it was looked at is remembered with a hash of its content.

use super::sources::{Format, Reached, Source};
use crate::places::{FileInfo, PlaceError, Places, ReadAt};
use crate::records::identity;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A last line that nobody went on writing for so long is broken, and not half-written.
const SETTLED_MS: i64 = 10_000;
/// The clock of a file system may be this coarse.
const TICK_MS: i64 = 50;
/// Larger files take so long to write that a second look sees another size.
const HASHED_BYTES_MAX: u64 = 16 << 20;

/// A file to be read, from somewhere on.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub info: FileInfo,
    pub format: Format,
    /// Of a file that is read on; none is read from its front.
    pub known: Option<(i64, Reached)>,
    pub is_settled: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By URL, and fates after all rollouts.
    pub jobs: Vec<Job>,
    /// Sources whose rows go, because the file is gone or is another now.
    pub stale: Vec<i64>,
    /// Of these not even the name stays.
    pub gone: Vec<i64>,
    /// Fates that were told are void, so that everything is read anew.
    pub is_reset: bool,
    pub unchanged_bytes: u64,
    pub unchanged_files: u64,
}

pub(crate) fn plan(places: &Places, files: Vec<FileInfo>, known: Vec<Source>) -> Plan {
    let now = now_ms();
    let mut known: HashMap<String, Source> =
        known.into_iter().map(|source| (source.url.clone(), source)).collect();
    let mut plan = Plan::default();
    let mut fates = Vec::new();
    let mut files = files;
    files.sort_by(|a, b| a.url.cmp(&b.url));
    files.dedup_by(|a, b| a.url == b.url);
    for info in files {
        let format = Format::of(&info.url);
        let is_settled = now - info.modified_ms > SETTLED_MS;
        let change = match known.remove(&info.url) {
            None => Change::New,
            Some(source) => change(places, &info, &source, is_settled),
        };
        let mut job = Job { info, format, known: None, is_settled };
        match change {
            Change::None => {
                plan.unchanged_files += 1;
                plan.unchanged_bytes += job.info.size_bytes;
                continue;
            }
            Change::New => {}
            Change::Grown(source, reached) => job.known = Some((source, reached)),
            Change::Other(source) => {
                plan.is_reset |= format.is_fates();
                plan.stale.push(source);
            }
        }
        if format.is_fates() { fates.push(job) } else { plan.jobs.push(job) }
    }
    plan.is_reset |= known.values().any(|source| source.format.is_fates());
    plan.gone = known.values().map(|source| source.source).collect();
    plan.jobs.append(&mut fates);
    plan
}

enum Change {
    None,
    New,
    Grown(i64, Reached),
    Other(i64),
}

fn change(places: &Places, info: &FileInfo, source: &Source, is_settled: bool) -> Change {
    let is_same_size = info.size_bytes == source.size_bytes;
    let is_pending = is_settled && source.reached.pending_bytes > 0;
    if is_same_size && info.stamp == source.stamp && !is_pending {
        return Change::None;
    }
    let Ok(file) = places.open(&info.url) else { return Change::Other(source.source) };
    if is_same_size && source.stamp.starts_with(&info.stamp) && !is_pending {
        let is_same = hash_stamp(info, &*file).is_ok_and(|stamp| stamp == source.stamp);
        return if is_same { Change::None } else { Change::Other(source.source) };
    }
    let is_grown = info.size_bytes > source.size_bytes || is_pending || source.stamp.is_empty();
    let reached = source.reached;
    if source.format.is_lines() && is_grown && goes_on(&*file, info, &reached).unwrap_or(false) {
        return Change::Grown(source.source, reached);
    }
    Change::Other(source.source)
}

/// Whether what was read is still there, and whole lines at that.
fn goes_on(file: &dyn ReadAt, info: &FileInfo, reached: &Reached) -> Result<bool, PlaceError> {
    if info.size_bytes < reached.bytes {
        return Ok(false);
    }
    let marks = Reached::at(file, reached.bytes, (0, &[]))?;
    if (marks.head_hash, marks.tail_hash) != (reached.head_hash, reached.tail_hash) {
        return Ok(false);
    }
    // A last row without a line's end was taken as it was; it must not have gone on after all.
    let around = file.read_at(reached.bytes.saturating_sub(1)..reached.bytes + 1)?;
    let before_or_after = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
    Ok(reached.bytes == 0 || around.first() == Some(&b'\n') || before_or_after(around.get(1)))
}

/// What is remembered as the stamp of a file that has been read.
pub(crate) fn stamp(places: &Places, info: &FileInfo) -> String {
    let is_fresh = now_ms() - info.modified_ms < TICK_MS;
    if !is_fresh || info.size_bytes > HASHED_BYTES_MAX || places.local_path(&info.url).is_none() {
        return info.stamp.clone();
    }
    let hashed = places.open(&info.url).and_then(|file| hash_stamp(info, &*file));
    hashed.unwrap_or_else(|_| info.stamp.clone())
}

fn hash_stamp(info: &FileInfo, file: &dyn ReadAt) -> Result<String, PlaceError> {
    let content = file.read_at(0..info.size_bytes)?;
    Ok(format!("{} {:016x}", info.stamp, identity::of_piece(&content)))
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
