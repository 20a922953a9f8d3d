//! Writers and readers that go on whatever breaks, and note all they were told.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::api::{Answer, Api, item, rows};
use crate::check::{Clocks, Ending, Violation, check};
use crate::dice::Dice;
use crate::ending;
use crate::history::{History, Moment, Outcome, What};
use crate::node::{Address, Node};

/// Rollouts of one instance, and so in one group.
pub const GROUP_SIZE: u64 = 4;
const WRITERS: u64 = 4;
const READERS: u64 = 2;
/// Between two calls of one client: the test wants many moments, not many calls.
const PACE: Duration = Duration::from_millis(15);
/// Leases that a reader keeps before it settles the oldest.
const KEPT: usize = 3;
/// Longer than any fault, so that nothing runs out while it is being acked.
const TERM: Duration = Duration::from_secs(120);
/// For those that are left to run out.
const TERM_SHORT: Duration = Duration::from_secs(2);

/// Runs from its start until [`finish`](Self::finish).
#[derive(Debug)]
pub struct Workload {
    history: Arc<History>,
    stopping: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
    nodes: Vec<Address>,
    run: String,
}

impl Workload {
    /// Begins, on any of the nodes.
    pub fn start(nodes: &[Node], run: &str, seed: u64) -> Self {
        let addresses: Vec<Address> = nodes.iter().map(Node::address).collect();
        let (history, stopping) = (Arc::new(History::default()), Arc::new(AtomicBool::new(false)));
        let client = |no: u64| Client {
            // Some give up before a node does, and some wait for what it says.
            api: Api::new(run, Duration::from_secs(if no.is_multiple_of(2) { 2 } else { 7 })),
            nodes: addresses.clone(),
            history: history.clone(),
            stopping: stopping.clone(),
            dice: Dice(seed ^ (no << 32)),
            no,
        };
        let mut clients = Vec::new();
        for no in 0..WRITERS {
            let client = client(no);
            clients.push(std::thread::spawn(move || Writer { client, next: 0 }.work()));
        }
        for no in WRITERS..WRITERS + READERS {
            let client = client(no);
            clients.push(std::thread::spawn(move || Leaser { client, kept: VecDeque::new() }.work()));
        }
        let no = WRITERS + READERS;
        let (reader, asker, watcher) = (client(no), client(no + 1), client(no + 2));
        clients.push(std::thread::spawn(move || read(reader)));
        clients.push(std::thread::spawn(move || ask(asker)));
        clients.push(std::thread::spawn(move || watch(&watcher)));
        Self { history, stopping, clients, nodes: addresses, run: run.to_owned() }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Waits until so many writes that begin now are answered well, and says how long the first took.
    ///
    /// # Panics
    /// If they are not in time.
    pub fn await_writes(&self, count: usize, within: Duration) -> Duration {
        let (begun, deadline) = (self.history.now(), Instant::now() + within);
        let mut first = None;
        loop {
            let done = self.history.writes_since(begun);
            if done > 0 && first.is_none() {
                first = Some(self.history.now().saturating_sub(begun));
            }
            if let (Some(first), true) = (first, done >= count) {
                return first;
            }
            assert!(Instant::now() < deadline, "{done} of {count} writes were answered within {within:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number of the node that owns the run, as most of those see it that answer.
    ///
    /// # Panics
    /// If nobody has owned it for a while.
    pub fn await_owner(&self, nodes: &[Node]) -> usize {
        let api = Api::new(&self.run, Duration::from_secs(1));
        ending::await_owner(&api, &self.nodes, &self.run, |name| nodes.iter().position(|n| n.name() == name))
    }

    /// Stops all clients, waits until every node serves, and says what was wrong.
    ///
    /// # Panics
    /// If the nodes do not come to rest.
    pub fn finish(mut self, clocks: Clocks) -> Report {
        self.stopping.store(true, Relaxed);
        for client in self.clients.drain(..) {
            client.join().expect("a client does not panic");
        }
        let api = Api::new(&self.run, Duration::from_secs(10));
        let ending = ending::gather(&api, &self.nodes, &self.history);
        let violations = check(&self.history.records(), &ending, clocks);
        Report { violations, ending, history: self.history.clone() }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.stopping.store(true, Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

/// What a test looks at in the end.
#[derive(Debug)]
pub struct Report {
    pub violations: Vec<Violation>,
    pub ending: Ending,
    pub history: Arc<History>,
}

impl Report {
    /// How often each kind of thing was answered, refused, or not known.
    pub fn summary(&self) -> String {
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        for record in self.history.records() {
            let name = match &record.what {
                What::Write { outcome, .. } => format!("write {outcome:?}"),
                What::Ack { outcome, .. } => format!("ack {outcome:?}"),
                What::Return { outcome, .. } => format!("return {outcome:?}"),
                What::Grant { .. } => "grant".to_owned(),
                What::Read { .. } => "read".to_owned(),
                What::Ask { .. } => "ask".to_owned(),
                What::Claim { node, run, epoch } => format!("claim of {run} {epoch} by {node}"),
                What::Fault { name } => {
                    let secs = record.to.saturating_sub(record.from).as_secs_f64();
                    format!("fault {name} at {:.1} for {secs:.1} s", record.from.as_secs_f64())
                }
            };
            *counts.entry(name).or_default() += 1;
        }
        let troubles = self.history.troubles();
        let lines: Vec<String> =
            counts.iter().chain(&troubles).map(|(name, count)| format!("{count:6} {name}")).collect();
        format!("{}\n{:?}", lines.join("\n"), self.ending.books)
    }
}

/// What all clients have.
struct Client {
    api: Api,
    nodes: Vec<Address>,
    history: Arc<History>,
    stopping: Arc<AtomicBool>,
    dice: Dice,
    no: u64,
}

impl Client {
    fn goes_on(&self) -> bool {
        std::thread::sleep(PACE);
        !self.stopping.load(Relaxed)
    }

    fn outcome(&self, call: &str, answer: &Answer) -> Outcome {
        match answer {
            Answer::Ok(_) => {}
            Answer::Refused(status, said) => self.history.note_trouble(&format!("{call}: {status} {said}")),
            Answer::Unknown(said) => self.history.note_trouble(&format!("{call}: {said}")),
        }
        answer.outcome()
    }

    /// Any of them: that of the last call may be dead.
    fn node(&mut self) -> Address {
        self.dice.pick(&self.nodes).clone()
    }
}

struct Writer {
    client: Client,
    next: u64,
}

impl Writer {
    fn work(&mut self) {
        while self.client.goes_on() {
            let is_bulk = self.client.dice.roll(4) == 0;
            let sent: Vec<(String, String)> = (0..if is_bulk { 6 } else { 1 }).map(|_| self.make()).collect();
            let (uids, lines): (Vec<String>, Vec<String>) = sent.into_iter().unzip();
            // What was not answered is sent again, as a client does; now and then it is given up.
            while self.send(is_bulk, &uids, &lines) == Outcome::Unknown
                && self.client.dice.roll(8) > 0
                && self.client.goes_on()
            {}
        }
    }

    fn make(&mut self) -> (String, String) {
        let (no, n) = (self.client.no, self.next);
        self.next += 1;
        let uid = format!("w{no}-{n}");
        let line = item(&uid, &format!("w{no}-{}", n / GROUP_SIZE), n % 2);
        (uid, line)
    }

    fn send(&mut self, is_bulk: bool, uids: &[String], lines: &[String]) -> Outcome {
        let node = self.client.node();
        let from = self.client.history.now();
        let answer = match lines {
            [line] if !is_bulk => self.client.api.write_one(&node, line),
            lines => self.client.api.write_many(&node, lines),
        };
        let outcome = self.client.outcome("write", &answer);
        self.client.history.note(from, What::Write { uids: uids.to_vec(), outcome });
        outcome
    }
}

/// Leases, and then acks, returns, keeps for a while, or forgets.
struct Leaser {
    client: Client,
    kept: VecDeque<u64>,
}

impl Leaser {
    fn work(&mut self) {
        while self.client.goes_on() {
            let will_forget = self.client.dice.roll(20) == 0;
            let term = if will_forget { TERM_SHORT } else { TERM };
            let groups = 1 + self.client.dice.roll(3);
            let node = self.client.node();
            let from = self.client.history.now();
            let answer = self.client.api.lease(&node, Some(groups), term);
            self.client.outcome("lease", &answer);
            let Some(lease) = note_grant(&self.client.history, from, term, &answer) else { continue };
            match self.client.dice.roll(10) {
                _ if will_forget => {}
                0..5 => self.settle(lease, Wish::Ack),
                5..7 => self.settle(lease, Wish::Return),
                _ => self.kept.push_back(lease),
            }
            if self.kept.len() > KEPT
                && let Some(oldest) = self.kept.pop_front()
            {
                self.settle(oldest, Wish::Ack);
            }
        }
    }

    /// Until it is known what became of it.
    fn settle(&mut self, lease: u64, wish: Wish) {
        loop {
            let node = self.client.node();
            let from = self.client.history.now();
            let answer = match wish {
                Wish::Ack => self.client.api.ack(&node, lease),
                Wish::Return => self.client.api.give_back(&node, lease),
            };
            let outcome = self.client.outcome("settle", &answer);
            self.client.history.note(
                from,
                match wish {
                    Wish::Ack => What::Ack { lease, outcome },
                    Wish::Return => What::Return { lease, outcome },
                },
            );
            if outcome != Outcome::Unknown || !self.client.goes_on() {
                return;
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Wish {
    Ack,
    Return,
}

/// Notes what was granted, if anything was, and gives its number.
pub(crate) fn note_grant(history: &History, from: Moment, term: Duration, answer: &Answer) -> Option<u64> {
    let Answer::Ok(answer) = answer else { return None };
    let lease = answer.get("lease").and_then(Value::as_u64)?;
    history.note(from, What::Grant { lease, term, rows: rows(answer) });
    Some(lease)
}

/// Reads as slime does.
fn read(mut client: Client) {
    while client.goes_on() {
        let node = client.node();
        let count = 1 + client.dice.roll(8);
        let from = client.history.now();
        let answer = client.api.read(&node, count);
        client.outcome("read", &answer);
        if let Answer::Ok(answer) = answer {
            let rows = rows(&answer);
            if !rows.is_empty() {
                client.history.note(from, What::Read { rows });
            }
        }
    }
}

/// Asks after what was answered a moment ago.
fn ask(mut client: Client) {
    while client.goes_on() {
        let records = client.history.records();
        let written = records.iter().rev().filter_map(|record| match &record.what {
            What::Write { uids, outcome: Outcome::Ok } => Some(uids),
            _ => None,
        });
        let uids: Vec<String> = written.take(20).flatten().cloned().collect();
        let node = client.node();
        let from = client.history.now();
        if let Some(known) = client.api.known(&node, &uids) {
            client.history.note(from, What::Ask { uids, known });
        }
    }
}

/// Looks at who claims to own what, each once.
fn watch(client: &Client) {
    let api = Api::new("", Duration::from_millis(500));
    let mut seen = Vec::new();
    while client.goes_on() {
        for node in &client.nodes {
            let from = client.history.now();
            for claim in api.claims(node) {
                if !seen.contains(&claim) {
                    seen.push(claim.clone());
                    let (node, run, epoch) = (claim.node, claim.run, claim.epoch);
                    client.history.note(from, What::Claim { node, run, epoch });
                }
            }
        }
    }
}
