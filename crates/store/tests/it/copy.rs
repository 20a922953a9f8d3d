//! Runs copied from files to streams and back.

use bytes::Bytes;
use proptest::prelude::*;
use rollyard_core::ids::{LeaseNo, RunName};
use rollyard_core::ledger::{Books, Command, Event, LeaseTerms, Want, decode_events};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item;
use rollyard_store::log::copy::{
    Copied, CopyError, DataFolder, Doing, FolderSource, FolderTarget, Progress, Source, StreamSource,
    StreamTarget, Target, copy,
};
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::log::{self, Log, LogError, Options};
use rollyard_store::yard::{Submission, Yard, YardError, open_on};
use rollyard_test_nats::{Options as NatsOptions, Server};
use serde_json::json;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn name(run: &str) -> RunName {
    RunName::try_from(run).unwrap()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn open_with<L: Log + 'static>(open_log: impl Fn() -> Result<L, LogError> + Send + 'static) -> Yard {
    let config = json!({"group_size": 2, "keep_commits": 1, "durability": "os"});
    let config = RunConfig::default().patched(config.as_object().unwrap()).unwrap();
    open_on(&name("test"), &config, &mut |_, _| {}, open_log).unwrap()
}

/// A run in a data folder, with small segments.
fn in_folder(data: &Path, run: &str) -> Yard {
    let dir = data.join("runs").join(run);
    open_with(move || log::open(&dir, Options { segment_bytes: 8 << 10, ..Options::default() }))
}

fn on_stream(connection: &Connection, run: &str) -> Yard {
    let opener = connection.opener(&name(run), "node", "http://127.0.0.1:1");
    open_with(move || opener.open())
}

fn admit(yard: &Yard, n: u32, filler: usize) {
    let text = json!({
        "uid": n.to_string(), "instance_id": n / 2, "reward": n % 2, "messages": [], "extra_info": {},
        "filler": "x".repeat(filler),
    })
    .to_string();
    let submission = Submission::new(item::decode(text.as_bytes()).unwrap(), Bytes::from(text));
    wait(yard.admit(vec![submission])).unwrap().remove(0).unwrap();
}

fn lease(yard: &Yard, want: Want) -> Option<LeaseNo> {
    let terms = LeaseTerms { reader: "test".to_owned(), secs: None, auto: false };
    wait(yard.lease(want, terms, Instant::now())).unwrap().map(|granted| granted.lease)
}

fn train(yard: &Yard, step: u64, want: Want) {
    let Some(lease) = lease(yard, want) else { return };
    wait(yard.run(Command::Ack { lease })).unwrap();
    wait(yard.run(Command::Commit { step, leases: Some(vec![lease]) })).unwrap();
}

/// The books, and the bytes of every rollout that is kept, by its uid.
fn state(yard: &Yard) -> (Books, BTreeMap<String, Bytes>) {
    let (books, places) = wait(yard.ask(|ledger| {
        ledger.audit().unwrap();
        (ledger.books().clone(), ledger.places().collect::<Vec<_>>())
    }))
    .unwrap();
    let bytes = places.into_iter().map(|(place, size_bytes)| {
        let payload = yard.payload(place).unwrap();
        assert_eq!(payload.len(), size_bytes as usize);
        let uid = serde_json::from_slice::<serde_json::Value>(&payload).unwrap()["uid"].to_string();
        (uid, payload)
    });
    (books, bytes.collect())
}

fn bodies(source: &impl Source) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    let visited = source.visit(|entry| {
        bodies.push(entry.body.to_vec());
        assert_eq!(entry.seq, bodies.len() as u64);
        Ok::<_, String>(())
    });
    assert_eq!(visited.unwrap().last_seq, bodies.len() as u64);
    bodies
}

fn has_moved_payloads(bodies: &[Vec<u8>]) -> bool {
    let mut events = bodies.iter().flat_map(|body| decode_events(body).unwrap());
    events.any(|event| matches!(event, Event::Relocated { .. }))
}

