//! Sampling on the ledger: named cases first, then random commands against a small model.

use super::tests::Yard;
use super::*;
use crate::pipeline::DropReason;
use crate::wire::item::{Item, Source};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Far from 1970, so that ages can be subtracted.
const START: Time = Time(1_700_000_000_000);

fn yard(settings: serde_json::Value) -> Yard {
    let mut all = json!({"mode": "replay", "group_size": 2, "max_rollout_step_delay": 3});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let mut yard = Yard::new(all);
    yard.now = START;
    yard
}

struct New {
    uid: String,
    instance: String,
    env: &'static str,
    reward: f64,
    version: Option<u64>,
    age_secs: f64,
}

impl New {
    fn of(uid: impl ToString, instance: impl ToString) -> Self {
        let (uid, instance) = (uid.to_string(), instance.to_string());
        Self { uid, instance, env: "e", reward: 0.5, version: Some(0), age_secs: 0.0 }
    }

    fn command(self, now: Time) -> Command {
        let source = Source {
            env: Some(self.env.to_owned()),
            timestamp: Some(now.0 as f64 / 1000.0 - self.age_secs),
            response_len: Some(7),
            ..Source::default()
        };
        let item = Item {
            uid: self.uid,
            instance: self.instance,
            reward: self.reward,
            answered: true,
            version: self.version,
            epoch: None,
            source,
        };
        Command::Admit { item, digest: 1, size_bytes: 10 }
    }
}

impl Yard {
    fn add(&mut self, new: New) -> Vec<Event> {
        let command = new.command(self.now);
        self.run(command).unwrap()
    }

    /// Two rollouts of one instance.
    fn pair(&mut self, instance: &str, version: u64) {
        for n in 0..2 {
            let new = New::of(format!("{instance}-{n}"), instance);
            self.add(New { reward: f64::from(n), version: Some(version), ..new });
        }
    }

    /// As the yard's sequencer asks: what has to leave first leaves, then the question is asked again.
    fn try_sample(&mut self, count: usize, step: Option<u64>) -> Result<Option<LeaseNo>, Refusal> {
        let terms = LeaseTerms { reader: "t".to_owned(), secs: None, auto: false };
        loop {
            let events = self.run(Command::Sample { draw: Draw { count, step }, terms: terms.clone() })?;
            if let Some(Event::Sampled { lease, .. }) = events.last() {
                return Ok(Some(*lease));
            }
            if events.is_empty() {
                return Ok(step.and_then(|step| self.ledger.batch_of(step)));
            }
        }
    }

    fn sample(&mut self, count: usize) -> LeaseNo {
        self.try_sample(count, None).unwrap().expect("there is enough to draw from")
    }

    fn drawn(&self, lease: LeaseNo) -> Vec<String> {
        let rows = self.ledger.sampled_rows(lease).unwrap();
        rows.iter().map(|row| self.uid_at[&row.place].clone()).collect()
    }
}

#[test]
fn a_group_enters_the_pool_with_its_advantages() {
    let mut yard = yard(json!({}));
    yard.add(New { reward: 1.0, ..New::of("a", "i") });
    assert_eq!(yard.ledger.replay_stats().unwrap().size, 0);
    yard.add(New { reward: 0.0, ..New::of("b", "i") });
    let lease = yard.sample(2);
    let rows = yard.ledger.sampled_rows(lease).unwrap();
    let advantages: BTreeMap<String, f64> =
        rows.iter().map(|row| (yard.uid_at[&row.place].clone(), row.advantage)).collect();
    assert_eq!(advantages, BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), -1.0)]));
    let books = yard.ledger.books();
    assert_eq!((books.held, books.leased, books.trained), (0, 2, 0));
}

