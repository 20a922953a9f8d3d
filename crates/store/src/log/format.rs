//! What the bytes on disk mean, version 1.
//!
//! A log is a directory. All numbers are little-endian, all checksums CRC-32C begun with the log's salt.
//!
//! ```text
//! 00000001.hist    the records of a finished segment without their payloads; stays for ever
//! 00000002.log     a finished segment whose payloads are still needed ...
//! 00000002.hist    ... and its records
//! 00000003.log     the segment being written, 128 MiB laid out in advance
//! snapshot-00000000000000081920.snap    the owner's state after record 81,920; the newest two are kept
//! LOCK             the process id of the owner
//! *.tmp            a file on its way, never read
//! ```
//!
//! # File header, 64 bytes, the same for the three kinds of file
//!
//! ```text
//!  0  magic       8   "rollylog", "rollyhst" or "rollysnp"
//!  8  version     4   1
//! 12  segment     4   the number in the file's name; 0 in a snapshot
//! 16  salt        8   random, the same in all files of a log
//! 24  seq         8   of the first record; in a snapshot, of the last record in it
//! 32  count       8   .hist: records; .snap: 1 if the records in it were synced before
//! 40  content     8   .hist, .snap: bytes after this header
//! 48  log_len     8   .hist: length of the .log
//! 56  content_crc 4   .hist, .snap: checksum of the bytes after this header
//! 60  crc         4   checksum of the 60 bytes before
//! ```
//!
//! The salt keeps strangers out: a payload that contains the bytes of another log, by accident or on
//! purpose, is never taken for a batch of this one.
//!
//! # .log: batches
//!
//! After the header come batches, each written at once and, with `fsync`, synced before the next is
//! written. A batch is 32 bytes, its frames, and 4 bytes:
//!
//! ```text
//!  0  magic       4   "RYB1"                     0  body_len     4
//!  4  flags       4   bit 0: written with fsync  4  payload_len  4
//!  8  len         4   of the whole batch         8  head_crc     4   of the lengths, the record's
//! 12  count       4   of the frames                                  number (8 bytes) and the body
//! 16  first_seq   8                             12  payload_crc  4
//! 24  crc         4   of the 24 bytes before    16  body, then payload
//! 28  end         4   ff 5a a5 ff
//!  …  frames                                     (a frame)
//!  …  end         4   ff 5a a5 ff
//! ```
//!
//! A batch of sixteen rollouts of 10 kB with bodies of 150 bytes takes 36 + 16 × (16 + 150 + 10,000)
//! = 162,692 bytes, of which 292 are the format's. A payload's place is its segment's number shifted
//! left by 32, plus the offset of its frame.
//!
//! New space reads as zeros, and so does what a crash kept from reaching the disk. The end marks are not
//! zero in any byte, so a write that was cut short can be told from one that was damaged later; see
//! [`segment`](super::segment).
//!
//! # .hist: entries
//!
//! ```text
//!  0  offset      4   of the frame in the .log
//!  4  body_len    4
//!  8  payload_len 4
//! 12  body
//! ```

use super::contract::SegmentNo;
use super::error::LogError;
use std::path::Path;

pub const VERSION: u32 = 1;
pub const FILE_HEADER_LEN: usize = 64;
pub const BATCH_HEADER_LEN: usize = 32;
pub const FRAME_HEADER_LEN: usize = 16;
/// No byte of it is zero, nor one flipped bit away from zero.
pub const END: [u8; 4] = [0xff, 0x5a, 0xa5, 0xff];
pub const BATCH_MAGIC: [u8; 4] = *b"RYB1";

/// The largest body: far above what a command can say.
pub const BODY_LEN_MAX: usize = 64 << 20;
/// The largest payload. Larger rollouts belong in an object store.
pub const PAYLOAD_LEN_MAX: usize = 256 << 20;
/// A batch takes no further record at this size, so every offset fits in 32 bits.
pub const BATCH_LEN_FULL: u64 = 1 << 30;
/// So that a segment, a full batch and one record more stay under 4 GiB.
pub const SEGMENT_LEN_MAX: u64 = 2 << 30;

