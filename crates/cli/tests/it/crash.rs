//! A server that is killed at random moments under load loses nothing and does nothing twice.
//!
//! Writers and a reader work on a real server process until it is killed with SIGKILL, in the middle of whatever
//! it is doing. After every restart all they know is compared with what the server says: every answered write is
//! there, none is there twice, and every lease is acked, returned or outstanding, as it was answered. What was
//! not answered may have happened or not; the clients find out by asking again.
//!
//! `ROLLYARD_CRASH_ROUNDS=500 ROLLYARD_CRASH_SEED=7 cargo test -p rollyard --test it crash` runs more of it.

use crate::program::{Client, Server, item, rollyard, run};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WRITERS: u64 = 6;
const GROUP_SIZE: u64 = 4;
const RUN: &str = "/api/runs/default";

#[test]
fn nothing_is_lost_or_doubled_when_the_server_is_killed_under_load() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("ROLLYARD_CRASH_ROUNDS").unwrap_or(20);
    let seed = number("ROLLYARD_CRASH_SEED").unwrap_or(20_240_711);
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|no| Writer { no, ..Writer::default() }).collect();
    let mut reader = Reader { dice: Dice(seed ^ 1), ..Reader::default() };
    for round in 1..=rounds {
        // Whoever reads a failure wants to see it again.
        let told = Told(format!("seed {seed}, round {round}"));
        let mut server = start(&dir);
        let client = server.client();
        check(&client, &mut writers, &mut reader, round);
        let answered = AtomicU64::new(0);
        let enough = 5 + dice.roll(300);
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let (client, answered) = (server.client(), &answered);
                scope.spawn(move || writer.write_until_dead(&client, answered));
            }
            let (client, reader) = (server.client(), &mut reader);
            scope.spawn(move || reader.read_until_dead(&client));
            let deadline = Instant::now() + Duration::from_secs(20);
            while answered.load(Relaxed) < enough && Instant::now() < deadline {
                std::thread::yield_now();
            }
            // Somewhere in the next few milliseconds: in a write, a sync, an answer, or between two.
            std::thread::sleep(Duration::from_micros(dice.roll(4000)));
            server.kill();
        });
        assert!(answered.load(Relaxed) >= enough, "the server answered only {answered:?} of {enough} writes");
        drop(told);
    }
    let told = Told(format!("seed {seed}, after the last round"));
    let server = start(&dir);
    check(&server.client(), &mut writers, &mut reader, rounds + 1);
    for writer in &writers {
        for uid in writer.answered.iter().flat_map(|rollout| &rollout.uids) {
            assert!(state_of(&server.client(), uid).is_some(), "{uid} is lost");
        }
    }
    assert_eq!(server.stop(), Some(0));
    let mut program = rollyard(dir.path());
    program.args(["ledger", "check", "--payloads", "--data", "data"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    drop(told);
}

fn start(dir: &tempfile::TempDir) -> Server {
    let size = GROUP_SIZE.to_string();
    Server::start(dir.path(), &["--group-size", &size, "--lease-seconds", "86400", "--log-level", "warn"])
}

/// Says where it happened when a test fails.
pub(crate) struct Told(pub(crate) String);

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "the only thing a failing test can do")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with {}", self.0);
        }
    }
}

/// After a restart: does the server remember what it said?
fn check(client: &Client, writers: &mut [Writer], reader: &mut Reader, round: u64) {
    for writer in &mut *writers {
        writer.check(client);
    }
    reader.check(client);
    let (status, books) = client.get(&format!("{RUN}/books"));
    assert_eq!(status, 200);
    let column = |name: &str| books[name].as_u64().unwrap();
    let known: u64 = writers.iter().map(|writer| writer.admitted).sum();
    assert_eq!(column("admitted"), known, "round {round}: written twice, or never: {books}");
    assert_eq!(books["balanced"], true, "{books}");
    let sum = column("held") + column("leased") + column("trained") + column("dropped");
    assert_eq!(column("admitted"), sum, "{books}");
    let count = |is: fn(&State) -> bool| -> u64 {
        reader.leases.values().filter(|lease| is(&lease.state)).map(|lease| lease.uids.len() as u64).sum()
    };
    assert_eq!(column("leased"), count(|state| *state == State::Out), "{books}");
    assert_eq!(column("trained"), count(|state| *state == State::Acked), "{books}");
}

