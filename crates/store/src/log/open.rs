//! Opens a log: finds out what survived, and makes it whole.
//!
//! Afterwards every segment on the disk is finished, and the first batch begins a new one. That wastes
//! part of a segment per restart, and buys that no file is ever written to again after a crash.

use super::contract::{Entry, Log, Parts, SegmentNo, Snapshot};
use super::directory::{Directory, Listing};
use super::disk::{Disk, RealDisk};
use super::error::{Failure, LogError, ReplayError};
use super::format::{Checksum, SEGMENT_LEN_MAX};
use super::history::Sealed;
use super::live::Liveness;
use super::pool::Pool;
use super::reader::Reader;
use super::replay::{SoundHistory, finish, mend, peek_header};
use super::segment::{Tail, scan};
use super::snapshots::{self, Snapshots};
use super::stager::Stager;
use super::writer::Writer;
use rollyard_core::run_config::Durability;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// A segment takes no further batch at this size. Payloads are given back segment by segment.
    pub segment_bytes: u64,
    pub durability: Durability,
    pub disk: Arc<dyn Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 128 << 20, durability: Durability::Fsync, disk: Arc::new(RealDisk) }
    }
}

/// A log right after opening: replay it, tell the stager what is live, then use its parts.
#[derive(Debug)]
pub struct Opened {
    pub stager: Stager,
    pub writer: Writer,
    pub reader: Reader,
    pub snapshots: Snapshots,
    /// The newest undamaged one.
    pub snapshot: Option<Snapshot>,
    /// The length of an interrupted write that was cut off. Nobody was told that it had succeeded.
    pub torn_bytes: u64,
    dir: Directory,
    sealed: Vec<Sealed>,
}

/// Opens the log in `dir`, or begins one there.
pub fn open(dir: &Path, options: Options) -> Result<Opened, LogError> {
    let Options { segment_bytes, durability, disk } = options;
    let dir = Directory { disk, path: dir.to_owned() };
    create(&dir)?;
    let lock = Arc::from(dir.disk.lock(&dir.path)?);
    let listing = dir.list()?;
    listing.unfinished.iter().try_for_each(|path| dir.remove(path))?;

    let (sealed, torn_bytes) = recover(&dir, &listing)?;
    let salt = sealed.first().map(|sealed| sealed.salt);
    let checksum = Checksum::new(salt.unwrap_or_else(random_salt));
    let committed_seq = sealed.last().map_or(0, |last| last.next_seq() - 1);
    let snapshot = snapshots::newest(&dir, &listing, salt, committed_seq)?;

    let with_log = sealed.iter().filter(|sealed| sealed.has_log);
    let stager = Stager {
        checksum,
        durability,
        segment_bytes: segment_bytes.min(SEGMENT_LEN_MAX),
        segment: sealed.last().map_or(SegmentNo(1), |last| last.segment.next()),
        segment_len: 0,
        history_len: 0,
        next_seq: committed_seq + 1,
        batch: None,
        live: Liveness::of_found(with_log.map(|sealed| (sealed.segment, sealed.log_len))),
        pool: Pool::default(),
    };
    let reader = Reader::new(dir.clone(), checksum);
    let writer = Writer {
        dir: dir.clone(),
        checksum,
        durability,
        segment_bytes: stager.segment_bytes,
        committed_seq,
        active: None,
        failed: Failure::default(),
        pool: stager.pool.clone(),
        reader: reader.clone(),
        _lock: Arc::clone(&lock),
    };
    let snapshots = Snapshots { dir: dir.clone(), checksum, durability, _lock: lock };
    Ok(Opened { stager, writer, reader, snapshots, snapshot, torn_bytes, dir, sealed })
}

impl Log for Opened {
    type Batch = super::Batch;
    type Stager = Stager;
    type Writer = Writer;
    type Reader = Reader;
    type Snapshots = Snapshots;

    fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    fn replay<E>(
        &self,
        from_seq: u64,
        mut progress: impl FnMut(u64, u64),
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), ReplayError<E>> {
        let wanted = || self.sealed.iter().filter(|sealed| sealed.next_seq() > from_seq);
        let total_bytes = wanted().map(|sealed| sealed.content_len).sum();
        let mut done_bytes = 0;
        for sealed in wanted() {
            let history = read_or_mend(&self.dir, sealed)?;
            for entry in history.entries().filter(|entry| entry.seq >= from_seq) {
                visit(entry).map_err(ReplayError::Visit)?;
            }
            done_bytes += sealed.content_len;
            progress(done_bytes, total_bytes);
        }
        Ok(())
    }

    fn set_durability(&mut self, durability: Durability) {
        self.stager.durability = durability;
        self.writer.durability = durability;
        self.snapshots.durability = durability;
    }

