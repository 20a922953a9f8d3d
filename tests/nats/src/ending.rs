//! What is left when everything is healed: every rollout is asked after, and what can be had is read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::api::{Answer, Api};
use crate::check::Ending;
use crate::history::{History, Outcome, What};
use crate::node::Address;
use crate::workload::note_grant;

const REST_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ASKERS: usize = 4;

/// Reads what is ready, acks it, and asks for everything else.
///
/// # Panics
/// If a node does not come to serve.
pub(crate) fn gather(api: &Api, nodes: &[Address], history: &History) -> Ending {
    for node in nodes {
        wait_for("a node serves again", || api.books(node).ok());
    }
    drain(api, nodes, history);
    // Between the fates and the books nothing may move: leases that are to run out soon, or a read that was not
    // answered, could. So they are looked at until twice the same came.
    let mut last = None;
    wait_for("the books rest", || {
        let books = nodes.iter().map(|node| api.books(node)).collect::<Result<Vec<_>, _>>().ok()?;
        let first = books.first()?.clone();
        let fates = fates(api, nodes, history)?;
        let seen = Some(Ending { fates, books: first });
        if last == seen && books.windows(2).all(|pair| pair.first() == pair.last()) {
            return seen;
        }
        last = seen;
        None
    })
}

/// Every rollout that is ready has to be readable still.
fn drain(api: &Api, nodes: &[Address], history: &History) {
    let term = Duration::from_secs(120);
    let deadline = Instant::now() + REST_WITHIN;
    for node in nodes.iter().cycle() {
        assert!(Instant::now() < deadline, "the yard is not drained within {REST_WITHIN:?}");
        let from = history.now();
        let answer = api.lease(node, Some(1), term);
        if matches!(answer, Answer::Unknown(_)) {
            continue;
        }
        let Some(lease) = note_grant(history, from, term, &answer) else { return };
        wait_for("a lease is acked", || {
            let from = history.now();
            let outcome = api.ack(node, lease).outcome();
            history.note(from, What::Ack { lease, outcome });
            (outcome != Outcome::Unknown).then_some(())
        });
    }
}

/// Of every rollout that somebody tried to write. Nothing if a node does not answer.
fn fates(api: &Api, nodes: &[Address], history: &History) -> Option<BTreeMap<String, crate::check::Fate>> {
    let records = history.records();
    let tried: BTreeSet<&String> = records
        .iter()
        .filter_map(|record| match &record.what {
            What::Write { uids, .. } => Some(uids),
            _ => None,
        })
        .flatten()
        .collect();
    let tried: Vec<&String> = tried.into_iter().collect();
    let share = tried.len().div_ceil(ASKERS).max(1);
    std::thread::scope(|scope| {
        let askers: Vec<_> = tried
            .chunks(share)
            .zip(nodes.iter().cycle())
            .map(|(uids, node)| {
                scope.spawn(move || {
                    let mut fates = Vec::new();
                    for uid in uids {
                        if let Some(fate) = api.fate(node, uid).ok()? {
                            fates.push(((*uid).clone(), fate));
                        }
                    }
                    Some(fates)
                })
            })
            .collect();
        let told: Option<Vec<_>> = askers.into_iter().map(|asker| asker.join().ok().flatten()).collect();
        Some(told?.into_iter().flatten().collect())
    })
}

/// The owner of a run, when all nodes that answer name the same and it is alive.
///
/// # Panics
/// If there is none for a while.
pub(crate) fn await_owner(
    api: &Api,
    nodes: &[Address],
    run: &str,
    number: impl Fn(&str) -> Option<usize>,
) -> usize {
    wait_for("a run has an owner", || {
        let claims = nodes.iter().flat_map(|node| api.claims(node));
        let newest =
            claims.filter(|claim| claim.run == run && claim.is_alive).max_by_key(|claim| claim.epoch)?;
        number(&newest.node)
    })
}

/// Waits until there is something.
///
/// # Panics
/// If there is nothing for too long.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + REST_WITHIN;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {REST_WITHIN:?}: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
