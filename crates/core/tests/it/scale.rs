//! The simulation of docs/concepts/scale.md with one or two runs of the thirty-two, so that it cannot rot.

#[path = "../../examples/scale/simulation/mod.rs"]
mod simulation;

use simulation::fleet::{AGENTS, ANSWERS, Fleet, Mishaps, SHAPES, Shape};
use simulation::table::markdown;
use simulation::{Outcome, Plan, simulate};
use std::time::Duration;

/// Runs that each have their share of 10,000 GPUs and 100,000 agents, with readers and trainers of the worst kind.
fn fleet(shape: Shape, runs: u32) -> Fleet {
    let mishaps = Mishaps { reader_lost_share: 0.1, step_lost_share: 0.3, ..Mishaps::MANY };
    Fleet { gpus: 312 * runs, agents: 3_125 * runs, runs, shape, mishaps }
}

#[expect(clippy::print_stdout, reason = "shown when a test fails")]
fn run(fleet: Fleet, seconds: u64, seed: u64) -> Outcome {
    let mut told = 0;
    let plan = Plan { fleet, seconds, seed };
    let outcome = simulate(
        &plan,
        || Duration::ZERO,
        |progress| {
            told += 1;
            assert!(progress.second == told && progress.second <= progress.of && progress.held > 0);
        },
    );
    println!("{}", outcome.heading());
    for rows in [outcome.rates(), outcome.mishaps(), outcome.costs()] {
        println!("{}", markdown(&rows));
    }
    outcome
}

#[test]
fn the_books_balance_at_the_rate_of_a_fleet() {
    for (shape, runs, seconds) in [(AGENTS, 2, 600), (ANSWERS, 1, 100)] {
        let outcome = run(fleet(shape, runs), seconds, 1);
        for row in outcome.rates() {
            assert!(row.is_met(), "{row}");
        }
        let meter = &outcome.meter;
        let happened = [
            meter.retries,
            meter.groups_timed_out,
            meter.groups_dropped,
            meter.leases_expired,
            meter.late_acks,
            meter.steps,
            meter.rewinds,
        ];
        assert!(happened.iter().all(|count| *count > 0), "{}: {meter:?}", shape.name);
        assert!(outcome.take_overs.iter().all(|moved| moved.records > 0));
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let digest = |seed| run(fleet(AGENTS, 1), 10, seed).history_digest;
    assert_eq!(digest(5), digest(5));
    assert_ne!(digest(5), digest(6));
}

#[test]
fn trainers_keep_up_with_what_is_made() {
    for shape in SHAPES {
        let load = fleet(shape, 1).load();
        assert!(load.training_secs < load.step_secs, "{}: {load:?}", shape.name);
    }
}
