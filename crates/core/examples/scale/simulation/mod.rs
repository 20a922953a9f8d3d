//! A fleet's load on a yard, in virtual time, on the real ledger.
//!
//! Read [`fleet`] for the arithmetic, `world.rs` for what happens around a run, `owner.rs` for how the ledger is driven,
//! `witness.rs` for what is checked with every event. Nothing here knows the real time: the stopwatch is the caller's.
//!
//! The example `scale` and a test of the crate share these files.

mod dice;
pub(crate) mod fleet;
mod outcome;
mod owner;
pub(crate) mod payload;
pub(crate) mod table;
mod witness;
mod world;

pub(crate) use outcome::Outcome;

use fleet::Fleet;
use owner::{Meter, Stopwatch, TakeOver};
use payload::Sizes;
use std::time::Duration;
use world::{PATIENCE, World};

/// Audits of every run on the way.
const AUDITS: u64 = 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) fleet: Fleet,
    /// That count; before them the yard is brought to its usual state.
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) second: u64,
    pub(crate) of: u64,
    pub(crate) held: u64,
}

/// Runs the plan and checks everything on the way; panics if the ledger breaks a promise.
pub(crate) fn simulate(plan: &Plan, stopwatch: Stopwatch, mut tell: impl FnMut(Progress)) -> Outcome {
    let Plan { fleet, seconds, seed } = *plan;
    let sizes = Sizes::of(&fleet.shape);
    let load = fleet.load();
    let mut worlds: Vec<World> =
        (0..u64::from(fleet.runs)).map(|run| World::new(&fleet, sizes, run, seed, stopwatch)).collect();

    // Two rollouts' time until full groups come as fast as they go, more until others time out, and two steps until
    // commits let go of the first.
    let warm_up = ((2.0 + PATIENCE) * load.rollout_secs + 2.0 * load.step_secs) as u64;
    let total = warm_up + seconds;
    let (kept_from, moved_at) = (warm_up + seconds / 2, warm_up + seconds * 3 / 4);
    let mut busy_secs = Vec::new();
    let (mut held_max, mut kept_max) = (0, 0);
    let mut take_overs: Vec<TakeOver> = Vec::new();
    for second in 0..total {
        if second == warm_up {
            worlds.iter_mut().for_each(|world| world.owner.meter = Meter::default());
        }
        if second == kept_from {
            worlds.iter_mut().for_each(|world| world.owner.keep_log());
        }
        if second == moved_at {
            take_overs = worlds.iter_mut().map(|world| world.owner.move_owner()).collect();
        }
        let before = busy(&worlds);
        worlds.iter_mut().for_each(|world| world.advance_secs(1));
        if second >= warm_up {
            busy_secs.push(busy(&worlds).saturating_sub(before));
        }

        let books = || worlds.iter().map(|world| world.owner.ledger.books());
        let held: u64 = books().map(|books| books.held).sum();
        held_max = held.max(held_max);
        kept_max = kept_max.max(books().map(|books| books.kept().0).sum());
        if second % (total / AUDITS).max(1) == 0 {
            worlds.iter().for_each(|world| world.owner.check());
        }
        tell(Progress { second: second + 1, of: total, held });
    }
    for world in &worlds {
        world.owner.check();
        world.owner.check_whereabouts();
    }

    let mut meter = Meter::default();
    worlds.iter().for_each(|world| meter.add(&world.owner.meter));
    Outcome {
        fleet,
        load,
        sizes,
        seconds,
        meter,
        busy_secs,
        held_max,
        kept_max,
        take_overs,
        admitted: worlds.iter().map(|world| world.owner.ledger.books().admitted).sum(),
        history_digest: worlds.iter().fold(0, |sum, world| sum ^ world.owner.history_digest),
    }
}

fn busy(worlds: &[World]) -> Duration {
    worlds.iter().map(|world| world.owner.meter.busy).sum()
}