#[test]
fn a_use_counts_until_it_is_given_back_or_rewound() {
    let mut yard = yard(json!({"max_samples": 2}));
    yard.pair("i", 0);
    let uses = |yard: &Yard| (yard.ledger.usage("i-0"), yard.ledger.usage("i-1"));
    let first = yard.sample(2);
    assert_eq!(uses(&yard), (Some(1), Some(1)));
    let second = yard.sample(2);
    assert_eq!(uses(&yard), (Some(2), Some(2)));
    assert_eq!(yard.try_sample(2, None), Ok(None));
    yard.run(Command::Return { lease: second }).unwrap();
    assert_eq!(uses(&yard), (Some(1), Some(1)));
    yard.run(Command::Ack { lease: first }).unwrap();
    yard.run(Command::Commit { step: 1, leases: None }).unwrap();
    let third = yard.sample(2);
    yard.run(Command::Ack { lease: third }).unwrap();
    assert_eq!((yard.ledger.books().trained, yard.ledger.books().held), (2, 0));
    yard.run(Command::Rewind { step: 1 }).unwrap();
    assert_eq!(uses(&yard), (Some(1), Some(1)));
    assert_eq!((yard.ledger.books().trained, yard.ledger.books().held), (0, 2));
    yard.run(Command::Rewind { step: 0 }).unwrap();
    assert_eq!(uses(&yard), (Some(0), Some(0)));
}

#[test]
fn a_rewind_draws_the_same_again() {
    let mut yard = yard(json!({"max_samples": 3, "seed": 5}));
    for n in 0..10 {
        yard.pair(&n.to_string(), 0);
    }
    let mut batches = Vec::new();
    for step in 1..=4 {
        let lease = yard.sample(4);
        batches.push(yard.drawn(lease));
        yard.run(Command::Ack { lease }).unwrap();
        yard.run(Command::Commit { step, leases: None }).unwrap();
    }
    yard.run(Command::Rewind { step: 2 }).unwrap();
    let again: Vec<Vec<String>> = (3..=4)
        .map(|step| {
            let lease = yard.sample(4);
            let drawn = yard.drawn(lease);
            yard.run(Command::Ack { lease }).unwrap();
            yard.run(Command::Commit { step, leases: None }).unwrap();
            drawn
        })
        .collect();
    assert_eq!(again, batches[2..]);
}

#[test]
fn stale_rollouts_leave_with_their_reason_and_are_never_drawn() {
    let mut yard = yard(json!({"max_rollout_timestamp_delay": 60, "group_size": 1, "max_samples": -1}));
    yard.run(Command::SetStep { step: 5 }).unwrap();
    for (uid, version, age_secs) in [("old", 1, 0.0), ("edge", 2, 0.0), ("aged", 5, 60.0), ("new", 5, 59.0)] {
        yard.add(New { version: Some(version), age_secs, ..New::of(uid, uid) });
    }
    assert_eq!(yard.dropped(DropReason::StaleStep), 1);
    assert_eq!(yard.dropped(DropReason::StaleTime), 1);
    let lease = yard.sample(2);
    assert_eq!(
        yard.drawn(lease).into_iter().collect::<BTreeSet<_>>(),
        ["edge", "new"].map(String::from).into()
    );
    yard.run(Command::Return { lease }).unwrap();
    yard.run(Command::SetStep { step: 6 }).unwrap();
    assert_eq!(yard.dropped(DropReason::StaleStep), 2);
    yard.now = Time(yard.now.0 + 2_000);
    assert_eq!(yard.try_sample(1, None), Ok(None));
    assert_eq!(yard.dropped(DropReason::StaleTime), 2);
}

#[test]
fn a_rollout_that_ages_in_a_lease_is_trained_or_dropped_as_the_lease_ends() {
    for (acked, trained, stale) in [(true, 1, 0), (false, 0, 1)] {
        let mut yard = yard(json!({"group_size": 1, "max_samples": -1}));
        yard.add(New::of("a", "a"));
        let lease = yard.sample(1);
        yard.run(Command::SetStep { step: 9 }).unwrap();
        assert_eq!(yard.ledger.books().leased, 1);
        assert_eq!(yard.try_sample(1, None), Ok(None));
        yard.run(if acked { Command::Ack { lease } } else { Command::Return { lease } }).unwrap();
        assert_eq!((yard.ledger.books().trained, yard.dropped(DropReason::StaleStep)), (trained, stale));
    }
}

