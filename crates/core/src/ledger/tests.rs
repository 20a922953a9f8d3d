//! The ledger against its promises, by name. `random_tests.rs` goes on with random commands against a model.

use super::*;
use crate::ids::Place;
use crate::pipeline::DropReason;
use crate::wire::item::{Item, Source};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A ledger with its log, a clock that only moves when told, and a place for every payload.
pub(super) struct Yard {
    pub(super) ledger: Ledger,
    pub(super) config: RunConfig,
    pub(super) log: Vec<(Event, Place)>,
    pub(super) uid_at: BTreeMap<Place, String>,
    pub(super) freed: Vec<(Place, u32)>,
    pub(super) now: Time,
    checked: bool,
}

impl Yard {
    pub(super) fn new(config: serde_json::Value) -> Self {
        let serde_json::Value::Object(map) = config else { panic!("settings are an object") };
        let config = RunConfig::default().patched(&map).unwrap();
        Self {
            ledger: Ledger::new(config.clone()),
            config,
            log: Vec::new(),
            uid_at: BTreeMap::new(),
            freed: Vec::new(),
            now: Time(1_000),
            checked: true,
        }
    }

    pub(super) fn run(&mut self, command: Command) -> Result<Vec<Event>, Refusal> {
        let events = self.ledger.decide(&command, self.now)?;
        for event in &events {
            let place = Place(self.log.len() as u64);
            if let Event::Admitted(new) = event {
                self.uid_at.insert(place, new.uid.clone());
            }
            self.ledger.apply(event, place, &mut self.freed);
            self.log.push((event.clone(), place));
        }
        if self.checked {
            self.ledger.audit().unwrap();
        }
        Ok(events.to_vec())
    }

    pub(super) fn admit(&mut self, uid: &str, instance: &str, reward: f64) -> Vec<Event> {
        self.run(admission(uid, instance, reward, None, None)).unwrap()
    }

    /// A full, varied group of the instance.
    pub(super) fn fill(&mut self, instance: &str) {
        for n in 0..self.config.group_len() {
            self.admit(&format!("{instance}-{n}-{}", self.log.len()), instance, (n % 2) as f64);
        }
    }

    pub(super) fn lease(&mut self, want: Want) -> Option<(LeaseNo, Vec<LeasedGroup>)> {
        let terms = LeaseTerms { reader: "test".into(), secs: None, auto: false };
        let events = self.run(Command::Lease { want, terms }).unwrap();
        let Some(Event::Leased { lease, .. }) = events.last() else { return None };
        Some((*lease, self.ledger.leased_groups(*lease)))
    }

    pub(super) fn uids(&self, groups: &[LeasedGroup]) -> BTreeSet<String> {
        let rows = groups.iter().flat_map(|group| &group.rows);
        rows.map(|row| self.uid_at[&row.place].clone()).collect()
    }

    /// The log alone gives the same ledger, byte for byte, also from a snapshot in the middle; and what was freed
    /// and what is kept are all the payloads there ever were, each once.
    pub(super) fn check_log(&self) -> Ledger {
        let replay = |mut ledger: Ledger, events: &[(Event, Place)]| {
            let mut record = Vec::new();
            for (event, place) in events {
                record.clear();
                encode_events(std::slice::from_ref(event), &mut record);
                for event in decode_events(&record).unwrap() {
                    ledger.apply(&event, *place, &mut Vec::new());
                }
            }
            ledger
        };
        let expected = self.ledger.snapshot();
        assert_eq!(replay(Ledger::new(self.config.clone()), &self.log).snapshot(), expected);
        let (early, late) = self.log.split_at(self.log.len() / 2);
        let middle = replay(Ledger::new(self.config.clone()), early).snapshot();
        let resumed = replay(Ledger::restore(&middle).unwrap(), late);
        assert_eq!(resumed.snapshot(), expected);
        resumed.audit().unwrap();

        let mut places: Vec<Place> = self.freed.iter().map(|(place, _)| *place).collect();
        places.extend(self.ledger.places().map(|(place, _)| place));
        places.sort_unstable();
        assert!(places.iter().eq(self.uid_at.keys()));
        resumed
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.ledger.books().dropped.get(&reason).copied().unwrap_or_default()
    }
}

