//! Records on their way to the disk, encoded and addressed.
//!
//! Small things are copied into one buffer. A payload of 4 kB or more stays where the network put it and
//! is handed to the kernel from there.

use super::contract::{SegmentNo, Stamp};
use super::format::{
    BATCH_HEADER_LEN, BatchHeader, Checksum, END, FILE_HEADER_LEN, FileHeader, FrameHeader, Kind,
};
use super::history::History;
use bytes::Bytes;
use std::io::IoSlice;

/// From this size on, pointing at a payload is cheaper than copying it.
const BORROW_LEN_MIN: usize = 4096;

/// A batch, closed by [`Stager::take_batch`](super::Stager).
#[derive(Debug)]
pub struct Batch {
    pub(super) segment: SegmentNo,
    /// Where in the segment the batch is written; 0 when it begins one.
    pub(super) offset: u64,
    pub(super) first_seq: u64,
    pub(super) count: u32,
    pub(super) history: History,
    /// The file header if there is one, the batch header, and everything small.
    small: Vec<u8>,
    large: Vec<Large>,
    large_len: u64,
}

#[derive(Debug)]
struct Large {
    /// The payload comes after this many bytes of `small`.
    after: usize,
    payload: Bytes,
}

impl Batch {
    pub(super) fn begin(
        segment: SegmentNo,
        offset: u64,
        first_seq: u64,
        checksum: Checksum,
        mut small: Vec<u8>,
    ) -> Self {
        if offset == 0 {
            let header = FileHeader {
                kind: Kind::Log,
                segment,
                salt: checksum.salt(),
                seq: first_seq,
                count: 0,
                content_len: 0,
                log_len: 0,
                content_crc: 0,
            };
            small.extend(header.encode());
        }
        small.extend([0; BATCH_HEADER_LEN]);
        let history = History::default();
        Self { segment, offset, first_seq, count: 0, history, small, large: Vec::new(), large_len: 0 }
    }

    pub(super) fn push(&mut self, body: &[u8], payload: Bytes, checksum: Checksum) -> Stamp {
        let seq = self.next_seq();
        let offset = (self.offset + self.len()) as u32;
        let header = FrameHeader::of(seq, body, &payload, checksum);
        header.encode(&mut self.small);
        self.small.extend(body);
        self.history.push(offset, header.payload_len, body);
        self.count += 1;
        if payload.len() < BORROW_LEN_MIN {
            self.small.extend(&payload);
        } else {
            self.large_len += payload.len() as u64;
            self.large.push(Large { after: self.small.len(), payload });
        }
        Stamp { seq, place: self.segment.place(offset) }
    }

    /// Nothing can be added after this.
    pub(super) fn finish(&mut self, fsync: bool, checksum: Checksum) {
        self.small.extend(END);
        let begin = if self.offset == 0 { FILE_HEADER_LEN } else { 0 };
        let len = (self.len() - begin as u64) as u32;
        let header = BatchHeader { fsync, len, count: self.count, first_seq: self.first_seq };
        if let Some(room) = self.small.get_mut(begin..begin + BATCH_HEADER_LEN) {
            room.copy_from_slice(&header.encode(checksum));
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.small.len() as u64 + self.large_len
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// The bytes of the batch, in order.
    pub(super) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(2 * self.large.len() + 1);
        let mut rest = self.small.as_slice();
        let mut taken = 0;
        for large in &self.large {
            let (before, after) = rest.split_at_checked(large.after - taken).unwrap_or((rest, &[]));
            (rest, taken) = (after, large.after);
            slices.push(IoSlice::new(before));
            slices.push(IoSlice::new(&large.payload));
        }
        slices.push(IoSlice::new(rest));
        slices
    }

    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.small
    }
}
