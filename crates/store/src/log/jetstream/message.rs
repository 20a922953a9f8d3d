//! What the bytes of messages mean, version 1.
//!
//! All numbers are little-endian; `crc` is CRC-32C.
//!
//! # History (subject `…h`)
//!
//! ```text
//!  0  version     1   1
//!  1  flags       1   bit 0: the last piece of its batch
//!  2  zero        2
//!  4  piece       4   0 for the first
//!  8  epoch       8   of the owner who wrote it
//! 16  first_seq   8   number of the batch's first record
//! 24  count       4   records in the batch
//! 28  segment     4   the newest that the batch knew of: numbers are never given twice
//! 32  crc         4   of everything before and after this field
//! 36  bytes           a part of the batch's entries, which may be cut anywhere
//! ```
//!
//! The pieces of a batch, put together, are entries: `body_len 4, payload_len 4, place 8, body`.
//!
//! # Payloads (subject `…p.SEGMENT`)
//!
//! ```text
//!  0  version     1   1
//!  1  zero        1
//!  2  count       2   payloads, at most 256
//!  4  head_crc    4   of the bytes before and of the table
//!  8  table           for each payload: len 4, crc 4, kind 4 (0: its bytes, 1: the name of a blob, whose bytes crc is of)
//!  …  payloads
//! ```
//!
//! A payload's place is its segment's number shifted left by 32, plus the message's distance from the first bundle of
//! the segment shifted left by 8, plus its index in the table. Headers of a bundle say what a reader needs who looks at
//! the last one of a segment only: where the segment begins, its bytes and its blobs so far.

use bytes::{BufMut, Bytes, BytesMut};
use rollyard_core::ids::Place;

use super::super::contract::SegmentNo;

pub const VERSION: u8 = 1;

/// Payloads in a bundle: an index is one byte of a place.
pub const BUNDLE_COUNT_MAX: usize = 256;

const PIECE_HEAD_LEN: usize = 36;
const BUNDLE_HEAD_LEN: usize = 8;
const BUNDLE_ENTRY_LEN: usize = 12;
const ENTRY_HEAD_LEN: usize = 16;

/// Why bytes are not a message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    #[error("format version {0}, this program knows {VERSION}")]
    Version(u8),
    #[error("{0}")]
    Damaged(&'static str),
}

/// A part of a batch's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub last: bool,
    pub piece: u32,
    pub epoch: u64,
    pub first_seq: u64,
    pub count: u32,
    pub segment: SegmentNo,
    pub bytes: Bytes,
}

impl Piece {
    /// The last record that is in the log for sure, judged by the newest piece in it.
    pub fn committed_seq(&self) -> u64 {
        let whole = if self.last { u64::from(self.count) } else { 0 };
        (self.first_seq + whole).saturating_sub(1)
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(PIECE_HEAD_LEN + self.bytes.len());
        out.put_u8(VERSION);
        out.put_u8(u8::from(self.last));
        out.put_u16_le(0);
        out.put_u32_le(self.piece);
        out.put_u64_le(self.epoch);
        out.put_u64_le(self.first_seq);
        out.put_u32_le(self.count);
        out.put_u32_le(self.segment.0);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&out), &self.bytes);
        out.put_u32_le(crc);
        out.put_slice(&self.bytes);
        out.freeze()
    }

    pub fn decode(message: &Bytes) -> Result<Self, BadMessage> {
        let head = message.first_chunk::<PIECE_HEAD_LEN>();
        let head = head.ok_or(BadMessage::Damaged("a history message is too short"))?;
        if head[0] != VERSION {
            return Err(BadMessage::Version(head[0]));
        }
        let bytes = message.slice(PIECE_HEAD_LEN..);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..32]), &bytes);
        if crc != u32_at(head, 32) {
            return Err(BadMessage::Damaged("the checksum of a history message differs"));
        }
        Ok(Self {
            last: head[1] & 1 == 1,
            piece: u32_at(head, 4),
            epoch: u64_at(head, 8),
            first_seq: u64_at(head, 16),
            count: u32_at(head, 24),
            segment: SegmentNo(u32_at(head, 28)),
            bytes,
        })
    }
}

/// A record of a batch's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry<'a> {
    pub place: Place,
    pub payload_len: u32,
    pub body: &'a [u8],
}

