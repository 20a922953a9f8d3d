//! Reads the records of finished segments, mending a `.hist` from its `.log` where one is damaged.

use super::contract::{Entry, SegmentNo};
use super::directory::Directory;
use super::error::LogError;
use super::format::{BadHeader, FILE_HEADER_LEN, FileHeader, Kind};
use super::history::{History, Sealed, read_history};
use super::segment::{Scan, Tail, scan};

/// The bytes of a `.hist` file, sound as a whole.
pub(super) struct SoundHistory {
    bytes: Vec<u8>,
    pub(super) header: FileHeader,
}

impl SoundHistory {
    /// Reads a file; `None` when it is damaged.
    pub(super) fn read(dir: &Directory, segment: SegmentNo) -> Result<Option<Self>, LogError> {
        let path = dir.hist_path(segment);
        let bytes = dir.read(&path)?;
        Ok(read_header(dir, segment, &bytes)?
            .filter(|header| {
                read_history(&bytes, header).is_some_and(|entries| entries.count() as u64 == header.count)
            })
            .map(|header| Self { bytes, header }))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        read_history(&self.bytes, &self.header).into_iter().flatten()
    }
}

/// The header of a `.hist` file; `None` when it is damaged.
pub(super) fn read_header(
    dir: &Directory,
    segment: SegmentNo,
    bytes: &[u8],
) -> Result<Option<FileHeader>, LogError> {
    match FileHeader::decode(Kind::Hist, bytes) {
        Ok(header) if header.segment == segment => Ok(Some(header)),
        Ok(_) | Err(BadHeader::Damaged) => Ok(None),
        Err(version) => Err(version.at(&dir.hist_path(segment))),
    }
}

/// The header alone, for a quick start.
pub(super) fn peek_header(dir: &Directory, segment: SegmentNo) -> Result<Option<FileHeader>, LogError> {
    let bytes = dir.read_up_to(&dir.hist_path(segment), FILE_HEADER_LEN as u64)?;
    read_header(dir, segment, &bytes)
}

/// Writes the `.hist` of a segment that was finished before, so nothing in it may be torn.
pub(super) fn mend(dir: &Directory, segment: SegmentNo) -> Result<Sealed, LogError> {
    let path = dir.log_path(segment);
    tracing::warn!(path = %path.display(), "a history is missing or damaged and is made again from its segment");
    let bytes = dir.read(&path)?;
    let scan = scan(&bytes).map_err(|bad| bad.at(&path))?;
    match scan.tail {
        Tail::Clean => finish(dir, segment, &scan, bytes.len() as u64),
        Tail::Torn { .. } => {
            Err(LogError::corrupt(&path, scan.end as u64, "a finished segment has an unfinished batch"))
        }
        Tail::Damaged { offset, what } => Err(LogError::corrupt(&path, offset as u64, what)),
    }
}

/// Writes the `.hist` for what a scan has found.
pub(super) fn finish(
    dir: &Directory,
    segment: SegmentNo,
    scan: &Scan<'_>,
    log_len: u64,
) -> Result<Sealed, LogError> {
    let path = dir.log_path(segment);
    let header = scan.header.filter(|header| header.segment == segment);
    let header = header.ok_or_else(|| LogError::corrupt(&path, 0, "the file belongs to another segment"))?;
    let history = History::of_scan(scan);
    let sealed = Sealed {
        segment,
        salt: header.salt,
        first_seq: header.seq,
        count: history.count,
        content_len: history.content.len() as u64,
        log_len,
        has_log: true,
    };
    history.write(dir, &sealed)?;
    Ok(sealed)
}

/// Reads bytes as every kind of file in turn, for fuzz targets: returns how many records it saw.
#[must_use]
pub fn fuzz_read(bytes: &[u8]) -> usize {
    let in_segment = scan(bytes).map_or(0, |scan| scan.entries().count());
    let hist = FileHeader::decode(Kind::Hist, bytes).ok();
    let in_history = hist.and_then(|header| read_history(bytes, &header)).map_or(0, Iterator::count);
    in_segment + in_history
}
