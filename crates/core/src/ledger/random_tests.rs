//! Random commands against a small model: the books balance after every one.

use super::tests::{Yard, admission};
use super::*;
use crate::pipeline::DropReason;
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Admit { uid: u16, instance: u8, reward: u8, version: Option<u64>, epoch: Option<u64> },
    Lease(Want),
    Ack(u64),
    Return(u64),
    Extend(u64),
    Commit(u64),
    Rewind(u64),
    SetVersion(u64),
    Drop(u16),
    DropOpen,
    Close(u8),
    Wait(u64),
    GroupSize(u32),
    Hooks(bool),
    Judge { nth: u8, says: u8 },
    RewindToStart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let want =
        prop_oneof![Just(Want::All), (1usize..4).prop_map(Want::Groups), (1usize..9).prop_map(Want::Rows)];
    let step = prop_oneof![
        30 => (0u16..150, 0u8..6, 0u8..4, proptest::option::weighted(0.1, 0u64..3),
              proptest::option::weighted(0.1, 0u64..2))
            .prop_map(|(uid, instance, reward, version, epoch)|
                Step::Admit { uid, instance, reward, version, epoch }),
        4 => want.prop_map(Step::Lease),
        3 => (0u64..12).prop_map(Step::Ack),
        2 => (0u64..12).prop_map(Step::Return),
        1 => (0u64..12).prop_map(Step::Extend),
        2 => (0u64..8).prop_map(Step::Commit),
        1 => (0u64..8).prop_map(Step::Rewind),
        1 => (0u64..3).prop_map(Step::SetVersion),
        1 => (0u16..150).prop_map(Step::Drop),
        1 => Just(Step::DropOpen),
        1 => (0u8..6).prop_map(Step::Close),
        2 => (0u64..8).prop_map(Step::Wait),
        1 => (2u32..5).prop_map(Step::GroupSize),
        1 => proptest::bool::ANY.prop_map(Step::Hooks),
        8 => (0u8..3, 0u8..5).prop_map(|(nth, says)| Step::Judge { nth, says }),
        1 => Just(Step::RewindToStart),
    ];
    proptest::collection::vec(step, 1..120)
}

/// What a careful reader would write down on paper.
#[derive(Default)]
struct Model {
    admitted: BTreeSet<String>,
    out: BTreeMap<LeaseNo, BTreeSet<String>>,
    trained: BTreeMap<LeaseNo, BTreeSet<String>>,
}

impl Model {
    /// Nobody else may have, or have trained on, what a lease hands out.
    fn note(&mut self, yard: &Yard, event: &Event) {
        match event {
            Event::Admitted(new) => assert!(self.admitted.insert(new.uid.clone()), "{} twice", new.uid),
            Event::Leased { lease, .. } => {
                let uids = yard.uids(&yard.ledger.leased_groups(*lease));
                for other in self.out.values().chain(self.trained.values()) {
                    assert!(uids.is_disjoint(other), "handed out twice");
                }
                assert!(uids.is_subset(&self.admitted));
                self.out.insert(*lease, uids);
            }
            Event::Acked { lease, .. } => {
                let uids = self.out.remove(lease).unwrap();
                self.trained.insert(*lease, uids);
            }
            Event::Returned { lease, .. } => drop(self.out.remove(lease).unwrap()),
            Event::Rewound { .. } | Event::RewoundToStart { .. } => {
                self.out.clear();
                self.trained.retain(|lease, _| {
                    yard.ledger.lease(*lease).is_some()
                        || matches!(yard.ledger.lease_ending(*lease), Some(Ending::Trained { .. }))
                });
            }
            _ => {}
        }
    }

    fn check(&self, books: &Books) {
        let count = |leases: &BTreeMap<LeaseNo, BTreeSet<String>>| -> u64 {
            leases.values().map(|uids| uids.len() as u64).sum()
        };
        assert_eq!(books.admitted, self.admitted.len() as u64);
        assert_eq!(books.leased, count(&self.out));
        assert_eq!(books.trained, count(&self.trained));
    }
}