#[test]
fn capacity_keeps_the_newest_of_each_environment() {
    let mut yard = yard(json!({"replay_capacity": 3, "group_size": 1, "replay_select": "oldest"}));
    for n in 0..5 {
        yard.add(New { env: "a", ..New::of(format!("a{n}"), n) });
        yard.run(Command::Tick).unwrap();
    }
    yard.add(New { env: "b", ..New::of("b0", "b") });
    assert_eq!(yard.dropped(DropReason::Capacity), 2);
    let lease = yard.sample(4);
    assert_eq!(
        yard.drawn(lease).into_iter().collect::<BTreeSet<_>>(),
        ["a2", "a3", "a4", "b0"].map(String::from).into()
    );
}

#[test]
fn a_batch_of_a_step_is_drawn_once() {
    let mut yard = yard(json!({}));
    for n in 0..10 {
        yard.pair(&n.to_string(), 0);
    }
    let first = yard.try_sample(6, Some(2)).unwrap().unwrap();
    assert_eq!(yard.ledger.step(), Some(2));
    assert_eq!(yard.try_sample(6, Some(2)).unwrap(), Some(first));
    let refusal = yard.try_sample(5, Some(2)).unwrap_err();
    assert_eq!(refusal, Refusal::BatchDiffers { step: 2, found: 6, count: 5 });
    let next = yard.try_sample(6, Some(3)).unwrap().unwrap();
    let both: BTreeSet<String> = yard.drawn(first).into_iter().chain(yard.drawn(next)).collect();
    assert_eq!(both.len(), 12);
    assert_eq!(yard.try_sample(6, Some(2)).unwrap(), Some(first), "a late rank still gets its step");
    yard.run(Command::Return { lease: first }).unwrap();
    assert_eq!(yard.try_sample(6, Some(2)).unwrap_err().code(), "step_back");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let mut queue = Yard::new(json!({}));
    let draw = Draw { count: 1, step: None };
    let terms = LeaseTerms { reader: String::new(), secs: None, auto: false };
    let sample = Command::Sample { draw, terms: terms.clone() };
    assert_eq!(queue.run(sample.clone()).unwrap_err().code(), "wrong_mode");
    assert_eq!(queue.run(Command::SetStep { step: 1 }).unwrap_err().code(), "wrong_mode");

    let mut yard = yard(json!({"replay_capacity": 2, "group_size": 1}));
    assert_eq!(yard.run(Command::Lease { want: Want::All, terms }).unwrap_err().code(), "wrong_mode");
    let refuse = |yard: &mut Yard, new: New| {
        let command = new.command(yard.now);
        yard.run(command).unwrap_err().code()
    };
    assert_eq!(refuse(&mut yard, New { version: None, ..New::of("a", "a") }), "missing_metadata");
    assert_eq!(refuse(&mut yard, New { version: Some(1), ..New::of("a", "a") }), "future_step");
    yard.run(Command::SetStep { step: 4 }).unwrap();
    assert_eq!(yard.run(Command::SetStep { step: 3 }).unwrap_err().code(), "step_back");
    for n in 0..3 {
        yard.add(New { version: Some(4), ..New::of(n, n) });
    }
    assert_eq!(yard.try_sample(3, None).unwrap_err().code(), "batch_too_large");
    let mode = json!({"mode": "queue"}).as_object().unwrap().clone();
    assert_eq!(yard.run(Command::Configure { changes: mode, start: None }).unwrap_err().code(), "mode_fixed");
}

#[test]
fn a_limiter_holds_both_sides_but_never_an_open_group() {
    let mut yard = yard(json!({"limiter": "queue", "limiter_size": 4, "max_samples": -1}));
    yard.pair("a", 0);
    yard.add(New::of("b-0", "b"));
    let blocked = New::of("c-0", "c").command(yard.now);
    assert_eq!(yard.run(blocked.clone()).unwrap_err().code(), "paced");
    yard.add(New::of("b-1", "b"));
    let lease = yard.sample(4);
    assert_eq!(yard.try_sample(1, None), Ok(None));
    yard.run(blocked).unwrap();
    yard.run(Command::Return { lease }).unwrap();
    assert_eq!(yard.ledger.replay_stats().unwrap().flow.sampled, 0);
}