impl HistoryEntry<'_> {
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u32_le(self.body.len() as u32);
        out.put_u32_le(self.payload_len);
        out.put_u64_le(self.place.0);
        out.put_slice(self.body);
    }
}

/// The entries of a batch, whose pieces were put together.
pub fn entries(mut bytes: &[u8]) -> Result<Vec<HistoryEntry<'_>>, BadMessage> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let cut = BadMessage::Damaged("a batch ends in the middle of a record");
        let (head, rest) = bytes.split_first_chunk::<ENTRY_HEAD_LEN>().ok_or(cut)?;
        let (body, rest) = rest.split_at_checked(u32_at(head, 0) as usize).ok_or(cut)?;
        found.push(HistoryEntry { place: Place(u64_at(head, 8)), payload_len: u32_at(head, 4), body });
        bytes = rest;
    }
    Ok(found)
}

/// A payload as a bundle holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Inline(Bytes),
    /// The name of the blob, and the checksum of its bytes.
    Blob {
        name: String,
        crc: u32,
    },
}

impl Held {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Blob { name, .. } => name.as_bytes(),
        }
    }
}

/// The length of a bundle with payloads of these lengths in all.
pub(super) fn bundle_len(count: usize, bytes: usize) -> usize {
    BUNDLE_HEAD_LEN + count * BUNDLE_ENTRY_LEN + bytes
}

pub fn encode_bundle(payloads: &[Held]) -> Bytes {
    let bytes = payloads.iter().map(|held| held.bytes().len()).sum();
    let mut table = BytesMut::with_capacity(bundle_len(payloads.len(), bytes));
    table.put_u8(VERSION);
    table.put_u8(0);
    table.put_u16_le(payloads.len() as u16);
    table.put_u32_le(0);
    for held in payloads {
        table.put_u32_le(held.bytes().len() as u32);
        let (crc, kind) = match held {
            Held::Inline(bytes) => (crc32c::crc32c(bytes), 0),
            Held::Blob { crc, .. } => (*crc, 1),
        };
        table.put_u32_le(crc);
        table.put_u32_le(kind);
    }
    let crc = head_crc(&table);
    if let Some(field) = table.get_mut(4..8) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
    payloads.iter().for_each(|held| table.put_slice(held.bytes()));
    table.freeze()
}

fn head_crc(table: &[u8]) -> u32 {
    let (before, after) = (table.get(..4).unwrap_or_default(), table.get(8..).unwrap_or_default());
    crc32c::crc32c_append(crc32c::crc32c(before), after)
}

/// One payload of a bundle, or none if there is none of that index.
pub fn payload_of(bundle: &Bytes, index: usize) -> Result<Option<Held>, BadMessage> {
    let (entries, mut at) = table(bundle)?;
    for (n, entry) in entries.iter().enumerate() {
        let end = at.saturating_add(u32_at(entry, 0) as usize);
        if n == index {
            return held(bundle, at..end, entry).map(Some);
        }
        at = end;
    }
    Ok(None)
}

/// The names of the blobs that a bundle refers to.
pub fn blobs_of(bundle: &Bytes) -> Result<Vec<String>, BadMessage> {
    let (entries, mut at) = table(bundle)?;
    let mut names = Vec::new();
    for entry in entries {
        let end = at.saturating_add(u32_at(entry, 0) as usize);
        if u32_at(entry, 8) == 1
            && let Held::Blob { name, .. } = held(bundle, at..end, entry)?
        {
            names.push(name);
        }
        at = end;
    }
    Ok(names)
}

/// The table of a bundle, and where its payloads begin.
fn table(bundle: &Bytes) -> Result<(&[[u8; BUNDLE_ENTRY_LEN]], usize), BadMessage> {
    let short = BadMessage::Damaged("a bundle of payloads is too short");
    let head = bundle.first_chunk::<BUNDLE_HEAD_LEN>().ok_or(short)?;
    if head[0] != VERSION {
        return Err(BadMessage::Version(head[0]));
    }
    let count = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let end = bundle_len(count, 0);
    let table = bundle.get(..end).ok_or(short)?;
    if head_crc(table) != u32_at(head, 4) {
        return Err(BadMessage::Damaged("the checksum of a bundle's table differs"));
    }
    let (entries, _) = table.get(BUNDLE_HEAD_LEN..).unwrap_or_default().as_chunks();
    Ok((entries, end))
}

