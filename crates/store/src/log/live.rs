//! Which segments are still needed, counted as payloads come and go.
//!
//! A segment's payloads share a file, so it can go only when the last of them is free. Two numbers per
//! segment say how far that is.

use super::contract::{Release, SegmentNo, Sparse};
use rollyard_core::ids::Place;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// The segments that have a file. The last is the current one.
    segments: BTreeMap<SegmentNo, Tally>,
    /// Set while it is not known what is live in the segments found at the start: none of them may go.
    unknown: bool,
}

#[derive(Debug, Default)]
struct Tally {
    live: u64,
    live_bytes: u64,
    file_bytes: u64,
}

impl Liveness {
    /// The count for a log that had these segments and their lengths when it was opened.
    pub(super) fn of_found(found: impl Iterator<Item = (SegmentNo, u64)>) -> Self {
        let segments: BTreeMap<_, _> =
            found.map(|(segment, file_bytes)| (segment, Tally { file_bytes, ..Tally::default() })).collect();
        Self { unknown: !segments.is_empty(), segments }
    }

    pub(super) fn grow(&mut self, segment: SegmentNo, bytes: u64) {
        self.segments.entry(segment).or_default().file_bytes += bytes;
    }

    /// False when the payload's segment is gone.
    pub(super) fn add(&mut self, place: Place, payload_len: u32) -> bool {
        let tally = self.segments.get_mut(&SegmentNo::of(place));
        let there = tally.is_some();
        if let Some(tally) = tally {
            tally.live += 1;
            tally.live_bytes += u64::from(payload_len);
        }
        there
    }

    pub(super) fn free(&mut self, place: Place, payload_len: u32) {
        if let Some(tally) = self.segments.get_mut(&SegmentNo::of(place)) {
            debug_assert!(tally.live > 0, "{place} was freed twice");
            tally.live = tally.live.saturating_sub(1);
            tally.live_bytes = tally.live_bytes.saturating_sub(u64::from(payload_len));
        }
    }

    /// Forgets what was live and counts anew; returns how many payloads have no segment.
    pub(super) fn retain(&mut self, live: &mut dyn Iterator<Item = (Place, u32)>) -> u64 {
        self.unknown = false;
        for tally in self.segments.values_mut() {
            (tally.live, tally.live_bytes) = (0, 0);
        }
        live.map(|(place, payload_len)| u64::from(!self.add(place, payload_len))).sum()
    }

    /// `current` is still written to and never given out.
    pub(super) fn reclaimable(&mut self, current: SegmentNo, after_seq: u64) -> Vec<Release> {
        if self.unknown {
            return Vec::new();
        }
        let finished = self.segments.range(..current);
        let dead: Vec<_> =
            finished.filter(|(_, tally)| tally.live == 0).map(|(&segment, _)| segment).collect();
        for segment in &dead {
            self.segments.remove(segment);
        }
        dead.into_iter().map(|segment| Release { segment, after_seq }).collect()
    }

    pub(super) fn sparse(&self, current: SegmentNo, live_share_max: f64) -> Vec<Sparse> {
        let mut sparse: Vec<_> = self
            .segments
            .range(..current)
            .map(|(&segment, tally)| Sparse {
                segment,
                live_bytes: tally.live_bytes,
                file_bytes: tally.file_bytes,
            })
            .filter(|found| {
                !self.unknown && (found.live_bytes as f64) < found.file_bytes as f64 * live_share_max
            })
            .collect();
        sparse.sort_by_key(|found| (found.live_bytes, found.segment));
        sparse
    }
}
