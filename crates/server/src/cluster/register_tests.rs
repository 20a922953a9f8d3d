//! Nodes as their registers see each other, in virtual time: no sockets, no clocks, every order of events that matters.

use super::*;
use std::collections::BTreeSet;

/// What the logs of the runs know: who claimed last, and how often.
#[derive(Default)]
struct Logs {
    claims: BTreeMap<String, (u64, String)>,
}

struct Node {
    register: Register,
    /// It hears nothing and says nothing until then: stopped, or cut off.
    silent_until: Option<Instant>,
    is_dead: bool,
    /// What it believes it has, and is being opened until then.
    opening: BTreeMap<String, Instant>,
    open: BTreeMap<String, u64>,
}

/// Nodes, and a channel that brings every heartbeat to everybody.
struct World {
    start: Instant,
    now: Instant,
    timing: Timing,
    logs: Logs,
    nodes: Vec<Node>,
    opening_takes: Duration,
    takeovers: usize,
}

const TICK: Duration = Duration::from_millis(100);

impl World {
    fn new(nodes: &[&str], runs: usize) -> Self {
        let start = Instant::now();
        let mut world = Self {
            start,
            now: start,
            timing: Timing::default(),
            logs: Logs::default(),
            nodes: Vec::new(),
            opening_takes: Duration::from_millis(300),
            takeovers: 0,
        };
        nodes.iter().for_each(|node| world.join(node, runs));
        world
    }

    fn join(&mut self, name: &str, runs: usize) {
        let incarnation = self.nodes.len() as u64 + 1;
        let me = Me { node: name.to_owned(), url: format!("http://{name}"), incarnation, started_ms: 0 };
        let mut register = Register::new(me, self.timing);
        register.joining = false;
        (0..runs).for_each(|run| register.know(&format!("run-{run}")));
        self.nodes.push(Node {
            register,
            silent_until: None,
            is_dead: false,
            opening: BTreeMap::new(),
            open: BTreeMap::new(),
        });
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.register.me.node == name).unwrap()
    }

    fn run_for(&mut self, secs: f64) {
        let until = self.now + Duration::from_secs_f64(secs);
        while self.now < until {
            self.tick();
        }
    }

    fn tick(&mut self) {
        self.now += TICK;
        let now = self.now;
        let speaks = |node: &Node| !node.is_dead && node.silent_until.is_none_or(|until| now >= until);
        if (now - self.start).as_millis().is_multiple_of(300) {
            let beats: Vec<Beat> =
                self.nodes.iter().filter(|node| speaks(node)).map(|node| node.register.beat(now)).collect();
            for node in self.nodes.iter_mut().filter(|node| speaks(node)) {
                beats.iter().for_each(|beat| node.register.heard(beat.clone(), now));
            }
        }
        for index in 0..self.nodes.len() {
            if speaks(&self.nodes[index]) {
                self.act(index);
            }
        }
    }

    fn act(&mut self, index: usize) {
        let (now, opening_takes) = (self.now, self.opening_takes);
        let node = &mut self.nodes[index];
        let me = node.register.me.node.clone();
        // Whoever was fenced finds out when it writes, which is all the time.
        let open = std::mem::take(&mut node.open);
        for (run, epoch) in open {
            if self.logs.claims.get(&run).is_some_and(|(last, _)| *last > epoch) {
                node.register.lost(&run, now);
            } else {
                node.open.insert(run, epoch);
            }
        }
        let ready: Vec<String> =
            node.opening.iter().filter(|(_, at)| now >= **at).map(|(run, _)| run.clone()).collect();
        for run in ready {
            node.opening.remove(&run);
            let (epoch, owner) = self.logs.claims[&run].clone();
            if owner == me {
                node.register.opened(&run, epoch);
                node.open.insert(run, epoch);
            } else {
                node.register.lost(&run, now);
            }
        }
        for (run, duty) in node.register.duties(now) {
            match duty {
                Duty::Claim => {
                    let last = self.logs.claims.get(&run).cloned().unwrap_or_default();
                    self.takeovers += usize::from(last.0 > 0);
                    self.logs.claims.insert(run.clone(), (last.0 + 1, me.clone()));
                    node.opening.insert(run, now + opening_takes);
                }
                Duty::HandOver => {
                    node.open.remove(&run);
                    node.register.closed(&run);
                }
                Duty::Nothing => {}
            }
        }
    }

    /// Every run has one owner that is alive, and everybody knows it.
    fn check_settled(&mut self, runs: usize) {
        let now = self.now;
        let mut owned = BTreeSet::new();
        let living = |node: &&Node| !node.is_dead;
        for node in self.nodes.iter().filter(living) {
            for (run, epoch) in &node.open {
                assert_eq!(self.logs.claims[run], (*epoch, node.register.me.node.clone()), "{run}");
                assert!(owned.insert(run.clone()), "{run} has two owners");
            }
        }
        assert_eq!(owned.len(), runs);
        for node in self.nodes.iter().filter(living) {
            for run in &owned {
                let (claim, owner) = &self.logs.claims[run];
                let expected = if *owner == node.register.me.node {
                    Owner::Here
                } else {
                    Owner::There { node: owner.clone(), url: format!("http://{owner}"), claim: Some(*claim) }
                };
                assert_eq!(node.register.owner(run, now), Some(expected), "{run}");
            }
        }
    }
}