fn state_of(client: &Client, uid: &str) -> Option<Value> {
    match client.get(&format!("{RUN}/rollouts/{uid}")) {
        (200, fate) => Some(fate),
        (404, _) => None,
        other => panic!("{uid}: {other:?}"),
    }
}

/// Sends rollouts one at a time, or a few in bulk.
#[derive(Default)]
struct Writer {
    no: u64,
    next: u64,
    answered: Vec<Sent>,
    /// Those of `answered` that were checked after a restart.
    checked: usize,
    /// Sent, and not answered before the server died.
    pending: Option<Sent>,
    /// Rollouts that must be on the books.
    admitted: u64,
}

#[derive(Clone)]
struct Sent {
    uids: Vec<String>,
    path: String,
    body: String,
}

impl Writer {
    fn make(&mut self) -> Sent {
        let (is_bulk, count) = if self.no == 0 { (true, 10) } else { (false, 1) };
        let items: Vec<(String, String)> = (0..count)
            .map(|_| {
                let (no, n) = (self.no, self.next);
                self.next += 1;
                let uid = format!("w{no}-{n}");
                let body = item(&uid, &format!("w{no}-{}", n / GROUP_SIZE), (n % 2) as f64).to_string();
                (uid, body)
            })
            .collect();
        let path = if is_bulk { format!("{RUN}/rollouts") } else { "/buffer/write".to_owned() };
        let (uids, lines): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        Sent { uids, path, body: lines.join("\n") }
    }

    fn write_until_dead(&mut self, client: &Client, answered: &AtomicU64) {
        loop {
            let sent = self.pending.take().unwrap_or_else(|| self.make());
            match client.try_post(&sent.path, &sent.body) {
                Some((200, body)) => {
                    assert!(body["rejected_total"].as_u64().unwrap_or(0) == 0, "{body}");
                    self.admitted += sent.uids.len() as u64;
                    self.answered.push(sent);
                    answered.fetch_add(1, Relaxed);
                }
                Some(other) => panic!("{other:?}"),
                None => return self.pending = Some(sent),
            }
        }
    }