const FLAG_FSYNC: u32 = 1;

/// The salted CRC-32C of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    salt: u64,
    seed: u32,
}

impl Checksum {
    #[must_use]
    pub fn new(salt: u64) -> Self {
        Self { salt, seed: crc32c::crc32c(&salt.to_le_bytes()) }
    }

    #[must_use]
    pub fn salt(self) -> u64 {
        self.salt
    }

    #[must_use]
    pub fn of(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.seed, bytes)
    }
}

/// The three kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Log,
    Hist,
    Snapshot,
}

impl Kind {
    const fn magic(self) -> [u8; 8] {
        match self {
            Self::Log => *b"rollylog",
            Self::Hist => *b"rollyhst",
            Self::Snapshot => *b"rollysnp",
        }
    }
}

/// The first 64 bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    pub kind: Kind,
    pub segment: SegmentNo,
    pub salt: u64,
    pub seq: u64,
    pub count: u64,
    pub content_len: u64,
    pub log_len: u64,
    pub content_crc: u32,
}

/// Why 64 bytes are not the header they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// Shorter than a header, other magic or wrong checksum.
    Damaged,
    /// Sound, but from another time.
    Version(u32),
}

impl BadHeader {
    pub(super) fn at(self, path: &Path) -> LogError {
        match self {
            Self::Damaged => LogError::corrupt(path, 0, "the file header is damaged"),
            Self::Version(found) => LogError::Version { found, known: VERSION, path: path.to_owned() },
        }
    }
}

impl FileHeader {
    #[must_use]
    pub fn encode(&self) -> [u8; FILE_HEADER_LEN] {
        let mut out = Vec::with_capacity(FILE_HEADER_LEN);
        out.extend(self.kind.magic());
        out.extend(VERSION.to_le_bytes());
        out.extend(self.segment.0.to_le_bytes());
        for number in [self.salt, self.seq, self.count, self.content_len, self.log_len] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.content_crc.to_le_bytes());
        out.extend(Checksum::new(self.salt).of(&out).to_le_bytes());
        out.try_into().expect("8 + 4 + 4 + 5 * 8 + 4 + 4 is 64")
    }

    /// Magic, version and checksum have their places in every version to come.
    pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Self, BadHeader> {
        let header: &[u8; FILE_HEADER_LEN] = bytes.first_chunk().ok_or(BadHeader::Damaged)?;
        let (sealed, _) = header.split_at(FILE_HEADER_LEN - 4);
        let mut fields = Fields(header);
        let magic: [u8; 8] = fields.take().ok_or(BadHeader::Damaged)?;
        let version = fields.u32().ok_or(BadHeader::Damaged)?;
        let found = (|| {
            Some(Self {
                kind,
                segment: SegmentNo(fields.u32()?),
                salt: fields.u64()?,
                seq: fields.u64()?,
                count: fields.u64()?,
                content_len: fields.u64()?,
                log_len: fields.u64()?,
                content_crc: fields.u32()?,
            })
        })()
        .ok_or(BadHeader::Damaged)?;
        let sound = magic == kind.magic() && fields.u32() == Some(Checksum::new(found.salt).of(sealed));
        match (sound, version) {
            (false, _) => Err(BadHeader::Damaged),
            (true, VERSION) => Ok(found),
            (true, other) => Err(BadHeader::Version(other)),
        }
    }
}

/// The first 32 bytes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub fsync: bool,
    pub len: u32,
    pub count: u32,
    pub first_seq: u64,
}

