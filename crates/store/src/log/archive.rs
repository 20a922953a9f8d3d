//! Reads a log without owning it: for audits and for looking over a running server's shoulder.
//!
//! It takes no lock and changes nothing. While somebody writes, it sees every batch that was complete
//! when it came by, and stops at the first that was not.

use super::contract::{Entry, SegmentNo};
use super::directory::Directory;
use super::disk::{Disk, RealDisk};
use super::error::{LogError, ReplayError};
use super::format::Checksum;
use super::reader::Reader;
use super::replay::SoundHistory;
use super::segment::{Tail, scan};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A log, read-only.
#[derive(Debug)]
pub struct Archive {
    dir: Directory,
}

/// Where a visit ended.
#[derive(Debug)]
pub struct Visited {
    /// Reads the payloads of the records seen.
    pub reader: Reader,
    /// The last record seen; 0 when there is none.
    pub last_seq: u64,
    /// The length of what follows and is not a whole batch: a write that is under way, was interrupted,
    /// or was damaged. Only its owner may judge, by opening the log.
    pub unread_bytes: u64,
}

impl Archive {
    /// Looks at the log in `dir`, which may be empty but must be there.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        Self::open_on(Arc::new(RealDisk), dir)
    }

    /// The same, on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, LogError> {
        let dir = Directory { disk, path: dir.to_owned() };
        dir.list()?;
        Ok(Self { dir })
    }

    /// Visits every record from the first on, in order.
    pub fn visit<E>(
        &self,
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Visited, ReplayError<E>> {
        let listing = self.dir.list()?;
        let segments: BTreeSet<_> = listing.hists.into_iter().chain(listing.logs).collect();
        let mut walk = Walk { next_seq: 1, salt: 0, unread_bytes: 0, visit: &mut visit };
        for &segment in &segments {
            match self.history(segment)? {
                Some(history) => walk.history(self, segment, &history)?,
                None => walk.segment(self, segment, segments.last() == Some(&segment))?,
            }
        }
        let Walk { next_seq, salt, unread_bytes, .. } = walk;
        let reader = Reader::new(self.dir.clone(), Checksum::new(salt));
        Ok(Visited { reader, last_seq: next_seq - 1, unread_bytes })
    }

    fn history(&self, segment: SegmentNo) -> Result<Option<SoundHistory>, LogError> {
        none_if_missing(SoundHistory::read(&self.dir, segment)).map(Option::flatten)
    }
}

/// A visit under way.
struct Walk<'a, V> {
    next_seq: u64,
    salt: u64,
    unread_bytes: u64,
    visit: &'a mut V,
}

impl<V> Walk<'_, V> {
    fn history<E>(
        &mut self,
        archive: &Archive,
        segment: SegmentNo,
        history: &SoundHistory,
    ) -> Result<(), ReplayError<E>>
    where
        V: FnMut(Entry<'_>) -> Result<(), E>,
    {
        self.check_continues(&archive.dir.hist_path(segment), history.header.seq)?;
        history.entries().try_for_each(&mut *self.visit).map_err(ReplayError::Visit)?;
        self.next_seq += history.header.count;
        self.salt = history.header.salt;
        Ok(())
    }

    fn segment<E>(
        &mut self,
        archive: &Archive,
        segment: SegmentNo,
        is_last: bool,
    ) -> Result<(), ReplayError<E>>
    where
        V: FnMut(Entry<'_>) -> Result<(), E>,
    {
        let path = archive.dir.log_path(segment);
        let Some(bytes) = none_if_missing(archive.dir.read(&path))? else {
            // Finished and released since its history was looked for; or empty, and its owner removed it.
            let history = archive.history(segment)?;
            return history.map_or(Ok(()), |history| self.history(archive, segment, &history));
        };
        let scan = scan(&bytes).map_err(|bad| bad.at(&path))?;
        if let Some(header) = scan.header {
            self.check_continues(&path, header.seq)?;
            self.salt = header.salt;
        }
        match scan.tail {
            Tail::Clean => {}
            Tail::Torn { len } if is_last => self.unread_bytes = len as u64,
            Tail::Damaged { .. } if is_last => self.unread_bytes = (bytes.len() - scan.end) as u64,
            Tail::Torn { .. } => {
                let what = "a finished segment has an unfinished batch";
                return Err(LogError::corrupt(&path, scan.end as u64, what).into());
            }
            Tail::Damaged { offset, what } => {
                return Err(LogError::corrupt(&path, offset as u64, what).into());
            }
        }
        scan.entries().try_for_each(&mut *self.visit).map_err(ReplayError::Visit)?;
        self.next_seq += scan.count();
        Ok(())
    }

    fn check_continues(&self, path: &Path, found: u64) -> Result<(), LogError> {
        let expected = self.next_seq;
        if found == expected {
            return Ok(());
        }
        let what = format!("the segment begins with record {found}, but {expected} comes next");
        Err(LogError::corrupt(path, 0, what))
    }
}

fn none_if_missing<T>(read: Result<T, LogError>) -> Result<Option<T>, LogError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(LogError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
