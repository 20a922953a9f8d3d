//! The last ten minutes of a run, a look a second.

use rollyard_core::pipeline::DropReason;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use utoipa::ToSchema;

const LOOKS_KEPT: usize = 600;

/// LiveRates are taken over so many milliseconds: long enough not to jump with every batch, short enough to believe.
const RATE_MS: u64 = 10_000;

/// The counters of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    pub(super) at_ms: u64,
    /// These only grow, but for what comes back from readers.
    pub(super) admitted: u64,
    pub(super) read: u64,
    pub(super) trained: u64,
    pub(super) dropped: BTreeMap<DropReason, u64>,
    /// These are what is there now.
    pub(super) held: u64,
    pub(super) leased: u64,
    pub(super) open: usize,
    pub(super) posed: usize,
    pub(super) ready: usize,
}

impl Look {
    fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    fn rates_since(&self, earlier: &Self) -> LiveRates {
        let secs = self.at_ms.saturating_sub(earlier.at_ms) as f64 / 1000.0;
        // Looks less than a blink apart tell no rate.
        let rate = |now: u64, before: u64| {
            if secs < 0.05 { 0.0 } else { (now.saturating_sub(before) as f64 / secs * 100.0).round() / 100.0 }
        };
        LiveRates {
            admitted: rate(self.admitted, earlier.admitted),
            read: rate(self.read, earlier.read),
            trained: rate(self.trained, earlier.trained),
            dropped: rate(self.dropped_total(), earlier.dropped_total()),
        }
    }
}

/// Rollouts a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(super) struct LiveRates {
    /// Taken in.
    pub(super) admitted: f64,
    /// Handed to readers, less what came back.
    pub(super) read: f64,
    pub(super) trained: f64,
    pub(super) dropped: f64,
}

/// Curves of the last ten minutes, one value a second; the n-th of each belongs to the n-th time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(super) struct LiveHistory {
    /// Milliseconds since 1970.
    at_ms: Vec<u64>,
    /// Rollouts a second.
    admitted: Vec<f64>,
    read: Vec<f64>,
    trained: Vec<f64>,
    dropped: Vec<f64>,
    /// Rollouts.
    held: Vec<u64>,
    leased: Vec<u64>,
    /// Groups.
    open: Vec<usize>,
    posed: Vec<usize>,
    ready: Vec<usize>,
}

/// What was seen of a run.
#[derive(Debug, Default)]
pub(super) struct Course {
    looks: VecDeque<Look>,
    /// When these last moved, as far as was seen.
    admitted_ms: u64,
    read_ms: u64,
}