pub(super) fn admission(
    uid: &str,
    instance: &str,
    reward: f64,
    version: Option<u64>,
    epoch: Option<u64>,
) -> Command {
    let item = Item {
        uid: uid.into(),
        instance: instance.into(),
        reward,
        answered: true,
        version,
        epoch,
        source: Source::default(),
    };
    Command::Admit { item, digest: reward.to_bits(), size_bytes: 10 }
}

#[test]
fn read_of_four_leaves_the_other_groups() {
    let mut yard = Yard::new(json!({"group_size": 4}));
    for n in 0..10 {
        yard.fill(&format!("i{n}"));
    }
    let (_, groups) = yard.lease(Want::Rows(4)).unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(yard.ledger.ready_groups(), 9);
    assert_eq!((yard.ledger.books().held, yard.ledger.books().leased), (36, 4));
}

#[test]
fn groups_are_read_in_the_order_they_became_ready() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    for name in ["b", "a", "c"] {
        yard.fill(name);
    }
    let (_, groups) = yard.lease(Want::All).unwrap();
    let names: Vec<&str> = groups.iter().map(|group| &*group.instance).collect();
    assert_eq!(names, ["b", "a", "c"]);
}

#[test]
fn too_few_ready_groups_are_left_alone() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    assert!(yard.lease(Want::All).is_none());
    yard.fill("a");
    assert!(yard.lease(Want::Groups(2)).is_none());
    assert!(yard.lease(Want::Rows(3)).is_none());
    assert_eq!(yard.ledger.books().held, 2);
}

#[test]
fn writing_twice_is_one_rollout() {
    let mut yard = Yard::new(json!({"group_size": 3}));
    yard.admit("u", "a", 1.0);
    assert!(yard.admit("u", "a", 1.0).is_empty());
    let refusal = yard.run(admission("u", "a", 0.5, None, None)).unwrap_err();
    assert_eq!(refusal.code(), "uid_taken");
    assert_eq!(yard.ledger.books().admitted, 1);
}

#[test]
fn a_retry_after_training_is_still_recognised() {
    let mut yard = Yard::new(json!({"group_size": 2, "keep_commits": 0}));
    yard.admit("u", "a", 1.0);
    yard.admit("v", "a", 0.0);
    let (lease, _) = yard.lease(Want::All).unwrap();
    yard.run(Command::Ack { lease }).unwrap();
    yard.run(Command::Commit { step: 1, leases: None }).unwrap();
    assert!(yard.admit("u", "a", 1.0).is_empty());
    assert_eq!(yard.ledger.books().trained, 2);
    assert_eq!(yard.freed.len(), 2);
}

#[test]
fn over_full_groups_open_the_next_round() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    for n in 0..5 {
        yard.admit(&n.to_string(), "a", f64::from(n % 2));
    }
    let (_, groups) = yard.lease(Want::All).unwrap();
    let rounds: Vec<(u32, usize)> = groups.iter().map(|group| (group.round, group.rows.len())).collect();
    assert_eq!(rounds, [(0, 2), (1, 2)]);
    assert_eq!(yard.ledger.books().held, 1);
}

#[test]
fn a_generator_that_begins_anew_finds_its_unfinished_groups_gone_and_the_others_counted() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.fill("finished");
    yard.fill("twice");
    yard.fill("twice");
    yard.admit("half", "half", 1.0);
    yard.run(admission("n", "named", 1.0, None, Some(0))).unwrap();
    let finished = |yard: &Yard| {
        ["finished", "twice", "half", "named", "never"].map(|name| yard.ledger.rounds_finished(name))
    };
    assert_eq!(finished(&yard), [1, 2, 0, 0, 0]);

    yard.run(Command::DropOpen).unwrap();
    assert_eq!(yard.dropped(DropReason::Regenerated), 1);
    assert_eq!(finished(&yard), [1, 2, 0, 0, 0]);
    assert!(yard.run(Command::DropOpen).unwrap().is_empty());

    yard.fill("half");
    // Whoever names epochs goes on with the group that waited.
    yard.run(admission("m", "named", 0.0, None, Some(0))).unwrap();
    assert_eq!(finished(&yard), [1, 2, 1, 0, 0]);
    assert_eq!(yard.ledger.ready_groups(), 5);

    let (lease, _) = yard.lease(Want::All).unwrap();
    yard.run(Command::Ack { lease }).unwrap();
    yard.run(Command::Commit { step: 1, leases: None }).unwrap();
    assert_eq!(finished(&yard), [1, 2, 1, 0, 0]);
    assert_eq!(finished(&Yard { ledger: yard.check_log(), ..yard }), [1, 2, 1, 0, 0]);
}