fn command(step: &Step, yard: &mut Yard) -> Command {
    let lease_terms = LeaseTerms { reader: "r".into(), secs: None, auto: false };
    match step.clone() {
        Step::Admit { uid, instance, reward, version, epoch } => {
            let reward = [0.0, 1.0, 0.5, -1.0][reward as usize];
            admission(&uid.to_string(), &instance.to_string(), reward, version, epoch)
        }
        Step::Lease(want) => Command::Lease { want, terms: lease_terms },
        Step::Ack(lease) => Command::Ack { lease: LeaseNo(lease) },
        Step::Return(lease) => Command::Return { lease: LeaseNo(lease) },
        Step::Extend(lease) => Command::Extend { lease: LeaseNo(lease), secs: 3.0 },
        Step::Commit(step) => Command::Commit { step, leases: None },
        Step::Rewind(step) => Command::Rewind { step },
        Step::SetVersion(version) => Command::SetVersion { version },
        Step::RewindToStart => Command::RewindToStart,
        Step::Judge { nth, says } => judge(yard, nth as usize, says),
        Step::Hooks(on) => {
            let changes = json!({"pad": if on { "hook" } else { "repeat" }}).as_object().unwrap().clone();
            Command::Configure { changes, start: None }
        }
        Step::Drop(uid) => Command::Drop { uid: uid.to_string() },
        Step::DropOpen => Command::DropOpen,
        Step::Close(instance) => Command::CloseGroup { instance: instance.to_string() },
        Step::Wait(secs) => {
            yard.now = Time(yard.now.0 + secs * 1000);
            Command::Tick
        }
        Step::GroupSize(size) => {
            let changes = json!({"group_size": size}).as_object().unwrap().clone();
            Command::Configure { changes, start: None }
        }
    }
}

/// What a generator's functions could say of one of the posed groups, or of what it was before.
fn judge(yard: &Yard, nth: usize, says: u8) -> Command {
    let posed = yard.ledger.posed(nth + 1, |_, _| false);
    let Some(posed) = posed.get(nth) else {
        return Command::Judge { group: GroupNo(0), seen: 0, ruling: Ruling::Waiting };
    };
    let row = |member: usize| ShapedRow { member: member as u32, reward: 0.5, copy: None, changes: None };
    let len = posed.rollouts.len();
    let ruling = match says {
        0 => Ruling::Waiting,
        1 => Ruling::Drop { reason: DropReason::HookFailed, why: Some("it raised".into()) },
        2 => Ruling::Use(Shape { rows: (0..len).map(row).collect() }),
        // All but the first, and the last twice.
        _ => Ruling::Use(Shape { rows: (1..len).chain([len - 1]).map(row).collect() }),
    };
    let seen = if says == 4 { posed.seen ^ 1 } else { posed.seen };
    Command::Judge { group: posed.group, seen, ruling }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_books_balance_after_every_command(
        steps in steps(),
        ratio in prop_oneof![Just(1.0), Just(0.5)],
        validate in prop_oneof![Just("varied"), Just("sized"), Just("hook")],
    ) {
        let mut yard = Yard::new(json!({
            "group_size": 3, "group_timeout_seconds": 6, "lease_seconds": 10, "keep_commits": 1,
            "max_buffer_size": 60, "min_valid_group_size_ratio": ratio, "validate": validate,
        }));
        let mut model = Model::default();
        for step in &steps {
            let command = command(step, &mut yard);
            let before = yard.ledger.snapshot();
            match yard.run(command) {
                Ok(events) => events.iter().for_each(|event| model.note(&yard, event)),
                Err(_) => prop_assert_eq!(before, yard.ledger.snapshot(), "a refusal changed something"),
            }
            model.check(yard.ledger.books());
        }

        yard.check_log();
    }
}
