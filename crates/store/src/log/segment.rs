//! What a segment file still says after a crash.
//!
//! Batch N is synced before batch N+1 is written. So a batch that is followed by another was on the disk,
//! and damage in it is damage to durable data: nothing may be thrown away, the log does not open. Only the
//! last batch may be a *torn* write: one that a crash interrupted, that nobody was told about, and that is
//! cut off. The two must not be confused, because cutting off a damaged batch would lose answered writes.
//!
//! A torn write leaves traces. The space it went to held zeros, and disks write whole sectors, so either
//! the file ends early, or the batch's last byte is still zero (it was cut), or the part that fails its
//! checksum contains a whole sector of zeros (it was skipped). Damage without any of these is corruption.
//! (In a payload that has whole sectors of zeros by itself the two look alike; JSON has none.)
//! A batch with `os` durability gives no proof for the ones before it, so there damage is always torn.
//!
//! A damaged *payload* does not stop a start, unless it shows that the last batch is torn: the record
//! stays, and whoever reads that payload is told.
//!
//! [`scan`] works on the bytes of a file, never panics, and allocates a few words per batch it finds.

use super::contract::{Entry, SegmentNo};
use super::format::{
    BATCH_HEADER_LEN, BATCH_MAGIC, BadHeader, BatchHeader, Checksum, END, FILE_HEADER_LEN, FRAME_HEADER_LEN,
    Fields, FileHeader, FrameHeader, Kind,
};
use std::ops::Range;

const SECTOR: usize = 512;

/// A segment's sound batches and how they end.
#[derive(Debug)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    /// Missing when the very first write was torn.
    pub header: Option<FileHeader>,
    batches: Vec<Found>,
    /// Where the sound batches end.
    pub end: usize,
    pub tail: Tail,
}

/// What comes after the sound batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The end of the file, or zeros.
    Clean,
    /// An interrupted write of this many bytes, which nobody was told about.
    Torn { len: usize },
    /// Durable data that is no longer what was written.
    Damaged { offset: usize, what: &'static str },
}

#[derive(Clone, Copy, Debug)]
struct Found {
    offset: usize,
    header: BatchHeader,
}

/// One record in a segment.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    offset: usize,
    header: FrameHeader,
    body: &'a [u8],
    payload: &'a [u8],
}

/// Why a batch cannot be read: `part` is the range that fails its check.
struct Bad {
    part: Range<usize>,
    what: &'static str,
}

/// Reads a segment.
///
/// A header that does not belong to a segment is an error, except that a file whose first write was torn
/// gives a scan without batches.
pub fn scan(bytes: &[u8]) -> Result<Scan<'_>, BadHeader> {
    let header = match FileHeader::decode(Kind::Log, bytes) {
        Ok(header) => header,
        // The header and the first batch are written together.
        Err(BadHeader::Damaged)
            if is_torn(bytes, 0..FILE_HEADER_LEN + BATCH_HEADER_LEN, 0..FILE_HEADER_LEN) =>
        {
            return if has_second_batch(bytes) { Err(BadHeader::Damaged) } else { Ok(Scan::of_torn(bytes)) };
        }
        Err(bad) => return Err(bad),
    };
    let checksum = Checksum::new(header.salt);
    let mut scan =
        Scan { bytes, header: Some(header), batches: Vec::new(), end: FILE_HEADER_LEN, tail: Tail::Clean };
    let mut next_seq = header.seq;
    let bad = loop {
        match read_batch(bytes, scan.end, next_seq, checksum) {
            Ok(header) => {
                scan.batches.push(Found { offset: scan.end, header });
                scan.end += header.len as usize;
                next_seq = next_seq.saturating_add(u64::from(header.count));
            }
            Err(bad) => break bad,
        }
    };
    scan.tail = scan.judge(bad, next_seq, checksum);
    if scan.tail == Tail::Clean {
        scan.drop_last_if_torn(checksum);
    }
    Ok(scan)
}

impl<'a> Scan<'a> {
    fn of_torn(bytes: &'a [u8]) -> Self {
        let len = written_len(bytes);
        let tail = if len == 0 { Tail::Clean } else { Tail::Torn { len } };
        Self { bytes, header: None, batches: Vec::new(), end: 0, tail }
    }

