//! The same random work on every log, against a plain list: what was committed is there, in order, once, with its
//! payload as long as that is needed, whoever keeps the log and however it was left.

use crate::support::{Record, read, record, replay, stage};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rollyard_core::ids::RunName;
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::log::{
    Commit, KeepSnapshots, Log, Options, Parts, Place, ReadError, Stage, memory::Memory, open,
};
use rollyard_test_nats::{Options as NatsOptions, Server};
use std::cell::Cell;
use std::collections::BTreeSet;

const SEGMENT_BYTES: u64 = 20_000;

#[derive(Clone, Debug)]
enum Step {
    Append {
        count: u64,
        payload_len: usize,
    },
    /// Frees every n-th live payload and releases what can be released.
    Free {
        nth: usize,
    },
    Snapshot,
    /// Stages without committing, then opens anew: closed properly, or left as a crash would.
    Reopen {
        staged: u64,
        close: bool,
    },
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let payload_len = prop_oneof![4 => 0..200_usize, 4 => 3000..9000_usize, 1 => 60_000..200_000_usize];
    let step = prop_oneof![
        6 => (1..6_u64, payload_len).prop_map(|(count, payload_len)| Step::Append { count, payload_len }),
        2 => (1..4_usize).prop_map(|nth| Step::Free { nth }),
        1 => Just(Step::Snapshot),
        2 => (0..3_u64, any::<bool>()).prop_map(|(staged, close)| Step::Reopen { staged, close }),
    ];
    proptest::collection::vec(step, 1..40)
}

struct Kept {
    record: Record,
    place: Place,
    freed: bool,
}

struct World<L: Log, O> {
    open: O,
    ends: Option<Parts<L>>,
    kept: Vec<Kept>,
    snapshot_seq: u64,
}

impl<L: Log, O: Fn() -> L> World<L, O> {
    fn new(open: O) -> Self {
        let mut world = Self { open, ends: None, kept: Vec::new(), snapshot_seq: 0 };
        world.reopen();
        world
    }

    fn step(&mut self, step: &Step) {
        let mut ends = self.ends.take().unwrap();
        match *step {
            Step::Append { count, payload_len } => {
                let next = self.kept.len() as u64 + 1;
                self.commit(&mut ends, (next..next + count).map(|n| record(n, payload_len)).collect());
            }
            Step::Free { nth } => self.free(&mut ends, nth),
            Step::Snapshot => {
                self.snapshot_seq = self.kept.len() as u64;
                ends.snapshots.write(self.snapshot_seq, &self.snapshot_seq.to_le_bytes()).unwrap();
            }
            Step::Reopen { staged, close } => {
                let next = self.kept.len() as u64 + 1;
                let lost: Vec<_> = (next..next + staged).map(|n| record(n + 1_000_000, 50)).collect();
                stage(&mut ends.stager, &lost);
                let Parts { stager, writer, reader, snapshots } = ends;
                if close {
                    writer.close().unwrap();
                } else {
                    drop(writer);
                }
                drop((stager, reader, snapshots));
                self.reopen();
                return;
            }
        }
        self.ends = Some(ends);
    }

    fn commit(&mut self, ends: &mut Parts<L>, batch: Vec<Record>) {
        let places = stage(&mut ends.stager, &batch);
        ends.writer.commit(ends.stager.take_batch().unwrap()).unwrap();
        let kept = places.into_iter().zip(batch);
        self.kept.extend(kept.map(|(place, record)| Kept { record, place, freed: false }));
    }

    fn free(&mut self, ends: &mut Parts<L>, nth: usize) {
        let live: Vec<_> = self.live().into_iter().step_by(nth).collect();
        for n in live {
            let kept = &mut self.kept[n];
            kept.freed = true;
            ends.stager.free(kept.place, kept.record.payload.len() as u32);
        }
        self.commit(ends, vec![record(self.kept.len() as u64 + 1, 0)]);
        for release in ends.stager.reclaimable() {
            ends.writer.release(release).unwrap();
        }
    }

    fn live(&self) -> BTreeSet<usize> {
        let needed = |n: &usize| !self.kept[*n].freed && !self.kept[*n].record.payload.is_empty();
        (0..self.kept.len()).filter(needed).collect()
    }

    fn reopen(&mut self) {
        self.ends = None;
        let mut log = (self.open)();
        assert_eq!(log.take_snapshot().map_or(0, |snapshot| snapshot.seq), self.snapshot_seq);
        let found = replay(&log, 1);
        assert_eq!(found.len(), self.kept.len());
        let after_snapshot: Vec<_> =
            replay(&log, self.snapshot_seq + 1).iter().map(|found| found.seq).collect();
        assert_eq!(after_snapshot, (self.snapshot_seq + 1..=self.kept.len() as u64).collect::<Vec<_>>());
        let mut ends = log.into_parts();
        let live = self.live();
        for ((n, found), kept) in (0..).zip(&found).zip(&self.kept) {
            assert_eq!((found.seq, found.place), (n as u64 + 1, kept.place));
            assert_eq!(
                (&found.body, found.payload_len as usize),
                (&kept.record.body, kept.record.payload.len())
            );
            match read(&ends.reader, found) {
                Ok(payload) => assert_eq!(payload, kept.record.payload),
                Err(ReadError::Gone { .. }) if !live.contains(&n) => {}
                Err(error) => panic!("record {}: {error}", found.seq),
            }
        }
        let mut needed = live.iter().map(|&n| (self.kept[n].place, self.kept[n].record.payload.len() as u32));
        assert_eq!(ends.stager.retain(&mut needed), 0, "a live payload's segment is gone");
        self.ends = Some(ends);
    }
}

/// `new` makes an empty log and gives a way to open it, again and again.
fn stands_random_work<L: Log, O: Fn() -> L>(cases: u32, new: impl Fn() -> O) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&any_steps(), |steps| {
        let mut world = World::new(new());
        steps.iter().for_each(|step| world.step(step));
        world.step(&Step::Reopen { staged: 1, close: false });
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn the_embedded_log_stands_random_work() {
    stands_random_work(24, || {
        let dir = tempfile::tempdir().unwrap();
        move || open(dir.path(), Options { segment_bytes: SEGMENT_BYTES, ..Options::default() }).unwrap()
    });
}

#[test]
fn the_memory_log_stands_random_work() {
    stands_random_work(100, || {
        let memory = Memory::new(SEGMENT_BYTES);
        move || memory.open()
    });
}

#[test]
fn the_jetstream_log_stands_random_work() {
    let server = Server::start(NatsOptions::default());
    let settings = Settings { segment_bytes: SEGMENT_BYTES, ..Settings::new(server.url()) };
    let connection = Connection::open(settings).unwrap();
    let runs = Cell::new(0);
    stands_random_work(24, || {
        runs.set(runs.get() + 1);
        let run = RunName::try_from(format!("run-{}", runs.get()).as_str()).unwrap();
        let opener = connection.opener(&run, "node", "http://127.0.0.1:1");
        move || opener.open().unwrap()
    });
}
