//! An open run on a disk that does its worst.

use super::faulty::{Crash, Faults, FaultyDisk};
use bytes::Bytes;
use proptest::prelude::*;
use rollyard_core::ids::{LeaseNo, RunName};
use rollyard_core::ledger::{Books, Command, LeaseTerms, Want};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item;
use rollyard_store::log::{self, LogError};
use rollyard_store::yard::{Admission, Granted, Submission, Yard, YardError, open_on};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DIR: &str = "/run";

fn open(disk: &FaultyDisk, segment_bytes: u64) -> Result<Yard, YardError> {
    let config = json!({"group_size": 2, "keep_commits": 0});
    let config = RunConfig::default().patched(config.as_object().unwrap()).unwrap();
    let run = RunName::try_from("test").unwrap();
    let disk = disk.clone();
    open_on(&run, &config, &mut |_, _| {}, move || {
        let options = log::Options { segment_bytes, disk: Arc::new(disk.clone()), ..log::Options::default() };
        log::open(Path::new(DIR), options)
    })
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn submission(n: u32) -> Submission {
    let text = json!({
        "uid": n.to_string(), "instance_id": n / 2, "reward": n % 2, "messages": [], "extra_info": {},
        "filler": "x".repeat(500),
    })
    .to_string();
    Submission::new(item::decode(text.as_bytes()).unwrap(), Bytes::from(text))
}

fn admit(yard: &Yard, n: u32) -> Result<Admission, YardError> {
    wait(yard.admit(vec![submission(n)])).map(|mut outcomes| outcomes.remove(0).unwrap())
}

fn lease(yard: &Yard, want: Want) -> Option<Granted> {
    let terms = LeaseTerms { reader: "test".to_owned(), secs: None, auto: false };
    wait(yard.lease(want, terms, Instant::now())).unwrap()
}

fn train(yard: &Yard, step: u64, want: Want) -> LeaseNo {
    let lease = lease(yard, want).unwrap().lease;
    wait(yard.run(Command::Ack { lease })).unwrap();
    wait(yard.run(Command::Commit { step, leases: None })).unwrap();
    lease
}

fn books(yard: &Yard) -> Books {
    wait(yard.ask(|ledger| {
        ledger.audit().unwrap();
        ledger.books().clone()
    }))
    .unwrap()
}

fn is_held(yard: &Yard, n: u32) -> bool {
    wait(yard.ask(move |ledger| ledger.whereabouts(&n.to_string()).is_some())).unwrap()
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let disk = FaultyDisk::default();
    let yard = open(&disk, 1 << 20).unwrap();
    admit(&yard, 0).unwrap();
    disk.set(Faults { room: Some(100), cannot_allocate: true, ..Faults::default() });
    let refused = admit(&yard, 1).unwrap_err();
    assert!(matches!(refused, YardError::Log(LogError::NoSpace { .. })), "{refused}");

    disk.set(Faults::default());
    let deadline = Instant::now() + Duration::from_secs(10);
    while admit(&yard, 2).is_err() {
        assert!(Instant::now() < deadline, "the run did not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_held(&yard, 0) && !is_held(&yard, 1) && is_held(&yard, 2));
    assert_eq!(books(&yard).admitted, 2);
}

#[test]
fn a_failed_sync_stops_the_run_until_a_restart() {
    let disk = FaultyDisk::default();
    let yard = open(&disk, 1 << 20).unwrap();
    admit(&yard, 0).unwrap();
    disk.set(Faults { sync_fails: true, ..Faults::default() });
    assert!(matches!(admit(&yard, 1), Err(YardError::Log(LogError::Sync { .. }))));
    // The disk works again, but nobody knows what it dropped.
    disk.set(Faults::default());
    std::thread::sleep(Duration::from_millis(1200));
    assert!(matches!(admit(&yard, 2), Err(YardError::Log(LogError::Sync { .. }))));
    assert!(wait(yard.ask(|_| ())).is_err());
    drop(yard);

    let yard = open(&disk.after(Crash::LoseUnsynced), 1 << 20).unwrap();
    assert!(is_held(&yard, 0));
}

#[test]
fn consumed_segments_are_given_back_and_the_rest_stays_readable() {
    let disk = FaultyDisk::default();
    let yard = open(&disk, 8 << 10).unwrap();
    // One rollout in every few waits for ever; the others are trained on.
    for n in 0..400 {
        admit(&yard, n).unwrap();
        if n % 10 == 9 {
            train(&yard, u64::from(n), Want::All);
            admit(&yard, 10_000 + 2 * n).unwrap();
        }
    }
    let logs =
        || disk.files().iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "log")).count();
    let bytes = || disk.files().iter().map(|(_, len)| *len).sum::<usize>();
    let deadline = Instant::now() + Duration::from_secs(30);
    // Forty payloads of 600 bytes fit in a handful of segments.
    while logs() > 10 {
        assert!(Instant::now() < deadline, "{} segments, {} bytes are left", logs(), bytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = books(&yard);
    drop(yard);
    let yard = open(&disk, 8 << 10).unwrap();
    assert_eq!(books(&yard), before);
    let places: Vec<_> = wait(yard.ask(|ledger| ledger.places().collect::<Vec<_>>())).unwrap();
    assert_eq!(places.len(), 40);
    for (place, size_bytes) in places {
        assert_eq!(yard.payload(place).unwrap().len(), size_bytes as usize);
    }
}

#[test]
fn a_lease_for_a_reader_who_left_goes_back() {
    let disk = FaultyDisk::default();
    let yard = open(&disk, 1 << 20).unwrap();
    let terms = LeaseTerms { reader: "gone".to_owned(), secs: None, auto: false };
    {
        let waiting = yard.lease(Want::Groups(1), terms, Instant::now() + Duration::from_secs(60));
        let short = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        // Polled once, so that it is in the queue, then dropped.
        let outcome =
            short.block_on(async { tokio::time::timeout(Duration::from_millis(50), waiting).await });
        assert!(outcome.is_err());
    }
    admit(&yard, 0).unwrap();
    admit(&yard, 1).unwrap();
    assert!(lease(&yard, Want::Groups(1)).is_some());
}

#[derive(Clone, Debug)]
enum Step {
    Admit(u32),
    Train,
    Take,
    Return,
    Crash(u64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u32..60).prop_map(Step::Admit),
        2 => Just(Step::Train),
        2 => Just(Step::Take),
        1 => Just(Step::Return),
        2 => any::<u64>().prop_map(Step::Crash),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever was answered is there after any crash: not a rollout less, not one more, none twice.
    #[test]
    fn answered_means_kept(steps in steps()) {
        let mut disk = FaultyDisk::default();
        let mut yard = open(&disk, 4 << 10).unwrap();
        let mut written = std::collections::BTreeSet::new();
        let mut trained = 0;
        let mut out: Vec<(LeaseNo, u64)> = Vec::new();
        let mut step_no = 0;
        for step in steps {
            match step {
                Step::Admit(n) => {
                    let duplicate = admit(&yard, n).unwrap().duplicate;
                    prop_assert_eq!(duplicate, !written.insert(n));
                }
                Step::Train => if let Some(granted) = lease(&yard, Want::Groups(1)) {
                    step_no += 1;
                    wait(yard.run(Command::Ack { lease: granted.lease })).unwrap();
                    wait(yard.run(Command::Commit { step: step_no, leases: Some(vec![granted.lease]) })).unwrap();
                    trained += 2;
                },
                Step::Take => out.extend(lease(&yard, Want::Groups(1)).map(|granted| (granted.lease, 2))),
                Step::Return => if let Some((lease, _)) = out.pop() {
                    wait(yard.run(Command::Return { lease })).unwrap();
                },
                Step::Crash(seed) => {
                    // The process dies where it stands; what it had not synced may or may not be there.
                    let found = disk.after(Crash::Pages { seed });
                    drop(yard);
                    disk = found;
                    yard = open(&disk, 4 << 10).unwrap();
                }
                Step::Restart => {
                    drop(yard);
                    yard = open(&disk, 4 << 10).unwrap();
                }
            }
            let books = books(&yard);
            prop_assert_eq!(books.admitted, written.len() as u64);
            prop_assert_eq!(books.trained, trained);
            prop_assert_eq!(books.leased, out.iter().map(|(_, count)| count).sum::<u64>());
            prop_assert!(written.iter().all(|n| is_held(&yard, *n)));
        }
    }
}
