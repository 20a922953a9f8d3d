//! Numbers records and packs them into messages, and knows in advance which sequence each of those will have.

use bytes::{Bytes, BytesMut};
use rollyard_core::ids::Place;

use super::super::contract::{Blob, Release, SegmentNo, Sparse, Stage, Stamp};
use super::super::error::StageError;
use super::super::live::Liveness;
use super::message::{
    BUNDLE_COUNT_MAX, Held, HistoryEntry, Piece, bundle_len, encode_bundle, nowhere, place,
};
use super::segments::Extent;

/// Payloads are sent together up to this; who reads one of them gets them all.
const BUNDLE_LEN: usize = 128 << 10;

/// A batch of this size takes no more. The server holds what is not stored yet in memory.
const BATCH_LEN_FULL: u64 = 48 << 20;

/// Messages between the first bundle of a segment and its last: a place has 24 bits for it.
const DISTANCE_MAX: u64 = 1 << 23;

/// Room that a piece's head and a bundle's table take of a message.
const HEAD_LEN: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) message_max: usize,
    pub(super) inline_max: usize,
    pub(super) segment_bytes: u64,
}

/// The sequencer's end of a log on JetStream.
#[derive(Debug)]
pub struct Stager {
    limits: Limits,
    epoch: u64,
    segment: SegmentNo,
    /// Of the current segment, once it has a bundle.
    extent: Option<Extent>,
    next_seq: u64,
    /// The sequence that the next message of the stream gets.
    next_sequence: u64,
    blobs_made: u64,
    building: Option<Building>,
    live: Liveness,
}

/// Staged records.
#[derive(Debug)]
pub struct Batch {
    pub(super) first_seq: u64,
    pub(super) count: u32,
    pub(super) segment: SegmentNo,
    /// The sequence that its first message must get.
    pub(super) first_sequence: u64,
    pub(super) bundles: Vec<Bundle>,
    pub(super) pieces: Vec<Bytes>,
    /// To be put where blobs are before anything is sent.
    pub(super) blobs: Vec<(String, Bytes)>,
}

impl Batch {
    pub(super) fn last_sequence(&self) -> u64 {
        self.first_sequence + (self.bundles.len() + self.pieces.len()) as u64 - 1
    }
}

#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) bytes: Bytes,
    /// Of the segment, with this bundle.
    pub(super) extent: Extent,
}

#[derive(Debug)]
struct Building {
    first_seq: u64,
    first_sequence: u64,
    bundles: Vec<Bundle>,
    open: Vec<Held>,
    open_len: usize,
    blobs: Vec<(String, Bytes)>,
    entries: BytesMut,
    count: u32,
    /// In bundles.
    held_bytes: u64,
    blob_bytes: u64,
}

impl Stager {
    pub(super) fn new(
        limits: Limits,
        epoch: u64,
        segment: SegmentNo,
        next_seq: u64,
        next_sequence: u64,
        live: Liveness,
    ) -> Self {
        let (extent, building) = (None, None);
        Self { limits, epoch, segment, extent, next_seq, next_sequence, blobs_made: 0, building, live }
    }

    fn begin(&mut self) -> Building {
        let is_full = |extent: Extent| {
            extent.bytes >= self.limits.segment_bytes || self.next_sequence - extent.base > DISTANCE_MAX
        };
        if self.extent.is_some_and(is_full) {
            self.segment = self.segment.next();
            self.extent = None;
        }
        Building {
            first_seq: self.next_seq,
            first_sequence: self.next_sequence,
            bundles: Vec::new(),
            open: Vec::new(),
            open_len: 0,
            blobs: Vec::new(),
            entries: BytesMut::new(),
            count: 0,
            held_bytes: 0,
            blob_bytes: 0,
        }
    }

    /// A payload as a bundle holds it: itself, or the name of the blob that it becomes.
    fn held(&mut self, building: &mut Building, payload: Bytes) -> Held {
        if payload.len() <= self.limits.inline_max {
            return Held::Inline(payload);
        }
        self.blobs_made += 1;
        let name = format!("b.{}.{}.{}", self.segment.0, self.epoch, self.blobs_made);
        let crc = crc32c::crc32c(&payload);
        building.blob_bytes += payload.len() as u64;
        building.blobs.push((name.clone(), payload));
        Held::Blob { name, crc }
    }

