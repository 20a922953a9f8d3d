//! Fetches payloads while the log is being written.
//!
//! Files stay open between reads. The table of open files is locked only to look a file up, never while
//! the disk works, so a slow read delays nobody else.

use super::contract::{Payloads, SegmentNo};
use super::directory::Directory;
use super::disk::DiskFile;
use super::error::ReadError;
use super::format::{Checksum, FRAME_HEADER_LEN, FrameHeader, PAYLOAD_LEN_MAX};
use bytes::Bytes;
use rollyard_core::ids::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Enough for a usual rollout with its body, so that one read gets it all.
const FIRST_READ_LEN: usize = 16 << 10;
/// At 128 MiB a segment, these hold 16 GiB; a process has 1,024 files by default, for sockets too.
const OPEN_FILES_MAX: usize = 128;

/// Reads payloads of an embedded log. Clones share their open files.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: Directory,
    checksum: Checksum,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    open: BTreeMap<SegmentNo, Arc<dyn DiskFile>>,
    /// Opened by a read that came late, these would keep their space until the process ends.
    released: BTreeSet<SegmentNo>,
}

impl Payloads for Reader {
    fn payload(&self, place: Place) -> Result<Bytes, ReadError> {
        let segment = SegmentNo::of(place);
        let path = || self.0.dir.log_path(segment);
        let found = self.file(segment).and_then(|file| self.read(&*file, u64::from(place.0 as u32)));
        match found {
            Ok(Ok(payload)) => Ok(payload),
            Ok(Err(what)) => Err(ReadError::Corrupt { place, what, path: path() }),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                Err(ReadError::Gone { place, path: path() })
            }
            Err(cause) => Err(ReadError::Io { place, cause, path: path() }),
        }
    }
}

impl Reader {
    pub(super) fn new(dir: Directory, checksum: Checksum) -> Self {
        Self(Arc::new(Shared { dir, checksum, files: Mutex::default() }))
    }

    /// Closes a segment's file; a read that is under way still finishes.
    pub(super) fn forget(&self, segment: SegmentNo) {
        let mut files = self.files();
        files.released.insert(segment);
        let closed = files.open.remove(&segment);
        drop(files);
        drop(closed);
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, segment: SegmentNo) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.files().open.get(&segment).cloned() {
            return Ok(file);
        }
        let file = self.0.dir.disk.open(&self.0.dir.log_path(segment))?;
        let mut files = self.files();
        // The oldest segment is the likeliest to be done with.
        let evicted = if files.open.len() >= OPEN_FILES_MAX { files.open.pop_first() } else { None };
        if !files.released.contains(&segment) {
            files.open.insert(segment, Arc::clone(&file));
        }
        drop(files);
        drop(evicted);
        Ok(file)
    }

    fn read(&self, file: &dyn DiskFile, offset: u64) -> io::Result<Result<Bytes, &'static str>> {
        let mut frame = vec![0; FIRST_READ_LEN];
        let read = file.read_at(&mut frame, offset)?;
        frame.truncate(read);
        let Some(header) = FrameHeader::decode(&frame) else {
            return Ok(Err("it lies behind the end of the file"));
        };
        let frame_len = header.frame_len();
        if header.payload_len == 0 {
            return Ok(Err("there is none in this record"));
        }
        // A damaged length must not cost gigabytes.
        if header.payload_len as usize > PAYLOAD_LEN_MAX || frame_len > file.size()?.saturating_sub(offset) {
            return Ok(Err("its length is damaged"));
        }
        let start = FRAME_HEADER_LEN + header.body_len as usize;
        let end = start + header.payload_len as usize;
        if end > read {
            frame.resize(end, 0);
            if let Some(rest) = frame.get_mut(read..) {
                file.read_at(rest, offset + read as u64)?;
            }
        }
        let payload = frame.get(start..end).unwrap_or_default();
        if self.0.checksum.of(payload) != header.payload_crc {
            return Ok(Err("it does not fit its checksum"));
        }
        // A small payload should not hold on to a large buffer.
        let wasteful = payload.len() < FIRST_READ_LEN / 4;
        Ok(Ok(if wasteful { Bytes::copy_from_slice(payload) } else { Bytes::from(frame).slice(start..end) }))
    }
}
