//! Three nodes on three NATS servers keep their promises while either are killed, paused, cut off and slowed.
//!
//! In the manner of Jepsen: clients write and read on all nodes and note what they are told, something is broken and
//! healed, and a checker says what in their notes cannot be. The checker is in `tests/nats`, with a history for each
//! kind of violation that it finds.
//!
//! `ROLLYARD_FAULT_ROUNDS=20 ROLLYARD_FAULT_SEED=7 cargo test -p rollyard --test it cluster_faults` runs more of it.

#![allow(clippy::print_stdout, reason = "a scenario that fails is understood by what it saw")]

use rollyard_test_nats::check::{Clocks, Violation};
use rollyard_test_nats::{Clock, Cluster, Dice, GROUP_SIZE, Links, Node, Report, Workload};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::crash::Told;

const RUN: &str = "default";

/// How long writes may stop when an owner is lost: 1.5 s until it is missed, and what two busy cores add. What it
/// takes on an idle machine is measured by the bench.
const OWNER_AGAIN: Duration = Duration::from_secs(20);
/// NATS servers that lost their leader wait four to nine seconds before they choose another.
const LEADER_AGAIN: Duration = Duration::from_secs(40);

/// Nodes and servers, with links between them that can be broken.
struct Yard {
    // Ended in this order.
    nodes: Vec<Node>,
    links: Vec<Links>,
    nats: Cluster,
}

impl Yard {
    fn start(clocks: [Option<Clock>; 3]) -> Self {
        let nats = Cluster::start(3);
        let links: Vec<Links> = (0..3).map(|_| nats.links()).collect();
        let size = GROUP_SIZE.to_string();
        let nodes = clocks.into_iter().zip(&links).enumerate().map(|(no, (clock, links))| {
            let (name, urls) = (format!("n{}", no + 1), links.urls());
            let flags = ["--log", &urls, "--log-replicas", "3", "--node", &name];
            let shared = ["--group-size", &size, "--log-level", "info"];
            Node::start_at(program(), &name, &[&flags[..], &shared].concat(), clock)
        });
        let nodes = nodes.collect();
        Self { nodes, links, nats }
    }

    /// The stream of the run.
    fn stream(&self) -> String {
        let streams = self.nats.streams();
        let found = streams.iter().find(|name| name.starts_with("ry_") && name.contains(RUN));
        found.unwrap_or_else(|| panic!("none of {streams:?} is that of the run")).clone()
    }