#[test]
fn a_rewind_drops_what_only_later_weights_could_have_sampled() {
    let mut yard = yard(json!({"group_size": 1}));
    for step in 1..=3 {
        yard.run(Command::SetStep { step }).unwrap();
        yard.add(New { version: Some(step), ..New::of(step, step) });
        yard.run(Command::Commit { step, leases: None }).unwrap();
    }
    yard.run(Command::Rewind { step: 2 }).unwrap();
    assert_eq!(yard.ledger.step(), Some(2));
    assert_eq!(yard.ledger.next_deadline(), Some(Time(0)));
    yard.run(Command::Tick).unwrap();
    assert_eq!(yard.dropped(DropReason::FutureStep), 1);
    assert_eq!(yard.ledger.replay_stats().unwrap().size, 2);
}

#[test]
fn turning_the_knobs_keeps_uses_and_order() {
    let mut yard = yard(json!({"max_samples": 1, "group_size": 1, "replay_select": "oldest"}));
    for n in 0..3 {
        yard.add(New::of(n, n));
    }
    let lease = yard.sample(1);
    yard.run(Command::Ack { lease }).unwrap();
    assert_eq!(yard.ledger.books().trained, 1);
    let more = json!({"max_samples": 2}).as_object().unwrap().clone();
    yard.run(Command::Configure { changes: more, start: None }).unwrap();
    assert_eq!((yard.ledger.books().trained, yard.ledger.books().held), (0, 3));
    let lease = yard.sample(3);
    assert_eq!(yard.drawn(lease), ["0", "1", "2"]);
    assert_eq!(yard.ledger.sampled_rows(lease).unwrap()[0].used, 2);
}