    fn into_parts(self) -> Parts<Self> {
        let Self { stager, writer, reader, snapshots, .. } = self;
        Parts { stager, writer, reader, snapshots }
    }
}

fn create(dir: &Directory) -> Result<(), LogError> {
    let not_writable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            LogError::NotWritable { cause: Arc::new(cause), path: dir.path.clone() }
        }
        _ => LogError::io("create the directory", &dir.path, cause),
    };
    dir.disk.create_dir(&dir.path).map_err(not_writable)?;
    let parent = dir.path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    dir.disk.sync_dir(parent).map_err(|cause| LogError::io("sync", parent, cause))
}

/// The finished segments in order, after finishing the last, and how much of that was torn.
fn recover(dir: &Directory, listing: &Listing) -> Result<(Vec<Sealed>, u64), LogError> {
    let hists: BTreeSet<_> = listing.hists.iter().copied().collect();
    let logs: BTreeSet<_> = listing.logs.iter().copied().collect();
    let last = hists.union(&logs).last().copied();
    let mut segments: Vec<Sealed> = Vec::new();
    let mut torn_bytes = 0;
    for &segment in hists.union(&logs) {
        let (has_hist, has_log) = (hists.contains(&segment), logs.contains(&segment));
        let header = if has_hist { peek_header(dir, segment)? } else { None };
        let sealed = match header {
            Some(header) => Some(Sealed::of_header(&header, has_log)),
            None if !has_log => {
                let what = "the history of a released segment is damaged";
                return Err(LogError::corrupt(&dir.hist_path(segment), 0, what));
            }
            // A history appears only once its segment is finished and synced.
            None if has_hist || Some(segment) != last => Some(mend(dir, segment)?),
            None => {
                let (sealed, torn) = recover_last(dir, segment)?;
                torn_bytes = torn;
                sealed
            }
        };
        if let Some(sealed) = sealed {
            check_continues(dir, segments.last(), &sealed)?;
            segments.push(sealed);
        }
    }
    Ok((segments, torn_bytes))
}

fn check_continues(dir: &Directory, before: Option<&Sealed>, sealed: &Sealed) -> Result<(), LogError> {
    let expected = before.map_or(1, Sealed::next_seq);
    let what = if before.is_some_and(|before| before.salt != sealed.salt) {
        "the segment belongs to another log".to_owned()
    } else if sealed.first_seq != expected {
        format!("the segment begins with record {}, but {expected} comes next", sealed.first_seq)
    } else {
        return Ok(());
    };
    let path = if sealed.has_log { dir.log_path(sealed.segment) } else { dir.hist_path(sealed.segment) };
    Err(LogError::corrupt(&path, 0, what))
}

/// Cuts off a torn write and finishes the segment, or removes it when nothing is in it.
fn recover_last(dir: &Directory, segment: SegmentNo) -> Result<(Option<Sealed>, u64), LogError> {
    let path = dir.log_path(segment);
    let bytes = dir.read(&path)?;
    let scan = scan(&bytes).map_err(|bad| bad.at(&path))?;
    let torn = match scan.tail {
        Tail::Clean => 0,
        Tail::Torn { len } => len as u64,
        Tail::Damaged { offset, what } => return Err(LogError::corrupt(&path, offset as u64, what)),
    };
    if scan.count() == 0 {
        dir.remove(&path)?;
        dir.sync()?;
        return Ok((None, scan.end as u64 + torn));
    }
    // The last batch may so far be in the page cache only; and if its sync has failed, the cache believes
    // that it is on the disk. Writing it once more makes the sync mean something.
    let last_write = scan.last_write();
    let edit = || {
        let file = dir.disk.edit(&path)?;
        let again = bytes.get(last_write.clone()).unwrap_or_default();
        file.write_all_at(&mut [IoSlice::new(again)], last_write.start as u64)?;
        file.truncate(scan.end as u64)?;
        Ok(file)
    };
    let file = edit().map_err(|cause| LogError::io("finish a segment", &path, cause))?;
    file.sync().map_err(|cause| LogError::sync(&path, cause))?;
    Ok((Some(finish(dir, segment, &scan, scan.end as u64)?), torn))
}

fn read_or_mend(dir: &Directory, sealed: &Sealed) -> Result<SoundHistory, LogError> {
    if let Some(history) = SoundHistory::read(dir, sealed.segment)? {
        return Ok(history);
    }
    if sealed.has_log {
        mend(dir, sealed.segment)?;
    }
    SoundHistory::read(dir, sealed.segment)?
        .filter(|history| history.header.seq == sealed.first_seq && history.header.count == sealed.count)
        .ok_or_else(|| {
            let what = "the history of a released segment is damaged";
            LogError::corrupt(&dir.hist_path(sealed.segment), 0, what)
        })
}

/// `RandomState` is seeded by the operating system.
fn random_salt() -> u64 {
    RandomState::new().hash_one("salt")
}
