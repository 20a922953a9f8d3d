//! The owner of a run: the real ledger with a log that only counts, and a witness beside it.

use rollyard_core::ids::{Place, Time};
use rollyard_core::ledger::{Command, Event, Events, Ledger, Refusal, decode_events, encode_events};
use rollyard_core::run_config::RunConfig;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::witness::Witness;

/// Reads a clock that only measures: nothing that happens depends on it.
pub(crate) type Stopwatch = fn() -> Duration;

/// What was done since it was last set to zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meter {
    pub(crate) commands: u64,
    pub(crate) events: u64,
    pub(crate) records: u64,
    pub(crate) history_bytes: u64,
    pub(crate) admitted: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) retries: u64,
    pub(crate) groups_ready: u64,
    pub(crate) groups_dropped: u64,
    pub(crate) groups_timed_out: u64,
    pub(crate) leases: u64,
    pub(crate) leases_expired: u64,
    pub(crate) late_acks: u64,
    pub(crate) steps: u64,
    pub(crate) rewinds: u64,
    /// In the ledger: decide, encode, apply.
    pub(crate) busy: Duration,
    pub(crate) slowest: Duration,
}

impl Meter {
    pub(crate) fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.events += other.events;
        self.records += other.records;
        self.history_bytes += other.history_bytes;
        self.admitted += other.admitted;
        self.payload_bytes += other.payload_bytes;
        self.retries += other.retries;
        self.groups_ready += other.groups_ready;
        self.groups_dropped += other.groups_dropped;
        self.groups_timed_out += other.groups_timed_out;
        self.leases += other.leases;
        self.leases_expired += other.leases_expired;
        self.late_acks += other.late_acks;
        self.steps += other.steps;
        self.rewinds += other.rewinds;
        self.busy += other.busy;
        self.slowest = self.slowest.max(other.slowest);
    }

    fn note(&mut self, event: &Event, is_timeout: bool) {
        self.events += 1;
        match event {
            Event::Admitted(new) => {
                self.admitted += 1;
                self.payload_bytes += u64::from(new.size_bytes);
            }
            Event::GroupReady { .. } => {
                self.groups_ready += 1;
                self.groups_timed_out += u64::from(is_timeout);
            }
            Event::GroupDropped { .. } => {
                self.groups_dropped += 1;
                self.groups_timed_out += u64::from(is_timeout);
            }
            Event::Leased { .. } => self.leases += 1,
            Event::Returned { expired, .. } => self.leases_expired += u64::from(*expired),
            Event::Committed { .. } => self.steps += 1,
            Event::Rewound { .. } | Event::RewoundToStart { .. } => self.rewinds += 1,
            _ => {}
        }
    }
}

/// What another owner would find: a snapshot, and the records behind it.
#[derive(Debug)]
struct Tail {
    snapshot: Vec<u8>,
    bodies: Vec<u8>,
    /// Where each record ends, and the place of its payload.
    records: Vec<(usize, Place)>,
}

/// What it took to go on from the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TakeOver {
    pub(crate) snapshot_bytes: u64,
    pub(crate) snapshot_time: Duration,
    pub(crate) restore_time: Duration,
    pub(crate) records: u64,
    pub(crate) replay_time: Duration,
}

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) ledger: Ledger,
    pub(super) meter: Meter,
    /// Of all records so far: the same for the same history.
    pub(super) history_digest: u64,
    witness: Witness,
    stopwatch: Stopwatch,
    tail: Option<Tail>,
    snapshot_time: Duration,
    body: Vec<u8>,
    freed: Vec<(Place, u32)>,
}

impl Owner {
    pub(super) fn new(run: u64, config: RunConfig, stopwatch: Stopwatch) -> Self {
        Self {
            ledger: Ledger::new(config),
            meter: Meter::default(),
            history_digest: 0,
            witness: Witness::new(run),
            stopwatch,
            tail: None,
            snapshot_time: Duration::ZERO,
            body: Vec::new(),
            freed: Vec::new(),
        }
    }

    /// Does what a yard's thread does with a command, but for the disk. `place` is where the payload is, if it has one.
    pub(super) fn run(&mut self, command: &Command, place: Place, now: Time) -> Result<Events, Refusal> {
        let begun = (self.stopwatch)();
        let decided = self.ledger.decide(command, now);
        if let Ok(events) = &decided
            && !events.is_empty()
        {
            self.body.clear();
            encode_events(events, &mut self.body);
            for event in events {
                self.ledger.apply(event, place, &mut self.freed);
            }
        }
        let spent = (self.stopwatch)().saturating_sub(begun);
        self.meter.busy += spent;
        self.meter.slowest = self.meter.slowest.max(spent);
        self.meter.commands += 1;

        let events = decided?;
        if events.is_empty() {
            return Ok(events);
        }
        self.meter.records += 1;
        self.meter.history_bytes += self.body.len() as u64;
        self.history_digest = xxh3_64_with_seed(&self.body, self.history_digest);
        if let Some(tail) = &mut self.tail {
            tail.bodies.extend_from_slice(&self.body);
            tail.records.push((tail.bodies.len(), place));
        }
        for event in &events {
            self.meter.note(event, matches!(command, Command::Tick));
            self.witness.note(event, place, &self.ledger);
        }
        for (place, _) in self.freed.drain(..) {
            self.witness.note_freed(place);
        }
        Ok(events)
    }

    /// Counts everything again.
    pub(super) fn check(&self) {
        if let Err(wrong) = self.ledger.audit() {
            panic!("the audit found: {wrong}");
        }
        assert!(self.ledger.books().balanced(), "{:?}", self.ledger.books());
        self.witness.check_books(self.ledger.books());
    }

    pub(super) fn check_whereabouts(&self) {
        self.witness.check_whereabouts(&self.ledger);
    }

    /// Takes a snapshot; records from now on are kept.
    pub(super) fn keep_log(&mut self) {
        let begun = (self.stopwatch)();
        let snapshot = self.ledger.snapshot();
        self.snapshot_time = (self.stopwatch)().saturating_sub(begun);
        self.tail = Some(Tail { snapshot, bodies: Vec::new(), records: Vec::new() });
    }

    /// Another owner makes the ledger from the snapshot and what came behind it, and goes on with that.
    pub(super) fn move_owner(&mut self) -> TakeOver {
        let Some(tail) = self.tail.take() else { return TakeOver::default() };
        let begun = (self.stopwatch)();
        let mut ledger = Ledger::restore(&tail.snapshot).expect("a snapshot that was just taken");
        let restored = (self.stopwatch)();
        let mut from = 0;
        for &(end, place) in &tail.records {
            let body = tail.bodies.get(from..end).unwrap_or_default();
            for event in decode_events(body).expect("a record that was just written") {
                ledger.apply(&event, place, &mut self.freed);
            }
            from = end;
        }
        let done = (self.stopwatch)();
        // The first owner has let them go already.
        self.freed.clear();
        assert!(
            ledger.snapshot() == self.ledger.snapshot(),
            "the log gives another ledger than the one it is of"
        );
        self.ledger = ledger;
        TakeOver {
            snapshot_bytes: tail.snapshot.len() as u64,
            snapshot_time: self.snapshot_time,
            restore_time: restored.saturating_sub(begun),
            records: tail.records.len() as u64,
            replay_time: done.saturating_sub(restored),
        }
    }
}