mod random {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Admit { uid: u16, instance: u8, env: usize, behind: u64, age_secs: f64 },
        Sample { count: usize, step: Option<u64> },
        Ack(u64),
        Return(u64),
        Commit(u64),
        Rewind(u64),
        Advance(u64),
        Drop(u16),
        Discard(u16),
        Close(u8),
        Wait(u64),
        MaxSamples(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            30 => (0u16..200, 0u8..8, 0usize..3, 0u64..5, 0.0..20.0).prop_map(|(uid, instance, env, behind, age_secs)|
                Step::Admit { uid, instance, env, behind, age_secs }),
            8 => (1usize..5, proptest::option::weighted(0.3, 0u64..3))
                .prop_map(|(count, step)| Step::Sample { count, step }),
            5 => (0u64..14).prop_map(Step::Ack),
            2 => (0u64..14).prop_map(Step::Return),
            3 => (0u64..8).prop_map(Step::Commit),
            1 => (0u64..8).prop_map(Step::Rewind),
            2 => (0u64..3).prop_map(Step::Advance),
            1 => (0u16..200).prop_map(Step::Drop),
            1 => (0u16..200).prop_map(Step::Discard),
            1 => (0u8..8).prop_map(Step::Close),
            3 => (0u64..8).prop_map(Step::Wait),
            1 => prop_oneof![Just(-1i64), 1i64..4].prop_map(Step::MaxSamples),
        ];
        proptest::collection::vec(step, 1..160)
    }

    /// Every use that was not taken back, by lease.
    #[derive(Default)]
    struct Model {
        uses: BTreeMap<LeaseNo, BTreeSet<Uid>>,
        made: BTreeMap<Uid, (u64, f64, String)>,
    }

    impl Model {
        fn note(&mut self, yard: &Yard, event: &Event) {
            match event {
                Event::Admitted(new) => {
                    let origin = new.origin.as_ref().unwrap();
                    let facts = (new.version.unwrap(), origin.timestamp, new.uid.clone());
                    self.made.insert(Uid::of(&new.uid), facts);
                }
                Event::Sampled { lease, picks, .. } => {
                    let (step, now) = (yard.ledger.step().unwrap() as u64, yard.now.0 as f64 / 1000.0);
                    for pick in picks {
                        let (version, made_at, _) = self.made[&pick.uid];
                        assert!(version <= step && version + 3 >= step, "step {step}, weights {version}");
                        assert!(made_at > now - 15.0, "made {} seconds ago", now - made_at);
                    }
                    let drawn: BTreeSet<Uid> = picks.iter().map(|pick| pick.uid).collect();
                    assert_eq!(drawn.len(), picks.len(), "the same twice in a batch");
                    self.uses.insert(*lease, drawn);
                }
                Event::Returned { lease, .. } => drop(self.uses.remove(lease).unwrap()),
                Event::Rewound { .. } => self
                    .uses
                    .retain(|lease, _| !matches!(yard.ledger.lease_ending(*lease), Some(Ending::Rewound))),
                _ => {}
            }
        }

        fn check(&self, yard: &Yard) {
            for (uid, (_, _, name)) in &self.made {
                if let Some(used) = yard.ledger.usage(name) {
                    let expected = self.uses.values().filter(|drawn| drawn.contains(uid)).count();
                    assert_eq!(used as usize, expected, "{name}");
                }
            }
            assert!(yard.ledger.books().balanced());
        }
    }

    fn command(step: &Step, yard: &mut Yard) -> Command {
        let at = yard.ledger.step().unwrap() as u64;
        match step.clone() {
            Step::Admit { uid, instance, env, behind, age_secs } => New {
                uid: uid.to_string(),
                instance: instance.to_string(),
                env: ["a", "b", "c"][env],
                reward: f64::from(uid % 3),
                version: Some(at.saturating_sub(behind)),
                age_secs,
            }
            .command(yard.now),
            Step::Ack(lease) => Command::Ack { lease: LeaseNo(lease) },
            Step::Return(lease) => Command::Return { lease: LeaseNo(lease) },
            Step::Commit(step) => Command::Commit { step, leases: None },
            Step::Rewind(step) => Command::Rewind { step },
            Step::Advance(ahead) => Command::SetStep { step: at + ahead },
            Step::Drop(uid) => Command::Drop { uid: uid.to_string() },
            Step::Discard(uid) => Command::Discard { uid: Uid::of(&uid.to_string()) },
            Step::Close(instance) => Command::CloseGroup { instance: instance.to_string() },
            Step::Wait(secs) => {
                yard.now = Time(yard.now.0 + secs * 1000);
                Command::Tick
            }
            Step::MaxSamples(max) => {
                let changes = json!({"max_samples": max}).as_object().unwrap().clone();
                Command::Configure { changes, start: None }
            }
            Step::Sample { count, step } => {
                let terms = LeaseTerms { reader: "r".into(), secs: None, auto: false };
                Command::Sample { draw: Draw { count, step: step.map(|ahead| at + ahead) }, terms }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn every_use_is_counted_and_nothing_stale_is_drawn(
            steps in steps(),
            select in prop_oneof![Just("recency"), Just("uniform"), Just("newest"), Just("prioritised")],
            capacity in 2u32..9,
        ) {
            let mut yard = yard(json!({
                "group_timeout_seconds": 6, "lease_seconds": 10, "keep_commits": 1, "max_samples": 2,
                "max_rollout_timestamp_delay": 15, "replay_select": select, "replay_capacity": capacity,
            }));
            let mut model = Model::default();
            for step in &steps {
                let command = command(step, &mut yard);
                let before = yard.ledger.snapshot();
                let restored = Ledger::restore(&before).unwrap();
                let same = restored.decide(&command, yard.now);
                prop_assert_eq!(&same, &yard.ledger.decide(&command, yard.now), "a restored ledger decides otherwise");
                match yard.run(command.clone()) {
                    Ok(events) => events.iter().for_each(|event| model.note(&yard, event)),
                    Err(_) => prop_assert_eq!(before, yard.ledger.snapshot(), "a refusal changed something"),
                }
                model.check(&yard);
            }
            yard.check_log();
        }
    }
}
