//! Groups that are judged and shaped outside the ledger.

use super::tests::Yard;
use super::*;
use crate::pipeline::{DropReason, Stage};
use serde_json::json;

fn yard(more: serde_json::Value) -> Yard {
    let mut config =
        json!({"group_size": 4, "validate": "hook", "pad": "hook", "min_valid_item_size_ratio": 0.5});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Yard::new(config)
}

fn row(member: u32, reward: f64) -> ShapedRow {
    ShapedRow { member, reward, copy: None, changes: None }
}

fn shape(rows: &[(u32, f64)]) -> Ruling {
    Ruling::Use(Shape { rows: rows.iter().map(|&(member, reward)| row(member, reward)).collect() })
}

impl Yard {
    fn posed(&self) -> Vec<PosedGroup> {
        self.ledger.posed(usize::MAX, |_, _| false)
    }

    /// Rules on the first group that is posed.
    fn judge(&mut self, ruling: Ruling) -> Vec<Event> {
        let posed = self.posed().remove(0);
        self.run(Command::Judge { group: posed.group, seen: posed.seen, ruling }).unwrap()
    }
}

#[test]
fn a_group_is_posed_only_when_it_could_be_ready() {
    for (ratio, admitted, stage) in
        [(1.0, 3, None), (1.0, 4, Some(Stage::Full)), (0.5, 1, None), (0.5, 2, Some(Stage::Growing))]
    {
        let mut yard = yard(json!({"min_valid_group_size_ratio": ratio}));
        for n in 0..admitted {
            yard.admit(&n.to_string(), "i", 1.0);
        }
        let posed: Vec<Stage> = yard.posed().iter().map(|posed| posed.stage).collect();
        assert_eq!(posed, Vec::from_iter(stage), "{admitted} of 4 at {ratio}");
        assert_eq!(yard.ledger.ready_groups(), 0);
        assert!(yard.lease(Want::All).is_none());
    }
}

#[test]
fn our_own_rule_spares_the_hooks_a_group_that_can_never_be_valid() {
    let mut yard = yard(json!({"validate": "varied"}));
    for n in 0..4 {
        yard.admit(&n.to_string(), "i", 1.0);
    }
    assert_eq!((yard.posed().len(), yard.dropped(DropReason::NoVariance)), (0, 4));
}

#[test]
fn a_shaped_group_is_read_as_the_hooks_left_it() {
    let mut yard = yard(json!({}));
    yard.fill("i");
    // The second was filtered out and the first fills its place; no reward is what came in.
    yard.judge(shape(&[(0, 7.5), (2, -2.0), (3, 3.0), (0, 7.5)]));
    let (lease, groups) = yard.lease(Want::Rows(4)).unwrap();
    let rows: Vec<(usize, f64)> = groups[0].rows.iter().map(|row| (row.row.member, row.row.reward)).collect();
    assert_eq!(rows, [(0, 7.5), (1, -2.0), (2, 3.0), (0, 7.5)]);
    assert_eq!(yard.dropped(DropReason::Filtered), 1);
    let same = |yard: &mut Yard| {
        let (lease, again) = yard.lease(Want::All).unwrap();
        assert_eq!(again, groups);
        lease
    };
    // Coming back does not ask the hooks again.
    yard.run(Command::Return { lease }).unwrap();
    let lease = same(&mut yard);
    yard.run(Command::Ack { lease }).unwrap();
    yard.run(Command::RewindToStart).unwrap();
    same(&mut yard);
    yard.check_log();
}

#[test]
fn a_ruling_on_what_has_changed_since_is_void() {
    let mut yard = yard(json!({"min_valid_group_size_ratio": 0.5}));
    yard.admit("a", "i", 0.0);
    yard.admit("b", "i", 1.0);
    let early = yard.posed().remove(0);
    yard.admit("c", "i", 1.0);
    let ruling = shape(&[(0, 0.0), (1, 1.0)]);
    let void =
        yard.run(Command::Judge { group: early.group, seen: early.seen, ruling: ruling.clone() }).unwrap();
    assert_eq!((void, yard.posed().len()), (vec![], 1));
    // One leaves and one comes: as many as before, but not the same.
    yard.run(Command::Drop { uid: "c".into() }).unwrap();
    yard.run(Command::Drop { uid: "b".into() }).unwrap();
    yard.admit("d", "i", 1.0);
    assert_eq!(yard.run(Command::Judge { group: early.group, seen: early.seen, ruling }).unwrap(), []);
    yard.judge(shape(&[(0, 0.0), (1, 1.0)]));
    assert_eq!(yard.ledger.ready_groups(), 1);
    yard.check_log();
}

#[test]
fn a_group_that_grows_after_it_was_shaped_is_posed_again() {
    let mut yard = yard(json!({"min_valid_group_size_ratio": 0.5}));
    yard.admit("a", "i", 0.0);
    yard.admit("b", "i", 1.0);
    yard.judge(shape(&[(0, 0.0), (1, 1.0)]));
    assert_eq!(yard.ledger.ready_groups(), 1);
    yard.admit("c", "i", 1.0);
    assert_eq!((yard.ledger.ready_groups(), yard.posed().len()), (0, 1));
    yard.judge(Ruling::Waiting);
    yard.admit("d", "i", 1.0);
    assert_eq!(yard.posed()[0].stage, Stage::Full);
    yard.check_log();
}