impl BatchHeader {
    #[must_use]
    pub fn encode(&self, checksum: Checksum) -> [u8; BATCH_HEADER_LEN] {
        let mut out = Vec::with_capacity(BATCH_HEADER_LEN);
        out.extend(BATCH_MAGIC);
        out.extend(if self.fsync { FLAG_FSYNC } else { 0 }.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend(self.count.to_le_bytes());
        out.extend(self.first_seq.to_le_bytes());
        out.extend(checksum.of(&out).to_le_bytes());
        out.extend(END);
        out.try_into().expect("6 * 4 + 8 is 32")
    }

    /// The header at the beginning of `bytes`, if there is a sound one.
    #[must_use]
    pub fn decode(bytes: &[u8], checksum: Checksum) -> Option<Self> {
        let header: &[u8; BATCH_HEADER_LEN] = bytes.first_chunk()?;
        let (sealed, seal) = header.split_at(BATCH_HEADER_LEN - 8);
        let mut fields = Fields(sealed);
        let magic: [u8; 4] = fields.take()?;
        let fsync = fields.u32()? & FLAG_FSYNC != 0;
        let found = Self { fsync, len: fields.u32()?, count: fields.u32()?, first_seq: fields.u64()? };
        let mut seal = Fields(seal);
        let sound = magic == BATCH_MAGIC && seal.u32()? == checksum.of(sealed) && seal.take::<4>()? == END;
        sound.then_some(found)
    }
}

/// The first 16 bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub body_len: u32,
    pub payload_len: u32,
    pub head_crc: u32,
    pub payload_crc: u32,
}

impl FrameHeader {
    /// The caller has checked that the lengths fit.
    #[must_use]
    pub fn of(seq: u64, body: &[u8], payload: &[u8], checksum: Checksum) -> Self {
        let (body_len, payload_len) = (body.len() as u32, payload.len() as u32);
        let head_crc = head_crc(body_len, payload_len, seq, body, checksum);
        Self { body_len, payload_len, head_crc, payload_crc: checksum.of(payload) }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.body_len, self.payload_len, self.head_crc, self.payload_crc] {
            out.extend(number.to_le_bytes());
        }
    }

    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        Some(Self {
            body_len: fields.u32()?,
            payload_len: fields.u32()?,
            head_crc: fields.u32()?,
            payload_crc: fields.u32()?,
        })
    }

    #[must_use]
    pub fn fits_body(&self, seq: u64, body: &[u8], checksum: Checksum) -> bool {
        self.head_crc == head_crc(self.body_len, self.payload_len, seq, body, checksum)
    }

    /// Header, body and payload together.
    #[must_use]
    pub fn frame_len(&self) -> u64 {
        FRAME_HEADER_LEN as u64 + u64::from(self.body_len) + u64::from(self.payload_len)
    }
}

fn head_crc(body_len: u32, payload_len: u32, seq: u64, body: &[u8], checksum: Checksum) -> u32 {
    let [a, b, c, d] = body_len.to_le_bytes();
    let [e, f, g, h] = payload_len.to_le_bytes();
    let lens = checksum.of(&[a, b, c, d, e, f, g, h]);
    crc32c::crc32c_append(crc32c::crc32c_append(lens, &seq.to_le_bytes()), body)
}

/// Numbers read one after the other; `None` once the bytes run out.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self, len: u32) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len as usize)?;
        self.0 = rest;
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were_written() {
        let file = FileHeader {
            kind: Kind::Hist,
            segment: SegmentNo(7),
            salt: 0xfeed,
            seq: 1 << 40,
            count: 3,
            content_len: 99,
            log_len: 4096,
            content_crc: 5,
        };
        assert_eq!(FileHeader::decode(Kind::Hist, &file.encode()), Ok(file));
        assert_eq!(FileHeader::decode(Kind::Log, &file.encode()), Err(BadHeader::Damaged));

        let checksum = Checksum::new(0xfeed);
        let batch = BatchHeader { fsync: true, len: 100, count: 2, first_seq: 1 << 40 };
        assert_eq!(BatchHeader::decode(&batch.encode(checksum), checksum), Some(batch));
        assert_eq!(BatchHeader::decode(&batch.encode(checksum), Checksum::new(1)), None, "another log's");
    }

    #[test]
    fn the_end_mark_stays_nonzero_with_any_bit_flipped() {
        for byte in END {
            assert!((0..8).all(|bit| byte ^ (1 << bit) != 0));
        }
    }
}