    fn check(&mut self, client: &Client) {
        for uid in self.answered[self.checked..].iter().flat_map(|sent| &sent.uids) {
            assert!(state_of(client, uid).is_some(), "{uid} was answered and is lost");
        }
        self.checked = self.answered.len();
        // Send again what was not answered: what had been kept is recognised, so it counts once either way.
        if let Some(sent) = self.pending.take() {
            let kept_before = sent.uids.iter().filter(|uid| state_of(client, uid).is_some()).count() as u64;
            let (status, body) = client.try_post(&sent.path, &sent.body).unwrap();
            assert_eq!(status, 200, "{body}");
            let recognised = match body.get("duplicates") {
                Some(duplicates) => duplicates.as_u64().unwrap(),
                None => u64::from(body["data"]["meta_info"]["duplicate"] == true),
            };
            assert_eq!(recognised, kept_before, "{:?}: {body}", sent.uids);
            self.admitted += sent.uids.len() as u64;
            self.answered.push(sent);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Out,
    Acked,
    Returned,
    /// Asked to ack or return, and not answered before the server died.
    MaybeAcked,
    MaybeReturned,
}

#[derive(Debug)]
struct Lease {
    uids: Vec<String>,
    state: State,
}

/// Leases, and then acks, returns, or keeps for a while.
#[derive(Default)]
struct Reader {
    leases: BTreeMap<u64, Lease>,
    /// By uid: the lease it came with last.
    with: BTreeMap<String, u64>,
    step: u64,
    /// The last call was a lease that was not answered.
    maybe_granted: bool,
    dice: Dice,
}

impl Reader {
    fn read_until_dead(&mut self, client: &Client) {
        loop {
            let groups = 1 + self.dice.roll(4);
            let ask = json!({"groups": groups, "wait_seconds": 0.5, "reader": "crash"}).to_string();
            let Some((status, answer)) = client.try_post(&format!("{RUN}/lease"), &ask) else {
                return self.maybe_granted = true;
            };
            assert_eq!(status, 200, "{answer}");
            if answer["lease"].is_null() {
                continue;
            }
            let lease = self.receive(&answer);
            let done = match self.dice.roll(10) {
                0..6 => self.settle(client, lease, State::Acked),
                6..8 => self.settle(client, lease, State::Returned),
                // Kept for later: a lease from before the crash is acked after it.
                _ => true,
            };
            let out: Vec<u64> =
                self.leases.iter().filter(|(_, l)| l.state == State::Out).map(|(no, _)| *no).collect();
            if !done || (out.len() > 4 && !self.settle(client, out[0], State::Acked)) {
                return;
            }
        }
    }

    fn receive(&mut self, answer: &Value) -> u64 {
        let lease = answer["lease"].as_u64().unwrap();
        let rows = answer["groups"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|group| group["rollouts"].as_array().unwrap());
        let uids: Vec<String> = rows.map(|row| row["uid"].as_str().unwrap().to_owned()).collect();
        assert_eq!(uids.iter().collect::<BTreeSet<_>>().len(), uids.len(), "a rollout twice in one lease");
        for uid in &uids {
            if let Some(before) = self.with.insert(uid.clone(), lease) {
                let state = &self.leases[&before].state;
                assert!(
                    matches!(state, State::Returned),
                    "{uid} came with lease {before}, which is {state:?}, and {lease}"
                );
            }
        }
        let before = self.leases.insert(lease, Lease { uids, state: State::Out });
        assert!(before.is_none(), "lease {lease} was granted twice");
        lease
    }

    /// False if the server died over it.
    fn settle(&mut self, client: &Client, lease: u64, wish: State) -> bool {
        let (verb, doubt) = match wish {
            State::Acked => ("ack", State::MaybeAcked),
            _ => ("return", State::MaybeReturned),
        };
        let answer = client.try_post(&format!("{RUN}/leases/{lease}/{verb}"), "");
        self.leases.get_mut(&lease).unwrap().state = match &answer {
            Some((200, _)) => wish,
            Some(other) => panic!("{verb} of lease {lease}: {other:?}"),
            None => doubt,
        };
        answer.is_some()
    }

    fn check(&mut self, client: &Client) {
        let (status, listed) = client.get(&format!("{RUN}/leases"));
        assert_eq!(status, 200);
        let listed: BTreeMap<u64, String> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|lease| (lease["lease"].as_u64().unwrap(), lease["status"].as_str().unwrap().to_owned()))
            .collect();
        let strangers: Vec<u64> = listed.keys().filter(|no| !self.leases.contains_key(no)).copied().collect();
        for lease in strangers {
            // Granted and never heard of: the groups can still be had, and belong to nobody else.
            assert!(self.maybe_granted, "lease {lease} was granted to nobody");
            assert_eq!(listed[&lease], "out");
            let (status, answer) = client.get(&format!("{RUN}/leases/{lease}"));
            assert_eq!(status, 200, "{answer}");
            self.receive(&answer);
        }
        self.maybe_granted = false;
        for (no, lease) in &mut self.leases {
            let now = listed.get(no).map(String::as_str);
            lease.state = match (&lease.state, now) {
                (State::Out, Some("out")) => State::Out,
                // Acked and committed long ago: no longer listed, but the rollouts tell.
                (State::Acked, Some("acked") | None) => State::Acked,
                (State::Returned, None) => State::Returned,
                (State::MaybeAcked | State::MaybeReturned, Some("out")) => State::Out,
                (State::MaybeAcked, Some("acked")) => State::Acked,
                (State::MaybeReturned, None) => State::Returned,
                (known, now) => panic!("lease {no} is {known:?}, but the server says {now:?}"),
            };
        }
        for (no, lease) in self.leases.iter().rev().take(20) {
            let expected = match lease.state {
                State::Out => "leased",
                State::Acked => "trained",
                _ => continue,
            };
            for uid in &lease.uids {
                let fate = state_of(client, uid).unwrap();
                assert_eq!(
                    (fate["state"].as_str(), fate["lease"].as_u64()),
                    (Some(expected), Some(*no)),
                    "{uid}: {fate}"
                );
            }
        }
        self.step += 1;
        let (status, answer) = client.post(&format!("{RUN}/commit"), &json!({"step": self.step}));
        assert_eq!(status, 200, "{answer}");
    }
}

/// Splitmix.
#[derive(Default)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