fn held(
    bundle: &Bytes,
    range: std::ops::Range<usize>,
    entry: &[u8; BUNDLE_ENTRY_LEN],
) -> Result<Held, BadMessage> {
    let bytes = bundle.get(range.clone()).ok_or(BadMessage::Damaged("a bundle of payloads is cut off"))?;
    let crc = u32_at(entry, 4);
    match u32_at(entry, 8) {
        0 if crc32c::crc32c(bytes) != crc => Err(BadMessage::Damaged("the checksum of a payload differs")),
        0 => Ok(Held::Inline(bundle.slice(range))),
        1 => {
            let name = std::str::from_utf8(bytes);
            let name = name.map_err(|_| BadMessage::Damaged("the name of a blob is not text"))?;
            Ok(Held::Blob { name: name.to_owned(), crc })
        }
        _ => Err(BadMessage::Damaged("a payload of an unknown kind")),
    }
}

/// The place of a payload.
pub(super) fn place(segment: SegmentNo, distance: u64, index: usize) -> Place {
    segment.place((distance as u32) << 8 | index as u32)
}

/// How far from the first bundle of its segment a payload's bundle is, and its index there.
pub(super) fn distance_and_index(place: Place) -> (u64, usize) {
    let low = place.0 as u32;
    (u64::from(low >> 8), (low & 0xff) as usize)
}

/// The place of a record without payload: no segment reaches that far.
pub(super) fn nowhere(segment: SegmentNo) -> Place {
    segment.place(u32::MAX)
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece() -> Piece {
        let (segment, bytes) = (SegmentNo(4), Bytes::from_static(b"abc"));
        Piece { last: true, piece: 2, epoch: 7, first_seq: 100, count: 3, segment, bytes }
    }

    #[test]
    fn what_is_encoded_comes_back() {
        assert_eq!(Piece::decode(&piece().encode()), Ok(piece()));
        let blob = Held::Blob { name: "b.1.2".to_owned(), crc: 9 };
        let bundle = encode_bundle(&[Held::Inline(Bytes::from_static(b"one")), blob.clone()]);
        assert_eq!(payload_of(&bundle, 0), Ok(Some(Held::Inline(Bytes::from_static(b"one")))));
        assert_eq!(payload_of(&bundle, 1), Ok(Some(blob)));
        assert_eq!(payload_of(&bundle, 2), Ok(None));
        assert_eq!(blobs_of(&bundle), Ok(vec!["b.1.2".to_owned()]));
        let mut out = BytesMut::new();
        let entry = HistoryEntry { place: Place(5), payload_len: 3, body: b"body" };
        entry.encode(&mut out);
        entry.encode(&mut out);
        assert_eq!(entries(&out), Ok(vec![entry, entry]));
        assert!(entries(&out[..out.len() - 1]).is_err());
    }

    #[test]
    fn a_batch_without_its_last_piece_is_not_committed() {
        assert_eq!(piece().committed_seq(), 102);
        assert_eq!(Piece { last: false, ..piece() }.committed_seq(), 99);
        assert_eq!(Piece { last: false, first_seq: 1, ..piece() }.committed_seq(), 0);
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let (piece, bundle) = (piece().encode(), encode_bundle(&[Held::Inline(Bytes::from_static(b"one"))]));
        for bit in 0..piece.len() * 8 {
            let mut bytes = piece.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Piece::decode(&bytes.into()).is_err(), "bit {bit}");
        }
        for bit in 0..bundle.len() * 8 {
            let mut bytes = bundle.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(payload_of(&bytes.into(), 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_panic() {
        let whole = [piece().encode(), encode_bundle(&[Held::Inline(Bytes::from_static(b"one"))])];
        let mut state = 1_u64;
        for n in 0..20_000 {
            let mut bytes = whole[n % 2].to_vec();
            for _ in 0..n % 5 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = (state >> 20) as u8;
            }
            bytes.truncate((state >> 40) as usize % (bytes.len() + 1));
            let bytes = Bytes::from(bytes);
            let _any = (Piece::decode(&bytes), payload_of(&bytes, 0), blobs_of(&bytes), entries(&bytes));
        }
    }

    #[test]
    fn a_place_is_taken_apart_as_it_was_put_together() {
        let found = place(SegmentNo(3), 70_000, 255);
        assert_eq!(SegmentNo::of(found), SegmentNo(3));
        assert_eq!(distance_and_index(found), (70_000, 255));
    }
}