#[test]
fn hooks_that_want_to_wait_do_so_until_the_group_can_grow_no_more() {
    let mut yard = yard(json!({"min_valid_group_size_ratio": 0.5, "group_timeout_seconds": 10}));
    yard.admit("a", "i", 0.0);
    yard.admit("b", "i", 1.0);
    yard.admit("c", "i", 1.0);
    yard.judge(Ruling::Waiting);
    assert_eq!((yard.posed().len(), yard.ledger.open_groups()), (0, 1));
    yard.now = Time(yard.now.0 + 10_000);
    yard.run(Command::Tick).unwrap();
    assert_eq!((yard.posed()[0].stage, yard.posed()[0].min_size), (Stage::TimedOut, 3));
    yard.judge(Ruling::Waiting);
    assert_eq!(yard.dropped(DropReason::HookRejected), 3);
    yard.check_log();
}

#[test]
fn a_failing_hook_costs_its_group_and_says_why() {
    let mut yard = yard(json!({}));
    yard.fill("bad");
    yard.fill("good");
    let why = "pad_group_data raised KeyError: 'x'".to_owned();
    let events = yard.judge(Ruling::Drop { reason: DropReason::HookFailed, why: Some(why.clone()) });
    assert!(matches!(&events[..], [Event::GroupDropped { why: Some(told), .. }] if *told == why));
    assert_eq!((yard.dropped(DropReason::HookFailed), yard.posed().len()), (4, 1));
    // A row that shows nobody is the hooks' fault as well.
    yard.judge(shape(&[(4, 0.0)]));
    assert_eq!((yard.dropped(DropReason::HookFailed), yard.posed().len()), (8, 0));
    yard.check_log();
}

#[test]
fn turning_hooks_on_or_off_leaves_no_group_behind() {
    let mut yard = yard(json!({"validate": "varied", "pad": "repeat"}));
    yard.fill("ready");
    yard.fill("leased");
    let (lease, _) = yard.lease(Want::Groups(1)).unwrap();
    let turn = |yard: &mut Yard, pad: &str| {
        let changes = json!({"pad": pad}).as_object().unwrap().clone();
        yard.run(Command::Configure { changes, start: None }).unwrap();
    };
    turn(&mut yard, "hook");
    assert_eq!((yard.ledger.ready_groups(), yard.posed().len()), (0, 1));
    yard.run(Command::Return { lease }).unwrap();
    assert_eq!((yard.ledger.ready_groups(), yard.posed().len()), (0, 2));
    turn(&mut yard, "repeat");
    assert_eq!((yard.posed().len(), yard.ledger.open_groups()), (0, 2));
    yard.now = Time(yard.now.0 + 400_000);
    yard.run(Command::Tick).unwrap();
    assert_eq!(yard.ledger.ready_groups(), 2);
    yard.check_log();
}

#[test]
fn losing_a_member_of_a_shaped_group_asks_the_hooks_again() {
    let mut yard = yard(json!({}));
    yard.fill("i");
    yard.judge(shape(&[(0, 0.0), (1, 1.0), (2, 0.0), (3, 1.0)]));
    let uid = yard.uid_at[&yard.ledger.groups().next().unwrap().1.rollouts[0].place].clone();
    yard.run(Command::Drop { uid }).unwrap();
    assert_eq!((yard.ledger.ready_groups(), yard.posed()[0].rollouts.len()), (0, 3));
    yard.check_log();
}

#[test]
fn the_last_state_of_a_generator_outlives_a_restart() {
    let mut yard = yard(json!({}));
    assert_eq!(yard.ledger.generator(), None);
    let note = |state, told: &str| Command::Note { state, told: told.to_owned() };
    yard.run(note(Some(GeneratorState::Running), "started")).unwrap();
    yard.run(note(None, "a line for the log")).unwrap();
    let restored = yard.check_log();
    let generator = restored.generator().unwrap();
    assert_eq!((generator.state, &*generator.told), (GeneratorState::Running, "started"));
}

#[test]
fn what_is_gone_for_good_stands_in_the_way_of_the_start() {
    let mut yard = Yard::new(json!({"group_size": 2, "keep_commits": 1}));
    for step in 0..2 {
        yard.fill(&format!("i{step}"));
        let (lease, _) = yard.lease(Want::All).unwrap();
        yard.run(Command::Ack { lease }).unwrap();
        yard.run(Command::Commit { step, leases: None }).unwrap();
        if step == 0 {
            yard.run(Command::RewindToStart).unwrap();
            assert_eq!((yard.ledger.books().trained, yard.ledger.commits()), (0, [].as_slice()));
            let (lease, _) = yard.lease(Want::All).unwrap();
            yard.run(Command::Ack { lease }).unwrap();
            yard.run(Command::Commit { step, leases: None }).unwrap();
        }
    }
    let refusal = yard.run(Command::RewindToStart).unwrap_err();
    assert_eq!(refusal.code(), "too_far_back");
    assert!(refusal.to_string().contains("step -1"), "{refusal}");
}
