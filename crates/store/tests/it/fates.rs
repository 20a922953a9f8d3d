//! What an archive says became of a rollout is what the ledger says, whatever happened.

use proptest::prelude::*;
use rollyard_core::ids::{LeaseNo, Place, Time};
use rollyard_core::ledger::{
    Command, Draw, Event, Fate as LedgerFate, LeaseStatus, LeaseTerms, Ledger, Want, Whereabouts,
};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item;
use rollyard_store::archive::fates::{Fate, Fates, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Admit { uid: u16, instance: u8, reward: u8 },
    Lease(usize),
    Sample(usize),
    Ack(u64),
    Return(u64),
    Commit(u64),
    Rewind(u64),
    RewindToStart,
    Drop(u16),
    Discard(u16),
    DropOpen,
    Advance(u64),
    Wait(u64),
    Configure(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (0u16..150, 0u8..6, 0u8..3).prop_map(|(uid, instance, reward)| Step::Admit { uid, instance, reward }),
        6 => (1usize..4).prop_map(Step::Lease),
        6 => (1usize..5).prop_map(Step::Sample),
        6 => (0u64..12).prop_map(Step::Ack),
        2 => (0u64..12).prop_map(Step::Return),
        4 => (0u64..8).prop_map(Step::Commit),
        2 => (0u64..8).prop_map(Step::Rewind),
        1 => Just(Step::RewindToStart),
        1 => (0u16..150).prop_map(Step::Drop),
        1 => (0u16..150).prop_map(Step::Discard),
        1 => Just(Step::DropOpen),
        2 => (0u64..6).prop_map(Step::Advance),
        2 => (0u64..8).prop_map(Step::Wait),
        1 => (0u32..3).prop_map(Step::Configure),
    ];
    proptest::collection::vec(step, 1..150)
}

/// A ledger, and what was told of it.
struct Told {
    ledger: Ledger,
    fates: Fates,
    last: BTreeMap<String, Fate>,
    admitted: Vec<String>,
    now: Time,
    is_replay: bool,
}

impl Told {
    fn new(mode: &str) -> Self {
        let config = json!({
            "mode": mode, "group_size": 3, "group_timeout_seconds": 6, "lease_seconds": 10, "keep_commits": 1,
            "max_samples": 2, "replay_capacity": 20, "max_rollout_timestamp_delay": -1.0, "max_rollout_step_delay": 3,
        });
        let Value::Object(config) = config else { unreachable!() };
        let config = RunConfig::default().patched(&config).unwrap();
        let mut fates = Fates::default();
        let configured = Event::Configured { at: Time(0), config: Box::new(config.clone()), start: None };
        fates.hear(&configured, &mut Vec::new());
        let is_replay = mode == "replay";
        Self {
            ledger: Ledger::new(config),
            fates,
            last: BTreeMap::new(),
            admitted: Vec::new(),
            now: Time(1_000),
            is_replay,
        }
    }

    fn run(&mut self, command: &Command) {
        let Ok(events) = self.ledger.decide(command, self.now) else { return };
        let mut told = Vec::new();
        for event in &events {
            self.ledger.apply(event, Place(0), &mut Vec::new());
            self.fates.hear(event, &mut told);
            if let Event::Admitted(new) = event {
                self.admitted.push(new.uid.clone());
            }
        }
        for fate in told {
            assert!(self.admitted.iter().any(|uid| **uid == *fate.uid), "{fate:?} of nobody");
            self.last.insert(fate.uid.to_string(), fate);
        }
    }

    fn check(&self) {
        for uid in &self.admitted {
            let told = self.last.get(uid);
            let told = told.map_or((Status::Held, None, None), |fate| (fate.status, fate.reason, fate.step));
            let known = match self.ledger.whereabouts(uid).unwrap() {
                Whereabouts::Settled { fate: LedgerFate::Trained { step, .. }, .. } => {
                    (Status::Trained, None, step)
                }
                Whereabouts::Settled { fate: LedgerFate::Dropped(reason), .. } => {
                    (Status::Dropped, Some(reason), None)
                }
                // It may have been trained on and still be drawn from; the ledger calls that held.
                Whereabouts::Kept { .. } if self.is_replay => {
                    assert_ne!(told.0, Status::Dropped, "{uid}");
                    continue;
                }
                Whereabouts::Kept { lease: Some((_, LeaseStatus::Acked(step))), .. } => {
                    (Status::Trained, None, step)
                }
                Whereabouts::Kept { .. } => (Status::Held, None, None),
            };
            assert_eq!(told, known, "{uid}");
        }
    }
}

fn command(step: &Step, told: &mut Told) -> Command {
    let terms = LeaseTerms { reader: "r".into(), secs: None, auto: false };
    match step.clone() {
        Step::Admit { uid, instance, reward } => {
            let text = json!({"uid": uid.to_string(), "instance_id": instance, "reward": reward, "messages": [],
                "env_name": "e", "timestamp": 1.0, "weight_version": 1});
            let item = item::decode(text.to_string().as_bytes()).unwrap();
            Command::Admit { item, digest: u64::from(reward), size_bytes: 10 }
        }
        Step::Lease(groups) => Command::Lease { want: Want::Groups(groups), terms },
        Step::Sample(count) => Command::Sample { draw: Draw { count, step: None }, terms },
        Step::Ack(lease) => Command::Ack { lease: LeaseNo(lease) },
        Step::Return(lease) => Command::Return { lease: LeaseNo(lease) },
        Step::Commit(step) => Command::Commit { step, leases: None },
        Step::Rewind(step) => Command::Rewind { step },
        Step::RewindToStart => Command::RewindToStart,
        Step::Drop(uid) => Command::Drop { uid: uid.to_string() },
        Step::Discard(uid) => Command::Discard { uid: rollyard_core::ledger::Uid::of(&uid.to_string()) },
        Step::DropOpen => Command::DropOpen,
        Step::Advance(step) => Command::SetStep { step },
        Step::Wait(secs) => {
            told.now = Time(told.now.0 + secs * 1000);
            Command::Tick
        }
        Step::Configure(keep) => {
            let changes = json!({"keep_commits": keep}).as_object().unwrap().clone();
            Command::Configure { changes, start: None }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_last_fate_told_is_the_ledgers(steps in steps(), mode in prop_oneof![Just("queue"), Just("replay")]) {
        let mut told = Told::new(mode);
        for step in &steps {
            let command = command(step, &mut told);
            told.run(&command);
            told.check();
        }
    }
}