#[test]
fn a_group_that_is_ready_or_posed_is_finished_for_its_generator() {
    let mut early = Yard::new(
        json!({"group_size": 4, "min_valid_group_size_ratio": 0.5, "min_valid_item_size_ratio": 0.5}),
    );
    early.admit("a", "i", 0.0);
    early.admit("b", "i", 1.0);
    let mut posed = Yard::new(json!({"group_size": 2, "validate": "hook"}));
    posed.fill("i");
    for yard in [&mut early, &mut posed] {
        assert_eq!(yard.ledger.ready_groups() + yard.ledger.posed_groups(), 1);
        assert_eq!(yard.ledger.rounds_finished("i"), 1);
        assert!(yard.run(Command::DropOpen).unwrap().is_empty());
    }
}

#[test]
fn epochs_and_weight_versions_never_mix_in_a_group() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    for (uid, version, epoch) in
        [("a", 1, 0), ("b", 2, 0), ("c", 1, 1), ("d", 1, 0), ("e", 2, 0), ("f", 1, 1)]
    {
        let reward = f64::from(u8::from(uid > "c"));
        yard.run(admission(uid, "i", reward, Some(version), Some(epoch))).unwrap();
    }
    let (_, groups) = yard.lease(Want::Groups(3)).unwrap();
    let members: Vec<BTreeSet<String>> =
        groups.iter().map(|group| yard.uids(std::slice::from_ref(group))).collect();
    let set = |pair: [&str; 2]| pair.map(str::to_owned).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(members, [set(["a", "d"]), set(["b", "e"]), set(["c", "f"])]);
}

#[test]
fn a_wider_version_spread_can_be_allowed() {
    let mut yard = Yard::new(json!({"group_size": 3, "version_spread_max": 1}));
    for (uid, version) in [("a", 1), ("b", 2), ("c", 3), ("d", 2)] {
        yard.run(admission(uid, "i", f64::from(u8::from(uid == "a")), Some(version), None)).unwrap();
    }
    let (_, groups) = yard.lease(Want::All).unwrap();
    assert_eq!(yard.uids(&groups), ["a", "b", "d"].map(str::to_owned).into());
    assert_eq!(groups[0].versions, Some((1, 2)));
}

#[test]
fn the_runs_version_stands_in_where_the_writer_gives_none() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.run(Command::SetVersion { version: 4 }).unwrap();
    yard.admit("a", "i", 0.0);
    yard.run(Command::SetVersion { version: 5 }).unwrap();
    yard.admit("b", "i", 1.0);
    assert!(yard.lease(Want::All).is_none());
    assert_eq!(yard.ledger.open_groups(), 2);
}

#[test]
fn finished_but_invalid_groups_are_purged_with_their_reason() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.admit("a", "i", 1.0);
    yard.admit("b", "i", 1.0);
    assert_eq!(yard.dropped(DropReason::NoVariance), 2);
    assert_eq!(yard.ledger.books().held, 0);
    assert_eq!(yard.ledger.meta().unwrap().finished_groups, ["i"]);
}

#[test]
fn timed_out_groups_do_not_skip_the_diversity_check() {
    let mut yard = Yard::new(json!({"group_size": 4, "group_timeout_seconds": 10}));
    for (uid, instance, reward) in
        [("a", "same", 1.0), ("b", "same", 1.0), ("c", "same", 1.0), ("d", "mixed", 1.0), ("e", "mixed", 0.0)]
    {
        yard.admit(uid, instance, reward);
    }
    yard.admit("f", "mixed", 0.0);
    yard.admit("g", "short", 0.0);
    yard.now = Time(1_000 + 9_999);
    assert!(yard.run(Command::Tick).unwrap().is_empty());
    yard.now = Time(1_000 + 10_000);
    yard.run(Command::Tick).unwrap();
    assert_eq!(yard.dropped(DropReason::NoVariance), 3);
    assert_eq!(yard.dropped(DropReason::TooFewInTime), 1);
    let (_, groups) = yard.lease(Want::All).unwrap();
    assert_eq!((&*groups[0].instance, groups[0].rows.len()), ("mixed", 4));
}