impl Course {
    pub(super) fn push(&mut self, look: Look) {
        let moved = self.moved(&look);
        (self.admitted_ms, self.read_ms) = (moved.admitted_ms, moved.read_ms);
        if self.looks.len() >= LOOKS_KEPT {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
    }

    /// When rollouts last came in and went out, with a look that is not kept.
    pub(super) fn moved(&self, look: &Look) -> Moved {
        let last = self.looks.back();
        let since = |same: fn(&Look, &Look) -> bool, known: u64| match last {
            Some(last) if same(last, look) => known,
            _ => look.at_ms,
        };
        Moved {
            admitted_ms: since(|a, b| a.admitted == b.admitted, self.admitted_ms),
            read_ms: since(|a, b| a.read == b.read, self.read_ms),
        }
    }

    /// The rates of the last seconds up to `look`.
    pub(super) fn rates(&self, look: &Look) -> LiveRates {
        self.before(look, RATE_MS).map(|earlier| look.rates_since(earlier)).unwrap_or_default()
    }

    /// What was dropped in the last `ms`, by reason, and how much went to readers meanwhile.
    pub(super) fn left_lately(&self, look: &Look, ms: u64) -> Lately {
        let Some(earlier) = self.before(look, ms) else { return Lately::default() };
        let since = |(reason, count): (&DropReason, &u64)| {
            let more = count.saturating_sub(earlier.dropped.get(reason).copied().unwrap_or_default());
            (more > 0).then_some((*reason, more))
        };
        Lately {
            dropped: look.dropped.iter().filter_map(since).collect(),
            read: look.read.saturating_sub(earlier.read),
        }
    }

    /// The oldest look of the last `ms`.
    fn before(&self, look: &Look, ms: u64) -> Option<&Look> {
        let from = look.at_ms.saturating_sub(ms);
        let first = self.looks.partition_point(|known| known.at_ms < from);
        self.looks.get(first)
    }

    /// The curves after a time.
    pub(super) fn answer(&self, after_ms: u64) -> LiveHistory {
        let mut answer = LiveHistory::default();
        for (earlier, look) in self.looks.iter().zip(self.looks.iter().skip(1)) {
            if look.at_ms <= after_ms {
                continue;
            }
            let rates = look.rates_since(earlier);
            answer.at_ms.push(look.at_ms);
            answer.admitted.push(rates.admitted);
            answer.read.push(rates.read);
            answer.trained.push(rates.trained);
            answer.dropped.push(rates.dropped);
            answer.held.push(look.held);
            answer.leased.push(look.leased);
            answer.open.push(look.open);
            answer.posed.push(look.posed);
            answer.ready.push(look.ready);
        }
        answer
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) admitted_ms: u64,
    pub(super) read_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lately {
    pub(super) dropped: BTreeMap<DropReason, u64>,
    pub(super) read: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(secs: u64, admitted: u64) -> Look {
        Look { at_ms: secs * 1000, admitted, ..Look::default() }
    }

    #[test]
    fn rates_are_of_the_last_ten_seconds() {
        let mut course = Course::default();
        // Nothing for a minute, then five a second.
        for secs in 0..=60 {
            course.push(look(secs, 0));
        }
        for secs in 61..=70 {
            course.push(look(secs, (secs - 60) * 5));
        }
        assert_eq!(course.rates(&look(70, 50)).admitted, 5.0);
        assert_eq!(course.rates(&look(80, 50)).admitted, 0.0);
        assert_eq!(Course::default().rates(&look(80, 50)), LiveRates::default());
    }

    #[test]
    fn ten_minutes_are_kept() {
        let mut course = Course::default();
        for secs in 0..1000 {
            course.push(look(secs, secs));
        }
        let all = course.answer(0);
        assert_eq!((all.at_ms.len(), all.at_ms[0], all.admitted[0]), (599, 401_000, 1.0));
        assert_eq!(course.answer(997_000).at_ms, [998_000, 999_000]);
        assert_eq!(course.answer(999_000), LiveHistory::default());
    }

    #[test]
    fn what_comes_back_from_readers_is_no_negative_rate() {
        let mut course = Course::default();
        course.push(Look { at_ms: 1000, read: 8, ..Look::default() });
        let back = Look { at_ms: 2000, read: 0, ..Look::default() };
        assert_eq!(course.rates(&back).read, 0.0);
    }

    #[test]
    fn a_counter_that_stands_still_keeps_its_time() {
        let mut course = Course::default();
        for (secs, admitted) in [(1, 3), (2, 3), (3, 4), (4, 4)] {
            course.push(look(secs, admitted));
        }
        let moved = course.moved(&look(9, 4));
        assert_eq!((moved.admitted_ms, moved.read_ms), (3000, 1000));
        assert_eq!(course.moved(&look(9, 5)).admitted_ms, 9000);
    }

    #[test]
    fn drops_are_told_for_a_while() {
        let mut course = Course::default();
        let dropped = |secs: u64, varied, stale| Look {
            at_ms: secs * 1000,
            dropped: [(DropReason::NoVariance, varied), (DropReason::StaleStep, stale)].into(),
            ..Look::default()
        };
        course.push(dropped(1, 5, 0));
        course.push(dropped(100, 5, 2));
        let lately = course.left_lately(&dropped(130, 5, 9), 60_000);
        assert_eq!(lately.dropped, [(DropReason::StaleStep, 7)].into());
    }
}
