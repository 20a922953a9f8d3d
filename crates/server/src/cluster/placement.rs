//! Who should own which run: pure, so that a table and a simulation can judge it.
//!
//! Every node ranks all nodes for a run by a hash of both (rendezvous hashing): the same list everywhere, evenly
//! spread, and a node that comes or goes moves only its own runs. The first in the list is the *preferred* owner. A run
//! that nobody has is claimed by it at once, by the second a moment later, and so on: nobody has to agree on anything,
//! because a claim is an append to the run's own log, which only one can make.

use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// How long things take in a cluster. All of it is measured by each node's own monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two heartbeats.
    pub beat_every: Duration,
    /// Who was not heard for so long is dead. A node that did not hear itself for so long knows nothing.
    pub dead_after: Duration,
    /// So much later does the next in rank claim a run that nobody has.
    pub rank_step: Duration,
    /// An owner gives a run to the preferred node once that has been alive for so long.
    pub settled_after: Duration,
    /// A request waits so long for a run to have an owner.
    pub owner_within: Duration,
    /// How often the list of all runs is asked for.
    pub discover_every: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat_every: Duration::from_millis(300),
            dead_after: Duration::from_millis(1500),
            rank_step: Duration::from_millis(700),
            settled_after: Duration::from_secs(10),
            owner_within: Duration::from_secs(5),
            discover_every: Duration::from_secs(2),
        }
    }
}

/// A node that is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) node: &'a str,
    pub(crate) alive_for: Duration,
}

/// Who has a run, as far as this node has heard. Where another has it, there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Me,
    /// Nobody, for so long.
    Nobody(Duration),
}

/// What a node is to do about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Nothing,
    Claim,
    HandOver,
}

/// What `me` is to do about `run`. The candidates include `me`.
pub(crate) fn duty(run: &str, me: &str, candidates: &[Candidate<'_>], held: Held, timing: &Timing) -> Duty {
    match held {
        Held::Me => match preferred(run, candidates) {
            Some(best) if best.node != me && best.alive_for >= timing.settled_after => Duty::HandOver,
            _ => Duty::Nothing,
        },
        Held::Nobody(since) => {
            let rank = rank(run, me, candidates);
            if since >= timing.rank_step.saturating_mul(rank) { Duty::Claim } else { Duty::Nothing }
        }
    }
}

pub(crate) fn preferred<'a>(run: &str, candidates: &[Candidate<'a>]) -> Option<Candidate<'a>> {
    candidates.iter().copied().max_by_key(|candidate| score(run, candidate.node))
}

/// How many others come before `me`.
fn rank(run: &str, me: &str, candidates: &[Candidate<'_>]) -> u32 {
    let mine = score(run, me);
    let before = candidates.iter().filter(|other| other.node != me && score(run, other.node) > mine).count();
    u32::try_from(before).unwrap_or(u32::MAX)
}

/// Equal hashes are told apart by name, so that no two nodes have the same score.
fn score<'a>(run: &str, node: &'a str) -> (u64, &'a str) {
    // Neither name can hold a slash.
    (xxh3_64(format!("{run}/{node}").as_bytes()), node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const NODES: [&str; 3] = ["a", "b", "c"];

    fn alive<'a>(nodes: &[&'a str]) -> Vec<Candidate<'a>> {
        nodes.iter().map(|node| Candidate { node, alive_for: Duration::from_secs(60) }).collect()
    }

    fn owners(nodes: &[&str]) -> Vec<String> {
        let candidates = alive(nodes);
        (0..3000).map(|run| preferred(&format!("run-{run}"), &candidates).unwrap().node.to_owned()).collect()
    }

    #[test]
    fn runs_spread_evenly() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        owners(&NODES).into_iter().for_each(|owner| *counts.entry(owner).or_default() += 1);
        assert_eq!(counts.len(), 3);
        assert!(counts.values().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_node_that_goes_moves_only_its_own_runs() {
        for (before, after) in owners(&NODES).iter().zip(owners(&["a", "b"])) {
            assert!(before == "c" || *before == after, "{before} became {after}");
        }
    }

    #[test]
    fn every_order_of_candidates_gives_the_same_owner() {
        assert_eq!(owners(&["a", "b", "c"]), owners(&["c", "a", "b"]));
    }

    #[test]
    fn an_orphan_is_claimed_in_order_of_rank_and_a_rank_apart() {
        let (candidates, timing) = (alive(&NODES), Timing::default());
        for run in (0..50).map(|run| format!("run-{run}")) {
            let claims_at = |me: &str| {
                (0..5000).step_by(100).find(|ms| {
                    let held = Held::Nobody(Duration::from_millis(*ms));
                    duty(&run, me, &candidates, held, &timing) == Duty::Claim
                })
            };
            let mut times: Vec<_> = NODES.map(claims_at).into_iter().collect();
            times.sort_unstable();
            assert_eq!(times, [Some(0), Some(700), Some(1400)], "{run}");
            let best = preferred(&run, &candidates).unwrap().node;
            assert_eq!(claims_at(best), Some(0));
        }
    }

    #[test]
    fn an_owner_hands_over_only_to_a_better_one_that_has_settled() {
        let timing = Timing::default();
        let best = preferred("run", &alive(&NODES)).unwrap().node;
        let other = NODES.into_iter().find(|node| *node != best).unwrap();
        for (me, alive_secs, expected) in
            [(other, 9, Duty::Nothing), (other, 10, Duty::HandOver), (best, 60, Duty::Nothing)]
        {
            let alive_for = Duration::from_secs(alive_secs);
            let candidates = NODES.map(|node| Candidate { node, alive_for });
            assert_eq!(duty("run", me, &candidates, Held::Me, &timing), expected, "{me} {alive_secs}");
        }
    }
}