#[test]
fn the_timeout_counts_from_the_last_write() {
    let mut yard = Yard::new(json!({"group_size": 3, "group_timeout_seconds": 10}));
    yard.admit("a", "i", 0.0);
    yard.now = Time(9_000);
    yard.admit("b", "i", 1.0);
    yard.now = Time(12_000);
    assert!(yard.run(Command::Tick).unwrap().is_empty());
    assert_eq!(yard.ledger.next_deadline(), Some(Time(19_000)));
}

#[test]
fn an_expired_lease_goes_back_to_its_place_in_the_queue() {
    let mut yard = Yard::new(json!({"group_size": 2, "lease_seconds": 5}));
    yard.fill("a");
    yard.fill("b");
    let (lease, first) = yard.lease(Want::Groups(1)).unwrap();
    yard.now = Time(6_000);
    yard.run(Command::Tick).unwrap();
    let refusal = yard.run(Command::Ack { lease }).unwrap_err();
    assert!(refusal.to_string().contains("expired"), "{refusal}");
    let (_, again) = yard.lease(Want::Groups(1)).unwrap();
    assert_eq!(first, again);
}

#[test]
fn a_returned_read_gives_its_statistics_back() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.fill("a");
    let told = yard.ledger.meta().unwrap();
    let (lease, _) = yard.lease(Want::All).unwrap();
    assert_eq!(yard.ledger.lease_meta(lease).unwrap(), told);
    assert_eq!(yard.ledger.meta().unwrap().total_samples, 0);
    yard.run(Command::Return { lease }).unwrap();
    assert_eq!(yard.ledger.meta().unwrap(), told);
}

#[test]
fn rewind_puts_back_what_was_consumed_after_the_step() {
    let mut yard = Yard::new(json!({"group_size": 2, "keep_commits": 2}));
    let mut taken = Vec::new();
    for (step, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        yard.fill(name);
        let (lease, groups) = yard.lease(Want::All).unwrap();
        yard.run(Command::Ack { lease }).unwrap();
        yard.run(Command::Commit { step: step as u64 + 1, leases: None }).unwrap();
        taken.push(yard.uids(&groups));
    }
    yard.fill("e");
    let (unacked, _) = yard.lease(Want::All).unwrap();

    let refusal = yard.run(Command::Rewind { step: 1 }).unwrap_err();
    assert!(refusal.to_string().contains("keep_commits"), "{refusal}");
    yard.run(Command::Rewind { step: 2 }).unwrap();
    assert_eq!(yard.ledger.books().trained, 4);
    assert!(yard.run(Command::Ack { lease: unacked }).is_err());
    let (_, groups) = yard.lease(Want::Groups(2)).unwrap();
    assert_eq!(yard.uids(&groups), taken[2].union(&taken[3]).cloned().collect());
}

#[test]
fn a_commit_goes_forward_and_may_be_repeated() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.fill("a");
    let (lease, _) = yard.lease(Want::All).unwrap();
    let early = yard.run(Command::Commit { step: 5, leases: Some(vec![lease]) }).unwrap_err();
    assert_eq!(early.code(), "lease_not_acked");
    yard.run(Command::Ack { lease }).unwrap();
    assert_eq!(yard.run(Command::Commit { step: 5, leases: None }).unwrap().len(), 1);
    assert!(yard.run(Command::Commit { step: 5, leases: None }).unwrap().is_empty());
    assert_eq!(yard.run(Command::Commit { step: 4, leases: None }).unwrap_err().code(), "step_not_after");
    assert!(yard.run(Command::Ack { lease }).unwrap().is_empty());
    let unknown = yard.run(Command::Ack { lease: LeaseNo(99) }).unwrap_err();
    assert_eq!(unknown.code(), "lease_unknown");
}