    /// The server that leads the stream.
    fn leader(&self) -> usize {
        let (stream, deadline) = (self.stream(), Instant::now() + LEADER_AGAIN);
        loop {
            if let Some(leader) = self.nats.stream_leader(&stream) {
                return leader;
            }
            assert!(Instant::now() < deadline, "{stream} has no leader");
        }
    }
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rollyard"))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Breaks something under load, as often as it is asked, and looks at what the clients were told.
fn survives(fault: impl Fn(&mut Yard, &Workload, &mut Dice)) {
    survives_with([None, None, None], Clocks::Agree, fault);
}

fn survives_with(
    clocks: [Option<Clock>; 3],
    agreement: Clocks,
    fault: impl Fn(&mut Yard, &Workload, &mut Dice),
) {
    let seed = number("ROLLYARD_FAULT_SEED").unwrap_or(20_260_311);
    let rounds = number("ROLLYARD_FAULT_ROUNDS").unwrap_or(1);
    // Whoever reads a failure wants to see it again.
    let told = Told(format!("seed {seed}"));
    let mut dice = Dice(seed);
    let mut yard = Yard::start(clocks);
    let workload = Workload::start(&yard.nodes, RUN, seed);
    for _ in 0..rounds {
        workload.await_writes(20 + dice.roll(40) as usize, OWNER_AGAIN);
        fault(&mut yard, &workload, &mut dice);
        workload.await_writes(20, OWNER_AGAIN);
    }
    let report = workload.finish(agreement);
    is_sound(&report, &yard.nodes);
    drop(told);
}

#[track_caller]
fn is_sound(report: &Report, nodes: &[Node]) {
    println!("{}", report.summary());
    if !report.violations.is_empty() {
        for node in nodes {
            println!("--- {}\n{}", node.name(), node.log());
        }
    }
    assert_eq!(report.violations, [], "{} violations", report.violations.len());
}

#[test]
fn owner_that_is_killed_is_replaced() {
    survives(|yard, workload, _| {
        let owner = workload.await_owner(&yard.nodes);
        workload.history().during("owner killed", || {
            yard.nodes[owner].kill();
            let took = workload.await_writes(1, OWNER_AGAIN);
            println!("writes flow again {took:?} after kill -9 of the owner");
            workload.await_writes(20, OWNER_AGAIN);
            yard.nodes[owner].restart();
        });
    });
}

/// A process that is held for longer than the others wait for it does not know that it is no longer the owner.
#[test]
fn owner_that_is_paused_is_fenced_when_it_goes_on() {
    survives(|yard, workload, _| {
        let owner = workload.await_owner(&yard.nodes);
        workload.history().during("owner paused", || {
            let until = Instant::now() + Duration::from_secs(5);
            yard.nodes[owner].pause();
            workload.await_writes(20, OWNER_AGAIN);
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            yard.nodes[owner].resume();
        });
    });
}

#[test]
fn owner_that_is_cut_off_from_nats_is_replaced() {
    survives(|yard, workload, dice| {
        let is_frozen = dice.roll(2) == 0;
        for is_frozen in [is_frozen, !is_frozen] {
            let owner = workload.await_owner(&yard.nodes);
            let (name, links) = (if is_frozen { "frozen" } else { "cut" }, &yard.links[owner]);
            workload.history().during(&format!("owner {name} off from NATS"), || {
                if is_frozen {
                    links.freeze()
                } else {
                    links.cut()
                }
                workload.await_writes(20, OWNER_AGAIN);
                links.heal();
            });
        }
    });
}

#[test]
fn nats_server_that_is_killed_is_done_without() {
    survives(|yard, workload, _| {
        let leader = yard.leader();
        // The leader of the stream, and then one that follows.
        for no in [leader, (leader + 1) % 3] {
            workload.history().during("NATS server killed", || {
                yard.nats.servers_mut()[no].kill();
                workload.await_writes(20, LEADER_AGAIN);
                yard.nats.servers_mut()[no].restart();
                yard.nats.await_healthy().unwrap();
            });
        }
    });
}

#[test]
fn nats_server_that_is_cut_off_from_the_others_is_done_without() {
    survives(|yard, workload, _| {
        let leader = yard.leader();
        workload.history().during("NATS server cut off", || {
            yard.nats.freeze_out(leader);
            workload.await_writes(20, LEADER_AGAIN);
            yard.nats.heal();
            yard.nats.await_healthy().unwrap();
        });
    });
}

/// The owner and the server that leads its stream, alone together: for some seconds each of them thinks that nothing
/// has changed, while the others go on without them.
#[test]
fn owner_on_the_side_of_the_minority_is_replaced() {
    survives(|yard, workload, _| {
        let (owner, leader) = (workload.await_owner(&yard.nodes), yard.leader());
        workload.history().during("owner and NATS server cut off together", || {
            for (no, links) in yard.links.iter().enumerate() {
                for (server, proxy) in links.proxies().iter().enumerate() {
                    if (server == leader) != (no == owner) {
                        proxy.cut();
                    }
                }
            }
            workload.await_writes(20, OWNER_AGAIN);
            yard.nats.freeze_out(leader);
            workload.await_writes(60, LEADER_AGAIN);
            yard.nats.heal();
            yard.links.iter().for_each(Links::heal);
            yard.nats.await_healthy().unwrap();
        });
    });
}

/// Without a majority nothing can be promised, and nothing is.
#[test]
fn nothing_is_answered_without_a_majority_and_nothing_lost() {
    survives(|yard, workload, _| {
        let leader = yard.leader();
        let gone = [leader, (leader + 1) % 3];
        workload.history().during("two of three NATS servers killed", || {
            for no in gone {
                yard.nats.servers_mut()[no].kill();
            }
            let from = workload.history().now();
            std::thread::sleep(Duration::from_secs(3));
            assert_eq!(workload.history().writes_since(from), 0, "a write was answered by a minority");
            for no in gone {
                yard.nats.servers_mut()[no].restart();
            }
            yard.nats.await_healthy().unwrap();
            workload.await_writes(20, LEADER_AGAIN);
        });
    });
}

#[test]
fn slow_links_only_slow() {
    survives(|yard, workload, dice| {
        let delay = Duration::from_millis(10 + dice.roll(40));
        workload.history().during("slow links", || {
            yard.nats.slow(delay, 4 << 20);
            yard.links.iter().for_each(|links| links.slow(delay, 1 << 20));
            workload.await_writes(100, LEADER_AGAIN);
            yard.links.iter().for_each(Links::heal);
            yard.nats.heal();
        });
    });
}

/// Nodes an hour ahead and an hour behind, whose clocks are then set otherwise.
#[cfg(target_os = "linux")]
#[test]
fn clocks_that_jump_end_leases_but_lose_and_double_nothing() {
    let clocks = [Some(Clock::off_by(3600)), Some(Clock::off_by(-3600)), None];
    survives_with(clocks, Clocks::Differ, |yard, workload, dice| {
        workload.history().during("clocks jump", || {
            // They look at their clocks once a second.
            let until = Instant::now() + Duration::from_millis(1500);
            for node in yard.nodes.iter().filter_map(Node::clock) {
                node.set(dice.roll(20_000) as i64 - 10_000);
            }
            workload.await_writes(60, OWNER_AGAIN);
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        });
        let owner = workload.await_owner(&yard.nodes);
        workload.history().during("owner killed", || {
            yard.nodes[owner].kill();
            workload.await_writes(20, OWNER_AGAIN);
            yard.nodes[owner].restart();
        });
    });
}

#[test]
fn everything_that_was_killed_at_once_comes_back() {
    survives(|yard, workload, _| {
        workload.history().during("everything killed", || {
            yard.nodes.iter_mut().for_each(Node::kill);
            for server in yard.nats.servers_mut() {
                server.kill();
            }
            for server in yard.nats.servers_mut() {
                server.restart();
            }
            yard.nats.await_healthy().unwrap();
            yard.nodes.iter_mut().for_each(Node::restart);
            workload.await_writes(20, LEADER_AGAIN);
        });
    });
}

/// The same clients and the same checker, on one node with the embedded log.
#[test]
fn embedded_node_keeps_its_promises_when_it_is_killed() {
    let seed = number("ROLLYARD_FAULT_SEED").unwrap_or(20_260_311);
    let mut nodes = vec![embedded()];
    let workload = Workload::start(&nodes, RUN, seed);
    for _ in 0..3 {
        workload.await_writes(40, OWNER_AGAIN);
        workload.history().during("killed", || {
            nodes[0].restart();
            workload.await_writes(1, OWNER_AGAIN);
        });
    }
    is_sound(&workload.finish(Clocks::Agree), &nodes);
}

/// A checker that finds nothing here would find nothing anywhere.
#[test]
fn yard_that_went_back_to_an_old_copy_is_found_out() {
    let mut nodes = vec![embedded()];
    let workload = Workload::start(&nodes, RUN, 7);
    workload.await_writes(40, OWNER_AGAIN);
    nodes[0].kill();
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&nodes[0].data(), copy.path());
    nodes[0].restart();
    workload.await_writes(100, OWNER_AGAIN);
    nodes[0].kill();
    std::fs::remove_dir_all(nodes[0].data()).unwrap();
    copy_folder(copy.path(), &nodes[0].data());
    nodes[0].restart();
    workload.await_writes(40, OWNER_AGAIN);
    let found = workload.finish(Clocks::Agree).violations;
    let has = |is: fn(&Violation) -> bool| assert!(found.iter().any(is), "{found:?}");
    has(|violation| matches!(violation, Violation::Lost { .. }));
    has(|violation| matches!(violation, Violation::Stale { .. }));
    has(|violation| matches!(violation, Violation::GrantedTwice { .. }));
    has(|violation| matches!(violation, Violation::AckLost { .. }));
}

fn embedded() -> Node {
    let size = GROUP_SIZE.to_string();
    Node::start(program(), "n1", &["--group-size", &size, "--log-level", "warn"])
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&source, &target);
        } else {
            std::fs::copy(source, target).unwrap();
        }
    }
}
