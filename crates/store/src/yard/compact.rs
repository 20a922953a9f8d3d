//! Moves the last few payloads out of old segments, so that their disk space comes back.
//!
//! A segment can only be given back as a whole, and one rollout that waits for its group keeps 128 MiB. So
//! segments of which little is still needed have that little copied to the end of the log, a bite at a time
//! between requests.

use rollyard_core::ids::{GroupNo, Place};
use rollyard_core::ledger::{Ledger, Uid};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::log::{SegmentNo, Stage};

/// A segment with a smaller share than this in use is worth emptying.
const LIVE_SHARE_MAX: f64 = 0.2;

/// How often to look for one.
const EVERY: Duration = Duration::from_secs(2);

/// Payload bytes moved between two looks at the requests.
pub(super) const BITE_BYTES: u64 = 512 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) group: GroupNo,
    pub(super) uid: Uid,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) moves: VecDeque<Move>,
    freed_since: bool,
    next_look: Instant,
}

impl Compaction {
    pub(super) fn new() -> Self {
        Self { moves: VecDeque::new(), freed_since: true, next_look: Instant::now() + EVERY }
    }

    pub(super) fn note_freed(&mut self) {
        self.freed_since = true;
    }

    /// When there may be something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if !self.moves.is_empty() {
            return Some(Instant::now());
        }
        self.freed_since.then_some(self.next_look)
    }

    /// Looks for segments to empty, if it is time to. One walk over the ledger serves them all.
    pub(super) fn look(&mut self, ledger: &Ledger, stager: &impl Stage) {
        if !self.moves.is_empty() || !self.freed_since || Instant::now() < self.next_look {
            return;
        }
        self.freed_since = false;
        self.next_look = Instant::now() + EVERY;
        let sparse: BTreeSet<SegmentNo> =
            stager.sparse(LIVE_SHARE_MAX).into_iter().map(|sparse| sparse.segment).collect();
        if sparse.is_empty() {
            return;
        }
        self.moves = ledger
            .groups()
            .flat_map(|(group, known)| {
                known.rollouts.iter().map(move |rollout| Move {
                    group,
                    uid: rollout.uid,
                    place: rollout.place,
                })
            })
            .filter(|found| sparse.contains(&SegmentNo::of(found.place)))
            .collect();
    }
}
