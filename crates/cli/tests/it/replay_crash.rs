//! A trainer that samples from a server that is killed at random moments finds every use counted right.
//!
//! The trainer draws, acks and commits step by step, and sometimes rewinds, while a writer adds rollouts. The
//! server is killed with SIGKILL anywhere in between. After every restart the trainer asks again for what was
//! not answered, and then compares how often each rollout was used with the batches it knows.

use crate::crash::{Dice, Told};
use crate::program::{Client, Server, rollyard, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const RUN: &str = "/api/runs/sampled";
const BATCH: usize = 6;
const MAX_SAMPLES: u64 = 3;
const KEEP_COMMITS: usize = 4;

#[test]
fn every_use_is_counted_right_when_the_server_is_killed_between_sample_and_commit() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("ROLLYARD_CRASH_ROUNDS").unwrap_or(20);
    let seed = number("ROLLYARD_CRASH_SEED").unwrap_or(20_261_116);
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut trainer = Trainer { step: 1, dice: Dice(seed ^ 1), ..Trainer::default() };
    let mut writer = Writer::default();
    let flags = ["--lease-seconds", "86400", "--log-level", "warn"];
    for round in 0..rounds {
        let told = Told(format!("seed {seed}, round {round}"));
        let mut server = Server::start(dir.path(), &flags);
        make_run(&server.client());
        trainer.check(&server.client());
        let answered = AtomicU64::new(0);
        let enough = 3 + dice.roll(60);
        std::thread::scope(|scope| {
            let (client, counter, writer) = (server.client(), &answered, &mut writer);
            scope.spawn(move || writer.write_until_dead(&client, counter));
            let (client, trainer) = (server.client(), &mut trainer);
            scope.spawn(move || trainer.train_until_dead(&client));
            let deadline = Instant::now() + Duration::from_secs(20);
            while answered.load(Relaxed) < enough && Instant::now() < deadline {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_micros(dice.roll(6000)));
            server.kill();
        });
        drop(told);
    }
    let told = Told(format!("seed {seed}, after the last round"));
    let server = Server::start(dir.path(), &flags);
    trainer.check(&server.client());
    assert!(
        trainer.batches.len() > rounds as usize / 2,
        "hardly anything was trained: {:?}",
        trainer.batches
    );
    assert_eq!(server.stop(), Some(0));
    let mut program = rollyard(dir.path());
    program.args(["ledger", "check", "--payloads", "--run", "sampled", "--data", "data"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    drop(told);
}

fn make_run(client: &Client) {
    let config = json!({
        "mode": "replay", "group_size": 2, "max_samples": MAX_SAMPLES, "max_rollout_step_delay": -1,
        "max_rollout_timestamp_delay": -1, "keep_commits": KEEP_COMMITS, "seed": 11,
    });
    let (status, answer) = client.post("/api/runs", &json!({"name": "sampled", "config": config}));
    assert!(matches!(status, 200 | 201), "{answer}");
}

/// Adds pairs; what was not answered is sent again.
#[derive(Default)]
struct Writer {
    next: u64,
}

impl Writer {
    fn write_until_dead(&mut self, client: &Client, answered: &AtomicU64) {
        loop {
            let lines: String = (0..2)
                .map(|n| {
                    let (uid, instance) = (format!("{}-{n}", self.next), self.next.to_string());
                    let item = json!({"uid": uid, "instance_id": instance, "env_name": "e", "messages": [],
                                      "reward": n, "weight_version": 0});
                    item.to_string() + "\n"
                })
                .collect();
            let Some((status, answer)) = client.try_post(&format!("{RUN}/rollouts"), &lines) else { return };
            assert_eq!((status, &answer["rejected_total"]), (200, &json!(0)), "{answer}");
            self.next += 1;
            answered.fetch_add(1, Relaxed);
        }
    }
}

/// What the trainer was about to do when the server died.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Sample,
    Ack {
        lease: u64,
    },
    Commit,
    Rewind {
        to: u64,
    },
}

#[derive(Default)]
struct Trainer {
    step: u64,
    phase: Phase,
    /// By step: what was drawn for it and not rewound.
    batches: BTreeMap<u64, Vec<String>>,
    /// The last steps that were committed and not rewound over, and the one before which nothing can be.
    commits: Vec<u64>,
    floor: u64,
    dice: Dice,
}

impl Trainer {
    fn train_until_dead(&mut self, client: &Client) {
        while self.advance(client) {}
    }

    /// Does the next thing; false if the server died over it. Everything may be done again.
    fn advance(&mut self, client: &Client) -> bool {
        let post = |call: String, body: Value| client.try_post(&format!("{RUN}/{call}"), &body.to_string());
        let (answer, next) = match self.phase {
            Phase::Sample => {
                let ask = json!({"rollouts": BATCH, "step": self.step, "wait_seconds": 0.2});
                let Some((status, answer)) = post("sample".to_owned(), ask) else { return false };
                assert_eq!(status, 200, "{answer}");
                let Some(lease) = answer["lease"].as_u64() else { return true };
                self.note_batch(&answer);
                self.phase = Phase::Ack { lease };
                return true;
            }
            Phase::Ack { lease } => (post(format!("leases/{lease}/ack"), json!({})), Phase::Commit),
            Phase::Commit => (post("commit".to_owned(), json!({"step": self.step})), Phase::Sample),
            Phase::Rewind { to } => (post("rewind".to_owned(), json!({"step": to})), Phase::Sample),
        };
        let Some((status, answer)) = answer else { return false };
        assert_eq!(status, 200, "{:?}: {answer}", self.phase);
        match self.phase {
            Phase::Commit => {
                self.commits.push(self.step);
                if self.commits.len() > KEEP_COMMITS {
                    self.floor = self.commits.remove(0);
                }
                self.step += 1;
            }
            Phase::Rewind { to } => {
                self.commits.retain(|step| *step <= to);
                self.step = to + 1;
                drop(self.batches.split_off(&self.step));
            }
            Phase::Sample | Phase::Ack { .. } => {}
        }
        self.phase = next;
        if next == Phase::Sample && self.step > 5 && self.dice.roll(8) == 0 {
            self.phase = Phase::Rewind { to: (self.step - 1 - self.dice.roll(3)).max(self.floor) };
        }
        true
    }

    fn note_batch(&mut self, answer: &Value) {
        let rows = answer["rollouts"].as_array().unwrap();
        let uids: Vec<String> = rows.iter().map(|row| row["uid"].as_str().unwrap().to_owned()).collect();
        assert_eq!(uids.len(), BATCH);
        let before = self.batches.insert(self.step, uids.clone());
        assert!(before.is_none_or(|before| before == uids), "step {} was drawn twice", self.step);
    }

    /// After a restart: finishes what was begun, then compares every use.
    fn check(&mut self, client: &Client) {
        if self.batches.is_empty() && self.phase == Phase::Sample && self.step == 1 {
            return;
        }
        // A draw that was not answered may have happened: asking again tells, and if it had not, it has now.
        while !self.advance(client) {}
        let mut uses: BTreeMap<&String, u64> = BTreeMap::new();
        for uid in self.batches.values().flatten() {
            *uses.entry(uid).or_default() += 1;
        }
        for (uid, used) in uses {
            let (status, fate) = client.get(&format!("{RUN}/rollouts/{uid}"));
            assert_eq!(status, 200, "{uid} was drawn and is lost");
            // One that is settled was used as often as it may be.
            let counted = fate["usage_count"].as_u64().unwrap_or(MAX_SAMPLES);
            assert_eq!(counted, used, "{uid}: {fate}");
        }
        let (_, books) = client.get(&format!("{RUN}/books"));
        assert_eq!(books["balanced"], true, "{books}");
    }
}
