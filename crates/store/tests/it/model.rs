//! Random work and random crashes against a plain list.
//!
//! The rules: after any crash every committed record is there with its payload, in order; none is
//! invented; of the batch under way all or nothing is there. Without fsync, power loss may take the newest
//! records, but never from the middle.

use crate::faulty::{Crash, Faults, FaultyDisk};
use crate::support::{Found, Record, read, record, replay, stage};
use proptest::prelude::*;
use rollyard_store::log::{
    Archive, Commit, Durability, KeepSnapshots, Log, LogError, Opened, Options, Parts, Place, ReadError,
    Reader, SegmentNo, Snapshot, Stage, fuzz_read, open,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

type Ends = Parts<Opened>;

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
    Reopen {
        close: bool,
    },
    /// The power goes after some operations of the steps that follow, and again while opening.
    Crash {
        power: u32,
        power_at_open: Option<u32>,
        crash: Crash,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let crash = prop_oneof![
        Just(Crash::Kill),
        Just(Crash::LoseUnsynced),
        any::<u64>().prop_map(|seed| Crash::Pages { seed }),
        (0..20_000_usize).prop_map(|bytes| Crash::Tear { bytes }),
    ];
    let payload_len = prop_oneof![0..200_usize, 3000..9000_usize];
    prop_oneof![
        6 => (1..5_u64, payload_len).prop_map(|(count, payload_len)| Step::Append { count, payload_len }),
        1 => (1..4_usize).prop_map(|nth| Step::Free { nth }),
        1 => Just(Step::Snapshot),
        1 => any::<bool>().prop_map(|close| Step::Reopen { close }),
        2 => (0..12_u32, proptest::option::of(0..12_u32), crash)
            .prop_map(|(power, power_at_open, crash)| Step::Crash { power, power_at_open, crash }),
    ]
}

/// One record, where it is, and the indices of those whose payloads it frees.
#[derive(Clone, Debug)]
struct Kept {
    record: Record,
    place: Place,
    frees: Vec<usize>,
}

struct World {
    disk: FaultyDisk,
    durability: Durability,
    ends: Option<Ends>,
    kept: Vec<Kept>,
    /// The batch that was being committed when the power went.
    under_way: Vec<Kept>,
    /// The newest snapshot that was written, and one that may have been.
    snapshot_seqs: [u64; 2],
    /// What happens once an operation has failed.
    next_crash: Option<(Option<u32>, Crash)>,
}

impl World {
    fn new(durability: Durability) -> Self {
        let mut world = Self {
            disk: FaultyDisk::default(),
            durability,
            ends: None,
            kept: Vec::new(),
            under_way: Vec::new(),
            snapshot_seqs: [0, 0],
            next_crash: None,
        };
        world.open(false);
        world
    }

    fn step(&mut self, step: &Step) {
        let mut ends = self.ends.take().unwrap();
        let done = match *step {
            Step::Append { count, payload_len } => self.append(&mut ends, count, payload_len),
            Step::Free { nth } => self.free(&mut ends, nth),
            Step::Snapshot => self.snapshot(&ends),
            Step::Crash { power, power_at_open, crash } => {
                self.next_crash = Some((power_at_open, crash));
                self.disk.set(Faults { power: Some(power), ..Faults::default() });
                Ok(())
            }
            Step::Reopen { close } => {
                let done = if close { ends.writer.close() } else { Ok(()) };
                match done {
                    Ok(()) if self.next_crash.is_none() => self.open(false),
                    _ => self.crash(),
                }
                return;
            }
        };
        match done {
            Ok(()) => self.ends = Some(ends),
            Err(error) => {
                assert!(self.next_crash.is_some(), "failed without a fault: {error}");
                drop(ends);
                self.crash();
            }
        }
    }

    fn append(&mut self, ends: &mut Ends, count: u64, payload_len: usize) -> Result<(), LogError> {
        let next = self.kept.len() as u64 + 1;
        let batch = (next..next + count).map(|n| record(n, payload_len)).collect();
        self.commit(ends, batch, Vec::new())
    }

    fn commit(&mut self, ends: &mut Ends, batch: Vec<Record>, frees: Vec<usize>) -> Result<(), LogError> {
        let places = stage(&mut ends.stager, &batch);
        let staged = places.into_iter().zip(batch);
        let kept = staged.map(|(place, record)| Kept { record, place, frees: frees.clone() });
        self.under_way = kept.collect();
        ends.writer.commit(ends.stager.take_batch().unwrap())?;
        self.kept.append(&mut self.under_way);
        Ok(())
    }

    /// The indices of the records whose payloads are needed.
    fn live(&self) -> BTreeSet<usize> {
        let freed: BTreeSet<_> = self.kept.iter().flat_map(|kept| kept.frees.clone()).collect();
        let with_payload = |n: &usize| !self.kept[*n].record.payload.is_empty();
        (0..self.kept.len()).filter(with_payload).filter(|n| !freed.contains(n)).collect()
    }

    fn free(&mut self, ends: &mut Ends, nth: usize) -> Result<(), LogError> {
        let frees: Vec<_> = self.live().into_iter().step_by(nth).collect();
        for &n in &frees {
            ends.stager.free(self.kept[n].place, self.kept[n].record.payload.len() as u32);
        }
        self.commit(ends, vec![record(self.kept.len() as u64 + 1, 0)], frees)?;
        ends.stager.reclaimable().into_iter().try_for_each(|release| ends.writer.release(release).map(drop))
    }

    fn snapshot(&mut self, ends: &Ends) -> Result<(), LogError> {
        let seq = self.kept.len() as u64;
        self.snapshot_seqs[1] = seq;
        ends.snapshots.write(seq, &seq.to_le_bytes().repeat(50))?;
        self.snapshot_seqs[0] = seq;
        Ok(())
    }

    fn crash(&mut self) {
        let (power_at_open, crash) = self.next_crash.take().unwrap();
        self.disk = self.disk.after(crash);
        let loses = self.durability == Durability::Os && !matches!(crash, Crash::Kill);
        self.check_archive(loses);
        if power_at_open.is_some() {
            self.disk.set(Faults { power: power_at_open, ..Faults::default() });
            let interrupted = open(Path::new("run"), self.options());
            drop(interrupted);
            self.disk = self.disk.after(crash);
        }
        self.open(loses);
    }

    fn options(&self) -> Options {
        Options { segment_bytes: 5000, durability: self.durability, disk: Arc::new(self.disk.clone()) }
    }

    /// Whoever looks at the disk before its owner does sees every committed record.
    fn check_archive(&self, loses: bool) {
        let mut bodies = Vec::new();
        let archive = Archive::open_on(Arc::new(self.disk.clone()), Path::new("run")).unwrap();
        let visited = archive.visit(|entry| {
            bodies.push(entry.body.to_vec());
            Ok::<_, Infallible>(())
        });
        visited.unwrap();
        self.check_prefix(bodies.iter(), bodies.len(), loses);
    }

    fn check_prefix<'a>(&self, bodies: impl Iterator<Item = &'a Vec<u8>>, count: usize, loses: bool) {
        let (kept, all) = (self.kept.len(), self.kept.len() + self.under_way.len());
        let allowed = if loses { count <= all } else { count == kept || count == all };
        assert!(allowed, "{count} records came back, {kept} were committed, {all} written");
        for (body, kept) in bodies.zip(self.kept.iter().chain(&self.under_way)) {
            assert_eq!(*body, kept.record.body);
        }
    }

    fn open(&mut self, loses: bool) {
        let mut log = open(Path::new("run"), self.options()).unwrap();
        let found = replay(&log, 1);
        self.check_prefix(found.iter().map(|found| &found.body), found.len(), loses);
        self.kept.append(&mut self.under_way);
        self.kept.truncate(found.len());
        self.check_payloads(&log.reader, &found, loses);
        self.check_snapshot(log.take_snapshot(), loses);
        let live = self.live();
        let mut live = live.iter().map(|&n| {
            let len = self.kept[n].record.payload.len() as u32;
            (self.kept[n].place, len)
        });
        assert_eq!(log.stager.retain(&mut live), 0, "a live payload's segment is gone");
        self.ends = Some(log.into_parts());
    }

    fn check_payloads(&self, reader: &Reader, found: &[Found], loses: bool) {
        let live = self.live();
        let last_segment = self.kept.last().map(|kept| SegmentNo::of(kept.place));
        for ((n, found), kept) in (0..).zip(found).zip(&self.kept) {
            assert_eq!(found.seq, n as u64 + 1);
            assert_eq!(found.payload_len as usize, kept.record.payload.len());
            assert_eq!(found.place, kept.place);
            match read(reader, found) {
                Ok(payload) => assert_eq!(payload, kept.record.payload),
                Err(ReadError::Gone { .. }) if !live.contains(&n) => {}
                // A page of it was lost with the power, which the reader was told.
                Err(ReadError::Corrupt { .. })
                    if loses && Some(SegmentNo::of(kept.place)) == last_segment => {}
                Err(error) => panic!("record {}: {error}", found.seq),
            }
        }
    }

    fn check_snapshot(&mut self, snapshot: Option<Snapshot>, loses: bool) {
        let seq = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        if let Some(snapshot) = snapshot {
            assert_eq!(snapshot.bytes, snapshot.seq.to_le_bytes().repeat(50));
        }
        let [written, perhaps] = self.snapshot_seqs;
        assert!(seq <= self.kept.len() as u64);
        assert!(loses || seq == written || seq == perhaps, "{seq}, not {written} or {perhaps}");
        self.snapshot_seqs = [seq, seq];
    }
}

fn run(durability: Durability, steps: &[Step]) {
    let mut world = World::new(durability);
    for step in steps {
        world.step(step);
    }
    drop(world.ends.take());
    world.next_crash.get_or_insert((None, Crash::LoseUnsynced));
    world.crash();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_crash_loses_a_synced_record_or_invents_one(
        steps in proptest::collection::vec(any_step(), 1..60),
    ) {
        run(Durability::Fsync, &steps);
    }

    #[test]
    fn without_fsync_a_crash_leaves_a_prefix(steps in proptest::collection::vec(any_step(), 1..60)) {
        run(Durability::Os, &steps);
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = fuzz_read(&bytes);
    }

    #[test]
    fn mangled_files_are_read_without_panic(
        hist in any::<bool>(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        let log = include_bytes!("../fixtures/log-v1/00000003.log").as_slice();
        let hist = if hist { include_bytes!("../fixtures/log-v1/00000003.hist").as_slice() } else { log };
        let mut bytes = hist.to_vec();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        assert!(fuzz_read(&bytes) <= 3);
        let _ = fuzz_read(&bytes[..cut.index(bytes.len())]);
    }
}