    /// The segment's records, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let segment = self.header.map_or(SegmentNo(0), |header| header.segment);
        self.frames().map(move |(seq, frame)| Entry {
            seq,
            place: segment.place(frame.offset as u32),
            payload_len: frame.header.payload_len,
            body: frame.body,
        })
    }

    /// The last batch, and what was written together with it.
    #[must_use]
    pub fn last_write(&self) -> Range<usize> {
        let is_first = self.batches.len() <= 1;
        let start = self.batches.last().filter(|_| !is_first).map_or(0, |last| last.offset);
        start..self.end
    }

    /// How many records there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.batches.iter().map(|found| u64::from(found.header.count)).sum()
    }

    fn frames(&self) -> impl Iterator<Item = (u64, Frame<'a>)> {
        let bytes = self.bytes;
        self.batches.iter().flat_map(move |found| {
            let mut offset = found.offset + BATCH_HEADER_LEN;
            (0..u64::from(found.header.count)).map_while(move |n| {
                let frame = frame_at(bytes, offset)?;
                offset += frame.header.frame_len() as usize;
                Some((found.header.first_seq.saturating_add(n), frame))
            })
        })
    }

    /// Decides what the bytes after the last sound batch are.
    fn judge(&self, bad: Bad, next_seq: u64, checksum: Checksum) -> Tail {
        let rest = self.bytes.get(self.end..).unwrap_or_default();
        let len = written_len(rest);
        if len == 0 {
            return Tail::Clean;
        }
        let rest = rest.get(..len).unwrap_or_default();
        let whole = BatchHeader::decode(rest, checksum);
        let extent = whole.map_or(BATCH_HEADER_LEN, |header| header.len as usize);
        let offset = bad.part.start;
        if let Some(later) = later_batch(rest, next_seq, checksum) {
            return if later.fsync { Tail::Damaged { offset, what: bad.what } } else { Tail::Torn { len } };
        }
        let fsync = whole.or(self.batches.last().map(|found| found.header)).is_none_or(|header| header.fsync);
        if !fsync || is_torn(self.bytes, self.end..self.end.saturating_add(extent), bad.part) {
            Tail::Torn { len }
        } else {
            Tail::Damaged { offset, what: bad.what }
        }
    }

    /// The last batch may look whole and still lack a page in one of its payloads.
    fn drop_last_if_torn(&mut self, checksum: Checksum) {
        let Some(last) = self.batches.last().copied() else { return };
        let end = self.end;
        let torn = self.frames().filter(|(seq, _)| *seq >= last.header.first_seq).any(|(_, frame)| {
            let start = frame.offset + FRAME_HEADER_LEN + frame.body.len();
            checksum.of(frame.payload) != frame.header.payload_crc
                && is_torn(self.bytes, last.offset..end, start..start + frame.payload.len())
        });
        if torn {
            self.batches.pop();
            self.tail = Tail::Torn { len: end - last.offset };
            self.end = last.offset;
        }
    }
}

/// Checks a batch except for its payloads.
fn read_batch(bytes: &[u8], at: usize, next_seq: u64, checksum: Checksum) -> Result<BatchHeader, Bad> {
    let bad = |start: usize, len: usize, what| Bad { part: start..start.saturating_add(len), what };
    let rest = bytes.get(at..).unwrap_or_default();
    let header = BatchHeader::decode(rest, checksum)
        .ok_or_else(|| bad(at, BATCH_HEADER_LEN, "a batch header does not fit its checksum"))?;
    if header.first_seq != next_seq {
        return Err(bad(at, BATCH_HEADER_LEN, "a batch does not continue the one before"));
    }
    let len = header.len as usize;
    let batch = rest.get(..len).ok_or_else(|| bad(at, len, "a batch is cut off"))?;
    let mut offset = BATCH_HEADER_LEN;
    for n in 0..u64::from(header.count) {
        let frame = frame_at(batch, offset)
            .ok_or_else(|| bad(at + offset, FRAME_HEADER_LEN, "a record leaves its batch"))?;
        if !frame.header.fits_body(next_seq.saturating_add(n), frame.body, checksum) {
            let len = FRAME_HEADER_LEN + frame.body.len();
            return Err(bad(at + offset, len, "a record does not fit its checksum"));
        }
        offset += frame.header.frame_len() as usize;
    }
    match batch.split_at_checked(offset) {
        Some((_, end)) if end == END => Ok(header),
        _ => Err(bad(at + offset, END.len(), "a batch does not end where it should")),
    }
}

fn frame_at(bytes: &[u8], offset: usize) -> Option<Frame<'_>> {
    let rest = bytes.get(offset..)?;
    let header = FrameHeader::decode(rest)?;
    let mut fields = Fields(rest.get(FRAME_HEADER_LEN..)?);
    let body = fields.bytes(header.body_len)?;
    Some(Frame { offset, header, body, payload: fields.bytes(header.payload_len)? })
}

/// Whether `write`, which went over zeros, may have been interrupted so that something in `part` of it is
/// missing.
fn is_torn(bytes: &[u8], write: Range<usize>, part: Range<usize>) -> bool {
    let cut = bytes.get(write.end.wrapping_sub(1)).is_none_or(|last| *last == 0);
    let mut sectors = (part.start / SECTOR * SECTOR..part.end.min(bytes.len())).step_by(SECTOR);
    let skipped = |sector: usize| {
        let of_write = sector.max(write.start)..(sector + SECTOR).min(write.end);
        bytes.get(of_write).is_some_and(is_zero)
    };
    cut || sectors.any(skipped)
}

/// A sound batch header further on, which proves that what comes before it was written earlier.
fn later_batch(rest: &[u8], next_seq: u64, checksum: Checksum) -> Option<BatchHeader> {
    let mut rest = rest.get(1..)?;
    while let Some(at) = rest.iter().position(|byte| *byte == BATCH_MAGIC[0]) {
        rest = rest.get(at..)?;
        match BatchHeader::decode(rest, checksum) {
            Some(header) if header.first_seq > next_seq => return Some(header),
            _ => rest = rest.get(1..)?,
        }
    }
    None
}

/// Whether another batch was synced after the first, judged without the salt that went with the header.
fn has_second_batch(bytes: &[u8]) -> bool {
    let fsync = BatchHeader { fsync: true, len: 0, count: 0, first_seq: 0 }.encode(Checksum::new(0));
    let begins = fsync.first_chunk::<8>();
    let behind_first = bytes.get(FILE_HEADER_LEN + 1..).unwrap_or_default();
    behind_first
        .windows(BATCH_HEADER_LEN)
        .any(|header| header.first_chunk() == begins && header.last_chunk() == Some(&END))
}

/// The length without the zeros at the end.
fn written_len(bytes: &[u8]) -> usize {
    let zeros = bytes.rchunks(4096).take_while(|chunk| is_zero(chunk)).map(<[u8]>::len).sum::<usize>();
    let written = bytes.get(..bytes.len() - zeros).unwrap_or_default();
    written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Without an early exit, so that the compiler can look at many bytes at once.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) == 0
}