#[test]
fn filtered_items_are_dropped_when_their_group_is_read() {
    let mut yard = Yard::new(json!({"group_size": 4, "min_valid_item_size_ratio": 0.5}));
    for (uid, reward) in [("a", 1.0), ("b", -1.0), ("c", 0.0), ("d", 0.0)] {
        yard.admit(uid, "i", reward);
    }
    let (lease, groups) = yard.lease(Want::All).unwrap();
    assert_eq!(groups[0].rows.len(), 4);
    assert_eq!(yard.dropped(DropReason::Filtered), 1);
    yard.run(Command::Return { lease }).unwrap();
    let (_, again) = yard.lease(Want::All).unwrap();
    assert_eq!(groups, again);
}

#[test]
fn a_group_with_too_few_valid_items_is_dropped_and_the_rest_stay() {
    let mut yard = Yard::new(json!({"group_size": 4}));
    yard.fill("good");
    for (uid, reward) in [("a", 1.0), ("b", -1.0), ("c", -1.0), ("d", 0.0)] {
        yard.admit(uid, "bad", reward);
    }
    assert_eq!(yard.dropped(DropReason::TooFewValid), 4);
    assert_eq!(yard.ledger.ready_groups(), 1);
}

#[test]
fn a_full_run_refuses_and_says_what_it_keeps() {
    let mut yard = Yard::new(json!({"group_size": 2, "max_buffer_size": 2}));
    yard.fill("a");
    let refusal = yard.run(admission("z", "b", 0.0, None, None)).unwrap_err();
    assert!(matches!(refusal, Refusal::Full { items: 2, items_max: 2, .. }), "{refusal}");
    let (lease, _) = yard.lease(Want::All).unwrap();
    yard.run(Command::Ack { lease }).unwrap();
    assert!(yard.run(admission("z", "b", 0.0, None, None)).unwrap_err().to_string().contains("rewind"));
    for step in 1..=3 {
        yard.run(Command::Commit { step, leases: None }).unwrap();
    }
    yard.admit("z", "b", 0.0);
}

#[test]
fn a_finished_group_still_takes_rollouts_until_it_is_read() {
    let mut yard = Yard::new(json!({"group_size": 4, "min_valid_group_size_ratio": 0.75}));
    for (uid, reward) in [("a", 1.0), ("b", 0.0), ("c", 0.0)] {
        yard.admit(uid, "i", reward);
    }
    assert_eq!(yard.ledger.ready_groups(), 1);
    yard.admit("d", "i", 0.0);
    yard.admit("e", "i", 0.0);
    let (_, groups) = yard.lease(Want::All).unwrap();
    assert_eq!(yard.uids(&groups).len(), 4);
    assert_eq!(yard.ledger.books().held, 1);
}

#[test]
fn closing_a_group_judges_it_at_once() {
    let mut yard = Yard::new(json!({"group_size": 4}));
    yard.admit("a", "short", 1.0);
    yard.run(Command::CloseGroup { instance: "short".into() }).unwrap();
    assert_eq!(yard.dropped(DropReason::TooFewInTime), 1);
    assert!(yard.run(Command::CloseGroup { instance: "short".into() }).is_err());
}

#[test]
fn a_damaged_rollout_leaves_its_lease_with_a_reason() {
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.fill("a");
    let (lease, groups) = yard.lease(Want::All).unwrap();
    let uid = yard.uids(&groups).first().unwrap().clone();
    assert_eq!(yard.run(Command::Drop { uid: uid.clone() }).unwrap_err().code(), "rollout_busy");
    yard.run(Command::Discard { uid: Uid::of(&uid) }).unwrap();
    assert_eq!(yard.dropped(DropReason::Corrupt), 1);
    yard.run(Command::Ack { lease }).unwrap();
    assert_eq!(yard.ledger.books().trained, 1);
}

#[test]
fn lookups_cost_what_is_ready_not_what_is_held() {
    // Counted, not timed: with 20,000 held and one ready group, a pick visits one group.
    let mut yard = Yard::new(json!({"group_size": 2}));
    yard.checked = false;
    for n in 0..20_000 {
        yard.admit(&format!("w{n}"), &format!("waiting{n}"), 0.0);
    }
    yard.fill("ready");
    let mut visited = 0;
    assert!(yard.ledger.pick(Want::All, |_, _, _| visited += 1));
    assert_eq!(visited, 1);
}