fn unwatched(run: &str, source: &impl Source, target: &mut impl Target) -> Result<Copied, CopyError> {
    copy(&name(run), source, target, &mut |_| {})
}

struct Nats {
    connection: Connection,
    _server: Server,
}

fn nats() -> Nats {
    let server = Server::start(NatsOptions::default());
    Nats { connection: Connection::open(Settings::new(server.url())).unwrap(), _server: server }
}

/// A data folder with a small run of that name.
fn folder(run: &str) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let yard = in_folder(data.path(), run);
    (0..5).for_each(|n| admit(&yard, n, 500));
    train(&yard, 1, Want::Groups(1));
    yard.close();
    data
}

fn source(data: &TempDir, run: &str) -> FolderSource {
    DataFolder::open(data.path()).unwrap().source(&name(run)).unwrap()
}

fn target(data: &TempDir, run: &str) -> FolderTarget {
    DataFolder::open_or_make(data.path()).unwrap().target(&name(run))
}

#[test]
fn a_run_is_the_same_there_and_back() {
    let (nats, data, back) = (nats(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let yard = in_folder(data.path(), "a.b");
    for n in 0..200 {
        // Every tenth is too large for a stream.
        admit(&yard, n, if n % 10 == 3 { 100_000 } else { 500 });
        if n % 10 == 9 {
            train(&yard, u64::from(n), Want::All);
            // Waits for ever, in a segment that is otherwise done with.
            admit(&yard, 10_000 + 2 * n, 600);
        }
    }
    admit(&yard, 50_000, 300_000);
    let released = data.path().join("runs/a.b/00000001.log");
    let deadline = Instant::now() + Duration::from_secs(30);
    while released.exists() || !has_moved_payloads(&bodies(&source(&data, "a.b"))) {
        assert!(Instant::now() < deadline, "nothing was released, or nothing was moved");
        std::thread::sleep(Duration::from_millis(50));
    }
    lease(&yard, Want::Groups(1));
    let expected = state(&yard);
    yard.close();

    let original = bodies(&source(&data, "a.b"));
    assert!(has_moved_payloads(&original));
    let there =
        unwatched("a.b", &source(&data, "a.b"), &mut StreamTarget::new(&nats.connection, &name("a.b")));
    let there = there.unwrap();
    assert_eq!((there.records, &there.books), (original.len() as u64, &expected.0));
    assert_eq!(there.payloads, expected.1.len() as u64);
    assert_eq!(nats.connection.runs().unwrap(), [name("a.b")]);

    let on_nats = StreamSource::open(&nats.connection, &name("a.b")).unwrap();
    assert_eq!(bodies(&on_nats), original);
    let home = unwatched("a.b", &on_nats, &mut target(&back, "a.b")).unwrap();
    assert_eq!((home.payloads, home.payload_bytes), (there.payloads, there.payload_bytes));
    assert_eq!(bodies(&source(&back, "a.b")), original);

    // All three go on from where the first was.
    let yards =
        [in_folder(data.path(), "a.b"), on_stream(&nats.connection, "a.b"), in_folder(back.path(), "a.b")];
    for yard in &yards {
        assert_eq!(state(yard), expected);
        admit(yard, 60_000, 80_000);
        admit(yard, 60_001, 500);
        train(yard, 1_000, Want::All);
    }
    let after = yards.each_ref().map(state);
    assert_eq!(after[0], after[1]);
    assert_eq!(after[0], after[2]);
}

#[test]
fn a_place_that_has_the_run_is_refused_and_stays_as_it_is() {
    let (nats, data, other) = (nats(), folder("x"), folder("x"));
    let before = bodies(&source(&other, "x"));
    let refused = unwatched("x", &source(&data, "x"), &mut target(&other, "x")).unwrap_err();
    let records = before.len() as u64;
    assert!(matches!(refused, CopyError::NotEmpty { records: found, .. } if found == records), "{refused}");
    assert!(refused.to_string().contains("another data folder"), "{refused}");
    assert_eq!(bodies(&source(&other, "x")), before);

    let mut stream = StreamTarget::new(&nats.connection, &name("x"));
    unwatched("x", &source(&data, "x"), &mut stream).unwrap();
    let refused = unwatched("x", &source(&data, "x"), &mut stream).unwrap_err();
    assert!(matches!(refused, CopyError::NotEmpty { records: found, .. } if found == records), "{refused}");
    assert!(refused.to_string().contains("--log-yard"), "{refused}");
    assert!(nats.connection.begin_copy(&name("x")).is_err(), "a run is never removed");
    assert_eq!(bodies(&StreamSource::open(&nats.connection, &name("x")).unwrap()).len(), before.len());
}

#[test]
fn a_run_that_was_only_opened_can_be_copied_to() {
    let (nats, data, other) = (nats(), folder("x"), tempfile::tempdir().unwrap());
    drop(log::open(&other.path().join("runs/x"), Options::default()).unwrap());
    unwatched("x", &source(&data, "x"), &mut target(&other, "x")).unwrap();
    assert!(nats.connection.create(&name("x")).unwrap());
    unwatched("x", &source(&data, "x"), &mut StreamTarget::new(&nats.connection, &name("x"))).unwrap();
}

#[test]
fn a_folder_that_a_server_uses_is_refused() {
    let data = folder("x");
    let _held = DataFolder::open(data.path()).unwrap();
    let refused = DataFolder::open(data.path()).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    let missing = tempfile::tempdir().unwrap();
    assert!(DataFolder::open(missing.path()).is_err());
    assert_eq!(std::fs::read_dir(missing.path()).unwrap().count(), 0, "nothing is put into another's folder");
}

#[test]
fn a_stream_that_moves_while_it_is_copied_is_refused() {
    let (nats, data, back) = (nats(), folder("x"), tempfile::tempdir().unwrap());
    unwatched("x", &source(&data, "x"), &mut StreamTarget::new(&nats.connection, &name("x"))).unwrap();
    let on_nats = StreamSource::open(&nats.connection, &name("x")).unwrap();
    let mut claimed = None;
    let moved = copy(&name("x"), &on_nats, &mut target(&back, "x"), &mut |progress| {
        if progress.doing == Doing::Verifying && claimed.is_none() {
            claimed = Some(nats.connection.opener(&name("x"), "node", "http://127.0.0.1:1").open().unwrap());
        }
    });
    let moved = moved.unwrap_err();
    assert!(matches!(moved, CopyError::Moved { .. }), "{moved}");
    assert!(moved.to_string().contains("stop the servers first"), "{moved}");
    assert_eq!(std::fs::read_dir(back.path().join("runs")).unwrap().count(), 0, "nothing is left");
}

/// Copies, and dies when it has got there.
fn die_at(at: Doing, source: &impl Source, target: &mut impl Target) {
    let watch = &mut |progress: Progress| assert!(progress.doing != at || progress.records < 3, "killed");
    let died = catch_unwind(AssertUnwindSafe(|| copy(&name("x"), source, target, watch)));
    assert!(died.is_err());
}

#[test]
fn a_copy_that_died_leaves_nothing_that_opens_as_a_run() {
    let (nats, data, back) = (nats(), folder("x"), tempfile::tempdir().unwrap());
    for at in [Doing::Copying, Doing::Verifying] {
        die_at(at, &source(&data, "x"), &mut StreamTarget::new(&nats.connection, &name("x")));
        assert_eq!(nats.connection.runs().unwrap(), []);
        let opened = nats.connection.opener(&name("x"), "node", "").open().unwrap_err();
        assert!(matches!(opened, LogError::Unfinished { .. }), "{opened}");
        assert!(opened.to_string().contains("rollyard ledger copy"), "{opened}");
        assert!(nats.connection.create(&name("x")).is_err());
        assert!(StreamSource::open(&nats.connection, &name("x")).is_err());

        die_at(at, &source(&data, "x"), &mut target(&back, "x"));
        assert!(!back.path().join("runs/x").exists());
        assert_eq!(DataFolder::open(back.path()).unwrap().runs().unwrap(), []);
    }
    // The next copies clear it away.
    unwatched("x", &source(&data, "x"), &mut StreamTarget::new(&nats.connection, &name("x"))).unwrap();
    unwatched("x", &source(&data, "x"), &mut target(&back, "x")).unwrap();
    assert_eq!(std::fs::read_dir(back.path().join("runs")).unwrap().count(), 1);
    let yard = in_folder(data.path(), "x");
    assert_eq!(state(&on_stream(&nats.connection, "x")), state(&yard));
    assert_eq!(state(&in_folder(back.path(), "x")), state(&yard));
}

#[test]
fn a_copy_that_another_has_replaced_neither_finishes_nor_removes_it() {
    let (nats, data) = (nats(), folder("x"));
    let mut slow = StreamTarget::new(&nats.connection, &name("x"));
    let mut fast = None;
    let lost = copy(&name("x"), &source(&data, "x"), &mut slow, &mut |progress| {
        if progress.doing == Doing::Verifying && fast.is_none() {
            let begun = nats.connection.begin_copy(&name("x")).unwrap();
            fast = Some((begun.open().unwrap(), begun));
        }
    });
    assert!(lost.is_err());
    assert_eq!(nats.connection.runs().unwrap(), []);
    fast.unwrap().1.finish().unwrap();
    assert_eq!(nats.connection.runs().unwrap(), [name("x")], "the other's is left alone");
}

#[test]
fn a_damaged_rollout_is_not_copied() {
    let (nats, data) = (nats(), folder("x"));
    let mut logs: Vec<_> = std::fs::read_dir(data.path().join("runs/x")).unwrap().flatten().collect();
    logs.retain(|file| file.path().extension().is_some_and(|extension| extension == "log"));
    let log = logs.iter().map(|file| file.path()).max().unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(9).position(|window| window == b"\"uid\":\"4\"").unwrap();
    bytes[at + 7] = b'5';
    std::fs::write(&log, bytes).unwrap();
    let mut stream = StreamTarget::new(&nats.connection, &name("x"));
    let refused = unwatched("x", &source(&data, "x"), &mut stream).unwrap_err();
    assert!(matches!(refused, CopyError::Payload { .. }), "{refused}");
    assert!(nats.connection.create(&name("x")).unwrap(), "nothing of it is left");
}

/// Shows another run than was written.
struct Lying {
    target: FolderTarget,
    shown: DataFolder,
}

impl Target for Lying {
    type Log = <FolderTarget as Target>::Log;
    type View = FolderSource;

    fn check(&self) -> Result<(), CopyError> {
        self.target.check()
    }

    fn begin(&mut self) -> Result<Self::Log, CopyError> {
        self.target.begin()
    }

    fn view(&self) -> Result<FolderSource, CopyError> {
        self.shown.source(&name("x"))
    }

    fn finish(&mut self) -> Result<(), CopyError> {
        self.target.finish()
    }

    fn abandon(&mut self) -> Result<(), LogError> {
        self.target.abandon()
    }
}

#[test]
fn whatever_differs_is_seen_and_nothing_is_kept() {
    let (data, back) = (folder("x"), tempfile::tempdir().unwrap());
    let longer = tempfile::tempdir().unwrap();
    unwatched("x", &source(&data, "x"), &mut target(&longer, "x")).unwrap();
    admit(&in_folder(longer.path(), "x"), 100, 500);
    let other_bytes = tempfile::tempdir().unwrap();
    unwatched("x", &source(&data, "x"), &mut target(&other_bytes, "x")).unwrap();
    let log = other_bytes.path().join("runs/x/00000001.log");
    let damaged: Vec<u8> =
        std::fs::read(&log).unwrap().iter().map(|b| if *b == b'x' { b'y' } else { *b }).collect();
    std::fs::write(&log, damaged).unwrap();
    for (shown, what) in [
        (folder("x"), "record 1 is another"),
        (longer, "it goes on with record 10"),
        (other_bytes, "the rollout of record"),
    ] {
        let shown = DataFolder::open(shown.path()).unwrap();
        let mut lying = Lying { target: target(&back, "x"), shown };
        let differs = unwatched("x", &source(&data, "x"), &mut lying).unwrap_err();
        assert!(differs.to_string().contains(what), "{differs}");
        assert_eq!(std::fs::read_dir(back.path().join("runs")).unwrap().count(), 0);
    }
}

#[test]
fn a_copy_on_a_stream_that_is_cut_off_is_not_a_run() {
    let (nats, data) = (nats(), folder("x"));
    let Nats { connection, _server: mut server } = nats;
    let patient = Settings { patience: Duration::from_millis(500), ..connection.settings().clone() };
    let connection = Connection::open(patient).unwrap();
    let failed = copy(
        &name("x"),
        &source(&data, "x"),
        &mut StreamTarget::new(&connection, &name("x")),
        &mut |progress| {
            if progress.doing == Doing::Copying {
                server.kill();
            }
        },
    );
    assert!(failed.is_err());
    server.restart();
    let connection = Connection::open(Settings::new(server.url())).unwrap();
    assert_eq!(connection.runs().unwrap(), []);
    unwatched("x", &source(&data, "x"), &mut StreamTarget::new(&connection, &name("x"))).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Admit(u32),
    Train,
    Take,
    Return,
    Rewind,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u32..60).prop_map(Step::Admit),
        3 => Just(Step::Train),
        2 => Just(Step::Take),
        1 => Just(Step::Return),
        1 => Just(Step::Rewind),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

fn live(data: &Path, steps: Vec<Step>) -> Result<(), YardError> {
    let mut yard = in_folder(data, "x");
    let (mut step_no, mut out) = (0, Vec::new());
    for step in steps {
        match step {
            // The same each time, or a repeat would be another rollout.
            Step::Admit(n) => admit(&yard, n, if n % 9 == 4 { 65_000 + n as usize } else { 40 * n as usize }),
            Step::Train => {
                step_no += 1;
                train(&yard, step_no, Want::Groups(1));
            }
            Step::Take => out.extend(lease(&yard, Want::Groups(1))),
            Step::Return => {
                if let Some(lease) = out.pop() {
                    // A rewind may have taken it back already.
                    let _gone = wait(yard.run(Command::Return { lease }));
                }
            }
            Step::Rewind => drop(wait(yard.run(Command::Rewind { step: step_no.saturating_sub(1) }))),
            Step::Restart => {
                yard.close();
                yard = in_folder(data, "x");
            }
        }
    }
    yard.close();
    Ok(())
}

#[test]
fn any_run_is_the_same_there_and_back() {
    let nats = nats();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    let case = std::cell::Cell::new(0);
    let outcome = runner.run(&steps(), |steps| {
        case.set(case.get() + 1);
        let settings =
            Settings { yard: format!("case-{}", case.get()), ..nats.connection.settings().clone() };
        let connection = Connection::open(settings).unwrap();
        let (data, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        live(data.path(), steps).unwrap();
        unwatched("x", &source(&data, "x"), &mut StreamTarget::new(&connection, &name("x"))).unwrap();
        let on_nats = StreamSource::open(&connection, &name("x")).unwrap();
        unwatched("x", &on_nats, &mut target(&back, "x")).unwrap();
        prop_assert_eq!(bodies(&source(&data, "x")), bodies(&source(&back, "x")));
        let expected = state(&in_folder(data.path(), "x"));
        prop_assert_eq!(&state(&in_folder(back.path(), "x")), &expected);
        prop_assert_eq!(&state(&on_stream(&connection, "x")), &expected);
        Ok(())
    });
    outcome.unwrap();
}