#[test]
fn three_nodes_share_the_runs_without_taking_any_from_each_other() {
    let mut world = World::new(&["a", "b", "c"], 60);
    world.run_for(20.0);
    world.check_settled(60);
    assert_eq!(world.takeovers, 0);
    assert!(world.nodes.iter().all(|node| node.open.len() >= 10), "spread");
}

#[test]
fn the_runs_of_a_dead_node_are_claimed_within_two_seconds_and_only_once() {
    let mut world = World::new(&["a", "b", "c"], 60);
    world.run_for(5.0);
    let orphans = world.node("b").open.len();
    world.node("b").is_dead = true;
    world.run_for(2.0);
    assert_eq!(world.takeovers, orphans);
    world.run_for(1.0);
    world.check_settled(60);
    assert_eq!(world.takeovers, orphans);
}

#[test]
fn a_recovery_that_takes_long_is_not_disturbed() {
    let mut world = World::new(&["a", "b", "c"], 12);
    world.run_for(5.0);
    let orphans = world.node("b").open.len();
    world.node("b").is_dead = true;
    world.opening_takes = Duration::from_secs(20);
    world.run_for(30.0);
    world.check_settled(12);
    assert_eq!(world.takeovers, orphans);
}

#[test]
fn a_node_that_was_paused_does_not_take_its_runs_back_by_force() {
    let mut world = World::new(&["a", "b", "c"], 60);
    world.run_for(5.0);
    let had = world.node("b").open.len();
    // Its old runs are still being opened by the others when it wakes up.
    world.opening_takes = Duration::from_secs(2);
    let until = world.now + Duration::from_millis(2500);
    world.node("b").silent_until = Some(until);
    world.run_for(8.0);
    world.check_settled(60);
    assert_eq!(world.takeovers, had, "each was taken once");
    assert_eq!(world.node("b").open.len(), 0);
    // In time they are handed back in good order.
    world.opening_takes = Duration::from_millis(300);
    world.run_for(20.0);
    world.check_settled(60);
    assert_eq!(world.node("b").open.len(), had);
}

#[test]
fn a_newcomer_gets_its_share_after_a_while() {
    let mut world = World::new(&["a", "b"], 60);
    world.run_for(5.0);
    world.join("c", 0);
    world.run_for(9.0);
    assert_eq!(world.node("c").open.len(), 0);
    world.run_for(8.0);
    world.check_settled(60);
    assert!(world.node("c").open.len() >= 10);
}

#[test]
fn nobody_claims_anything_while_nobody_can_be_heard() {
    let mut world = World::new(&["a", "b", "c"], 30);
    world.run_for(5.0);
    // The servers that carry the heartbeats are gone for a minute.
    let until = world.now + Duration::from_secs(60);
    world.nodes.iter_mut().for_each(|node| node.silent_until = Some(until));
    world.run_for(70.0);
    world.check_settled(30);
    assert_eq!(world.takeovers, 0);
}

#[test]
fn a_node_that_cannot_open_a_run_leaves_it_to_others() {
    let mut world = World::new(&["a", "b"], 1);
    let now = world.now;
    let owner =
        placement::preferred("run-0", &["a", "b"].map(|node| Candidate { node, alive_for: Duration::ZERO }));
    let owner = owner.unwrap().node.to_owned();
    // It tries, fails, and says so.
    world.node(&owner).register.begin("run-0");
    world.node(&owner).register.failed("run-0", now + Duration::from_secs(1));
    world.run_for(1.0);
    let now = world.now;
    assert_eq!(world.node(&owner).register.beat(now).unable, ["run-0"]);
    world.run_for(4.0);
    world.check_settled(1);
}

#[test]
fn what_others_say_of_runs_that_cannot_be_is_not_believed() {
    let mut world = World::new(&["a"], 1);
    let held = HeldRun { run: "../etc".to_owned(), epoch: 1, busy: false };
    let beat =
        Beat { node: "x".to_owned(), runs: vec![held], orphans: vec!["".to_owned()], ..Beat::default() };
    let now = world.now;
    world.node("a").register.heard(beat, now);
    assert_eq!(world.node("a").register.placed(now).len(), 1);
}