    /// Puts a payload into the open bundle and says where that will be.
    fn hold(&mut self, building: &mut Building, held: Held, payload_len: u32) -> Place {
        let held_len = held.bytes().len();
        let len_max = BUNDLE_LEN.min(self.limits.message_max);
        let would_be = bundle_len(building.open.len() + 1, building.open_len + held_len);
        if building.open.len() == BUNDLE_COUNT_MAX || (!building.open.is_empty() && would_be > len_max) {
            building.close_bundle(self.extent);
        }
        let sequence = building.first_sequence + building.bundles.len() as u64;
        let extent = self.extent.get_or_insert(Extent { base: sequence, bytes: 0, blobs: 0 });
        extent.bytes += u64::from(payload_len);
        extent.blobs += u64::from(matches!(held, Held::Blob { .. }));
        let place = place(self.segment, sequence - extent.base, building.open.len());
        building.open.push(held);
        building.open_len += held_len;
        building.held_bytes += held_len as u64;
        self.live.grow(self.segment, u64::from(payload_len));
        self.live.add(place, payload_len);
        place
    }

    /// Stages a record; `hold` puts its payload where it belongs.
    fn push(
        &mut self,
        body: &[u8],
        payload_len: u32,
        hold: impl FnOnce(&mut Self, &mut Building) -> Place,
    ) -> Result<Stamp, StageError> {
        let staged_bytes = self.staged_bytes();
        if staged_bytes >= BATCH_LEN_FULL {
            return Err(StageError::BatchFull { staged_bytes });
        }
        let mut building = self.building.take().unwrap_or_else(|| self.begin());
        let place = hold(self, &mut building);
        HistoryEntry { place, payload_len, body }.encode(&mut building.entries);
        building.count += 1;
        self.building = Some(building);
        self.next_seq += 1;
        Ok(Stamp { seq: self.next_seq - 1, place })
    }
}

impl Building {
    fn len(&self) -> u64 {
        self.entries.len() as u64 + self.held_bytes + self.blob_bytes
    }

    fn close_bundle(&mut self, extent: Option<Extent>) {
        let Some(extent) = extent.filter(|_| !self.open.is_empty()) else { return };
        let bytes = encode_bundle(&std::mem::take(&mut self.open));
        self.open_len = 0;
        self.bundles.push(Bundle { bytes, extent });
    }
}

impl Stage for Stager {
    type Batch = Batch;

    fn next_seq(&self) -> u64 {
        self.next_seq
    }

    fn stage(&mut self, body: &[u8], payload: Bytes) -> Result<Stamp, StageError> {
        StageError::check_lens(body.len(), payload.len())?;
        let payload_len = payload.len() as u32;
        self.push(body, payload_len, |stager, building| {
            if payload.is_empty() {
                return nowhere(stager.segment);
            }
            let held = stager.held(building, payload);
            stager.hold(building, held, payload_len)
        })
    }

    fn stage_stored(&mut self, body: &[u8], blob: Blob) -> Result<Stamp, StageError> {
        let Blob { name, len, crc32c, claim } = blob;
        StageError::check_lens(body.len(), len as usize)?;
        if claim != self.epoch {
            return Err(StageError::OtherClaim { claim, now: self.epoch });
        }
        let held = Held::Blob { name, crc: crc32c };
        self.push(body, len, |stager, building| stager.hold(building, held, len))
    }

    fn staged_bytes(&self) -> u64 {
        self.building.as_ref().map_or(0, |building| building.len())
    }

    fn take_batch(&mut self) -> Option<Batch> {
        let mut building = self.building.take()?;
        building.close_bundle(self.extent);
        let Building { first_seq, first_sequence, bundles, blobs, entries, count, .. } = building;
        let entries = entries.freeze();
        let cut = self.limits.message_max - HEAD_LEN;
        let pieces = entries.len().div_ceil(cut);
        let pieces: Vec<Bytes> = (0..pieces)
            .map(|n| {
                let bytes = entries.slice(n * cut..entries.len().min((n + 1) * cut));
                let (last, piece, epoch) = (n + 1 == pieces, n as u32, self.epoch);
                Piece { last, piece, epoch, first_seq, count, segment: self.segment, bytes }.encode()
            })
            .collect();
        let batch = Batch { first_seq, count, segment: self.segment, first_sequence, bundles, pieces, blobs };
        self.next_sequence = batch.last_sequence() + 1;
        Some(batch)
    }

    fn free(&mut self, place: Place, payload_len: u32) {
        self.live.free(place, payload_len);
    }

    fn retain(&mut self, live: &mut dyn Iterator<Item = (Place, u32)>) -> u64 {
        self.live.retain(live)
    }

    fn reclaimable(&mut self) -> Vec<Release> {
        self.live.reclaimable(self.segment, self.next_seq - 1)
    }

    fn sparse(&self, live_share_max: f64) -> Vec<Sparse> {
        self.live.sparse(self.segment, live_share_max)
    }
}
