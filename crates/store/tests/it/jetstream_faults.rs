//! Several owners fight for one log on JetStream while links are cut and servers die: what was committed is there
//! once, and an epoch is nobody else's.
//!
//! The yard above is left out, so that a thousand claims take seconds. `crates/cli/tests/it/cluster_faults.rs` does
//! the same with everything.
//!
//! `ROLLYARD_FAULT_SEED=7 cargo test -p rollyard-store --test it jetstream_faults` rolls other dice.

use bytes::Bytes;
use rollyard_core::ids::RunName;
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::log::{Commit, Log, LogError, Parts, Payloads, Stage};
use rollyard_test_nats::{Cluster, Dice, Links, Options, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CONTENDERS: u64 = 3;
/// Two servers of three may take half a minute to agree on a leader when the machine is busy.
const SOON: Duration = Duration::from_secs(150);

/// What all contenders were told.
#[derive(Default)]
struct Notes {
    /// By epoch: who was told that it is theirs.
    claims: Mutex<Vec<(u64, String)>>,
    committed: Mutex<BTreeSet<String>>,
    /// Sent, and not known whether it is there.
    doubtful: Mutex<BTreeSet<String>>,
    /// Why commits failed, and how often.
    failures: Mutex<BTreeMap<&'static str, u64>>,
    /// Why logs could not be opened.
    refusals: Mutex<BTreeSet<String>>,
}

impl Notes {
    fn committed(&self) -> usize {
        self.committed.lock().unwrap().len()
    }

    /// Waits until more is committed.
    fn await_more(&self, count: usize) {
        let (goal, deadline) = (self.committed() + count, Instant::now() + SOON);
        while self.committed() < goal {
            assert!(
                Instant::now() < deadline,
                "{} of {goal}: {:?} {:#?}",
                self.committed(),
                self.failures,
                self.refusals
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn run() -> RunName {
    RunName::try_from("fought-over").unwrap()
}

fn connect(servers: String, replicas: usize) -> Connection {
    // Small segments and little room inline, so that all kinds of messages and blobs come up.
    let settings = Settings {
        servers,
        replicas,
        inline_max: 2000,
        segment_bytes: 20_000,
        patience: Duration::from_secs(4),
        ..Settings::default()
    };
    Connection::open(settings).unwrap()
}

/// Claims, appends until it is fenced or fails, and claims again.
fn contend(no: u64, connection: &Connection, notes: &Notes, is_over: &AtomicBool, seed: u64) {
    let (mut dice, node, mut made) = (Dice(seed ^ (no << 40)), format!("n{no}"), 0_u64);
    while !is_over.load(Relaxed) {
        let opener = connection.opener(&run(), &node, "http://127.0.0.1:1");
        let log = match opener.open() {
            Ok(log) => log,
            Err(error) => {
                notes.refusals.lock().unwrap().insert(error.to_string());
                // Servers that elect a leader are not helped by being asked without end.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        notes.claims.lock().unwrap().push((log.claim().epoch, node.clone()));
        let Parts { mut stager, mut writer, .. } = log.into_parts();
        for _ in 0..dice.roll(12) {
            let batch: Vec<String> = (0..1 + dice.roll(5)).map(|n| format!("{node}-{}", made + n)).collect();
            made += batch.len() as u64;
            for body in &batch {
                stager.stage(body.as_bytes(), payload_of(body)).unwrap();
            }
            let kept = writer.commit(stager.take_batch().unwrap());
            let list = if kept.is_ok() { &notes.committed } else { &notes.doubtful };
            list.lock().unwrap().extend(batch);
            if let Err(error) = kept {
                let name = if error.is_fenced() { "fenced" } else { "failed" };
                *notes.failures.lock().unwrap().entry(name).or_default() += 1;
                break;
            }
        }
    }
}

/// Of any size: none, small, in a bundle of its own, in the object store.
fn payload_of(body: &str) -> Bytes {
    let number: usize = body.rsplit('-').next().unwrap().parse().unwrap();
    let len = [0, 10, 300, 1900, 5000][number % 5];
    body.bytes().cycle().take(len).collect()
}

fn fight(urls: &[String], replicas: usize, servers: String, nemesis: impl FnOnce(&Notes)) {
    let seed = std::env::var("ROLLYARD_FAULT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(5);
    let (notes, is_over) = (Notes::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // Also when the nemesis gives up: nobody may wait for contenders for ever.
        let _over = OnDrop(|| is_over.store(true, Relaxed));
        for (no, url) in (0..).zip(urls) {
            let (connection, notes, is_over) = (connect(url.clone(), replicas), &notes, &is_over);
            scope.spawn(move || contend(no, &connection, notes, is_over, seed));
        }
        notes.await_more(50);
        nemesis(&notes);
        notes.await_more(50);
    });
    check(notes, &connect(servers, replicas));
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn check(notes: Notes, connection: &Connection) {
    let Notes { claims, committed, doubtful, .. } = notes;
    let (claims, mut committed) = (claims.into_inner().unwrap(), committed.into_inner().unwrap());
    let doubtful = doubtful.into_inner().unwrap();
    let mut found = Vec::new();
    let followed = connection.visit(&run(), |entry| {
        found.push((String::from_utf8(entry.body.to_vec()).unwrap(), entry.place, entry.payload_len));
        Ok::<_, LogError>(())
    });
    let reader = followed.unwrap().unwrap().reader;
    let mut seen = BTreeSet::new();
    for (body, place, payload_len) in found {
        assert!(seen.insert(body.clone()), "{body} is there twice");
        assert!(committed.remove(&body) || doubtful.contains(&body), "{body} was never sent");
        if payload_len > 0 {
            assert_eq!(reader.payload(place).unwrap(), payload_of(&body), "{body}");
        }
    }
    assert!(committed.is_empty(), "these were committed and are lost: {committed:?}");
    let mut owners = BTreeMap::new();
    for (epoch, node) in claims {
        let other = owners.insert(epoch, node.clone());
        assert!(other.is_none(), "epoch {epoch} is of {node} and of {other:?}");
    }
}

#[test]
fn owners_of_one_run_take_turns_and_lose_nothing() {
    let server = Server::start(Options::default());
    let urls = vec![server.url(); CONTENDERS as usize];
    fight(&urls, 1, server.url(), |notes| notes.await_more(400));
}

#[test]
fn owners_whose_links_break_lose_nothing() {
    let server = Server::start(Options::default());
    let servers = std::slice::from_ref(&server);
    let links: Vec<Links> = (0..CONTENDERS).map(|_| Links::to(servers)).collect();
    let urls: Vec<String> = links.iter().map(Links::urls).collect();
    let mut dice = Dice(11);
    fight(&urls, 1, server.url(), |notes| {
        for _ in 0..12 {
            let link = dice.pick(&links);
            match dice.roll(3) {
                0 => link.cut(),
                1 => link.freeze(),
                _ => link.slow(Duration::from_millis(20), 1 << 20),
            }
            notes.await_more(10);
            link.heal();
        }
    });
}

#[test]
fn log_outlives_the_server_that_is_killed_and_started_again() {
    let mut server = Server::start(Options::default());
    let url = server.url();
    let urls = vec![url.clone(); CONTENDERS as usize];
    fight(&urls, 1, url, |notes| {
        for _ in 0..3 {
            notes.await_more(30);
            server.kill();
            server.restart();
        }
    });
}

#[test]
fn log_on_three_servers_outlives_one_of_them() {
    let mut cluster = Cluster::start(3);
    let urls = vec![cluster.urls(); CONTENDERS as usize];
    let servers = cluster.urls();
    fight(&urls, 3, servers, |notes| {
        let stream = cluster.streams().into_iter().find(|name| name.starts_with("ry_")).unwrap();
        let leader = cluster.stream_leader(&stream).unwrap_or(0);
        cluster.servers_mut()[leader].kill();
        notes.await_more(30);
        cluster.servers_mut()[leader].restart();
        cluster.await_healthy().unwrap();
        cluster.freeze_out((leader + 1) % 3);
        notes.await_more(30);
        cluster.heal();
        cluster.await_healthy().unwrap();
    });
}

/// With replicas, bundles of an old owner do get in behind the claim of another. Nobody may take them for its own.
#[test]
fn bundles_that_come_late_take_the_place_of_none() {
    let cluster = Cluster::start(3);
    let mut kept = Vec::new();
    for round in 1..=4_usize {
        let settings =
            Settings { replicas: 3, patience: Duration::from_secs(5), ..Settings::new(cluster.urls()) };
        let connection = Connection::open(settings).unwrap();
        let open = |node: &str| connection.opener(&run(), node, "http://127.0.0.1:1");
        let Parts { mut stager, mut writer, .. } = open("before").open().unwrap().into_parts();
        let after = open("after");
        let Parts { stager: mut next_stager, writer: mut next_writer, reader, .. } =
            after.open().unwrap().into_parts();
        for n in 0..3 * round {
            stager.stage(format!("late-{n}").as_bytes(), Bytes::from(vec![b'x'; 60_000])).unwrap();
        }
        let late = writer.commit(stager.take_batch().unwrap());
        assert!(late.as_ref().is_err_and(LogError::is_fenced), "round {round}: {late:?}");
        let own = payload_of(&format!("own-{round}"));
        let stamp = next_stager.stage(format!("own-{round}").as_bytes(), own.clone()).unwrap();
        match next_writer.commit(next_stager.take_batch().unwrap()) {
            Ok(()) => {
                assert_eq!(reader.payload(stamp.place).unwrap(), own);
                kept.push(format!("own-{round}"));
            }
            // Its place was taken. It is still the owner, and opens the log anew.
            Err(error) => {
                assert!(matches!(error, LogError::Stream { .. }), "round {round}: {error}");
                let Parts { mut stager, mut writer, .. } = after.open().unwrap().into_parts();
                stager
                    .stage(format!("again-{round}").as_bytes(), payload_of(&format!("again-{round}")))
                    .unwrap();
                writer.commit(stager.take_batch().unwrap()).unwrap();
                kept.push(format!("again-{round}"));
            }
        }
    }
    // As somebody sees it who has nothing in memory.
    let connection = connect(cluster.urls(), 3);
    let log = connection.opener(&run(), "last", "http://127.0.0.1:1").open().unwrap();
    let found = crate::support::replay(&log, 1);
    let reader = log.into_parts().reader;
    let bodies: Vec<String> =
        found.iter().map(|found| String::from_utf8(found.body.clone()).unwrap()).collect();
    assert_eq!(bodies, kept);
    for (found, body) in found.iter().zip(&kept) {
        assert_eq!(reader.payload(found.place).unwrap(), payload_of(body), "{body}");
    }
}

/// A batch of several messages must not get in behind the claim of another, short of its first.
#[test]
fn owner_whose_run_was_claimed_appends_no_part_of_a_batch() {
    let server = Server::start(Options::default());
    for records in 1..=6 {
        let connection = connect(server.url(), 1);
        let open = |node: &str| connection.opener(&run(), node, "http://127.0.0.1:1").open().unwrap();
        let Parts { mut stager, mut writer, .. } = open("before").into_parts();
        let Parts { stager: mut next_stager, writer: mut next_writer, .. } = open("after").into_parts();
        for n in 0..records {
            stager.stage(format!("late-{n}").as_bytes(), Bytes::from(vec![b'x'; 60_000])).unwrap();
        }
        let late = writer.commit(stager.take_batch().unwrap());
        assert!(
            late.as_ref().is_err_and(LogError::is_fenced),
            "{records} records of the owner before: {late:?}"
        );
        next_stager.stage(format!("own-{records}").as_bytes(), Bytes::new()).unwrap();
        next_writer.commit(next_stager.take_batch().unwrap()).unwrap();
    }
    let mut found = Vec::new();
    let connection = connect(server.url(), 1);
    let visited = connection.visit(&run(), |entry| {
        found.push(String::from_utf8(entry.body.to_vec()).unwrap());
        Ok::<_, LogError>(())
    });
    visited.unwrap().unwrap();
    assert_eq!(found, (1..=6).map(|records| format!("own-{records}")).collect::<Vec<_>>());
}
