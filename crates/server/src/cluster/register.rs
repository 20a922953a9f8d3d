//! What this node knows: which runs there are, who has them, and what is to be done about them.
//!
//! Without a clock and without a socket: it is told what was heard and what time it is. Ownership itself is decided in
//! the log of each run; what stands here only says whom to ask and when to try.

use rollyard_core::ids::RunName;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::nodes::{Beat, HeldRun, Nodes, Peer};
use super::placement::{self, Candidate, Duty, Held, Timing};

/// After somebody took a run away, its old owner leaves it alone for so long: the new one is opening it.
const LEFT_ALONE: Duration = Duration::from_secs(3);
/// A run that could not be opened is tried again so much later, twice as late every time.
const TRIED_AGAIN: Duration = Duration::from_secs(1);
const TRIED_AGAIN_LONGEST: Duration = Duration::from_secs(30);
/// For so long others do not hand a run to a node that could not open it.
const UNABLE_FOR: Duration = Duration::from_secs(60);

/// Who this node is.
#[derive(Clone, Debug)]
pub(crate) struct Me {
    pub(crate) node: String,
    pub(crate) url: String,
    pub(crate) incarnation: u64,
    pub(crate) started_ms: u64,
}

/// Whom to ask about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Here,
    There {
        node: String,
        url: String,
        /// The epoch of its claim; `None` if the run is yet to be made there.
        claim: Option<u64>,
    },
    /// It has none that is known, for the moment.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mine {
    /// Being claimed and opened, or closed.
    Busy,
    Open {
        epoch: u64,
    },
    /// About to be closed for somebody else, and still answering.
    Giving {
        epoch: u64,
    },
}

impl Mine {
    /// Of a run that answers.
    fn epoch(self) -> Option<u64> {
        match self {
            Self::Busy => None,
            Self::Open { epoch } | Self::Giving { epoch } => Some(epoch),
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Since when nobody has it.
    orphan_since: Option<Instant>,
    mine: Option<Mine>,
    /// Not to be claimed by this node before.
    not_before: Option<Instant>,
    /// How often it could not be opened here, in a row, and when last.
    failures: u32,
    failed_at: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) me: Me,
    pub(crate) nodes: Nodes,
    timing: Timing,
    runs: BTreeMap<String, Known>,
    pub(crate) joining: bool,
    /// It takes no more runs, and gives those that it has.
    pub(crate) retiring: bool,
    pub(crate) leaving: bool,
}

impl Register {
    pub(crate) fn new(me: Me, timing: Timing) -> Self {
        let nodes = Nodes::new(me.node.clone(), me.incarnation, timing.dead_after);
        Self { me, nodes, timing, runs: BTreeMap::new(), joining: true, retiring: false, leaving: false }
    }

    pub(crate) fn heard(&mut self, beat: Beat, now: Instant) {
        // What is busy may be only about to be made.
        let open = beat.runs.iter().filter(|held| !held.busy).map(|held| &held.run);
        for run in open.chain(&beat.orphans) {
            self.know(run);
        }
        self.nodes.heard(beat, now);
    }

    pub(crate) fn know(&mut self, run: &str) {
        if !self.runs.contains_key(run) && RunName::try_from(run).is_ok() {
            self.runs.insert(run.to_owned(), Known::default());
        }
    }

    /// The runs that there are; those that are not and that nobody has are forgotten.
    pub(crate) fn listed(&mut self, runs: &[RunName], now: Instant) {
        let nodes = &self.nodes;
        self.runs.retain(|run, known| {
            known.mine.is_some()
                || runs.iter().any(|listed| listed.as_str() == run)
                || nodes.alive(now).any(|peer| peer.held.contains_key(run))
        });
        runs.iter().for_each(|run| self.know(run.as_str()));
    }

    pub(crate) fn beat(&self, now: Instant) -> Beat {
        let held = |(run, known): (&String, &Known)| {
            let epoch = known.mine?.epoch();
            Some(HeldRun { run: run.clone(), epoch: epoch.unwrap_or_default(), busy: epoch.is_none() })
        };
        let names = |which: &dyn Fn(&Known) -> bool| {
            self.runs.iter().filter(|(_, known)| which(known)).map(|(run, _)| run.clone()).collect()
        };
        let lately = |at: Instant| now.saturating_duration_since(at) < UNABLE_FOR;
        Beat {
            node: self.me.node.clone(),
            url: self.me.url.clone(),
            incarnation: self.me.incarnation,
            started: self.me.started_ms,
            runs: self.runs.iter().filter_map(held).collect(),
            orphans: names(&|known| known.orphan_since.is_some()),
            unable: names(&|known| known.failed_at.is_some_and(lately)),
            joining: self.joining,
            retiring: self.retiring,
            leaving: self.leaving,
        }
    }

    /// `None` if no such run is known.
    pub(crate) fn owner(&self, run: &str, now: Instant) -> Option<Owner> {
        let known = self.runs.get(run)?;
        let open = |peer: &Peer| {
            let held = peer.held.get(run).filter(|held| !held.busy)?;
            Some((held.epoch, peer.beat.node.clone(), peer.beat.url.clone()))
        };
        let there = self.nodes.alive(now).filter_map(open).max();
        Some(match (known.mine.and_then(Mine::epoch), there) {
            // Whoever claimed later has it, even if this node has not noticed yet.
            (Some(epoch), there) if there.as_ref().is_none_or(|(later, ..)| *later <= epoch) => Owner::Here,
            (_, Some((epoch, node, url))) => Owner::There { node, url, claim: Some(epoch) },
            (_, None) => Owner::Nobody,
        })
    }

    /// Where a run that is not there yet is to be made.
    pub(crate) fn preferred(&self, run: &str, now: Instant) -> Owner {
        let candidates = self.candidates(run, now);
        match placement::preferred(run, &candidates) {
            Some(best) if best.node != self.me.node => {
                let peer = self.nodes.alive(now).find(|peer| peer.beat.node == best.node);
                peer.map_or(Owner::Here, |peer| Owner::There {
                    node: peer.beat.node.clone(),
                    url: peer.beat.url.clone(),
                    claim: None,
                })
            }
            _ => Owner::Here,
        }
    }

    /// What is to be done now. It is given out once: a run that is to be claimed is busy from here on.
    pub(crate) fn duties(&mut self, now: Instant) -> Vec<(String, Duty)> {
        self.note_orphans(now);
        if self.joining || self.retiring || !self.nodes.hears(now) {
            return Vec::new();
        }
        let mut duties = Vec::new();
        for (run, known) in &self.runs {
            let held = match (known.mine, known.orphan_since) {
                (Some(Mine::Open { .. }), _) => Held::Me,
                (None, Some(since)) if known.not_before.is_none_or(|not_before| now >= not_before) => {
                    Held::Nobody(now.saturating_duration_since(since))
                }
                _ => continue,
            };
            let candidates = self.candidates(run, now);
            let duty = placement::duty(run, &self.me.node, &candidates, held, &self.timing);
            if duty != Duty::Nothing {
                duties.push((run.clone(), duty));
            }
        }
        for (run, duty) in &duties {
            let Some(known) = self.runs.get_mut(run) else { continue };
            match (duty, known.mine) {
                (Duty::HandOver, Some(Mine::Open { epoch })) => known.mine = Some(Mine::Giving { epoch }),
                _ => self.set_busy(run),
            }
        }
        duties
    }

    /// Runs that are open here though somebody else has claimed them since.
    pub(crate) fn outdated(&self, now: Instant) -> Vec<String> {
        let is_open = |known: &Known| known.mine.and_then(Mine::epoch).is_some();
        let candidates = self.runs.iter().filter(|(_, known)| is_open(known)).map(|(run, _)| run);
        candidates.filter(|run| matches!(self.owner(run, now), Some(Owner::There { .. }))).cloned().collect()
    }

    /// This node makes a run; false if it is at it already, or has it.
    pub(crate) fn begin(&mut self, run: &str) -> bool {
        self.know(run);
        let is_free = self.runs.get(run).is_some_and(|known| known.mine.is_none()) && !self.retiring;
        if is_free {
            self.set_busy(run);
        }
        is_free
    }

    /// It is being opened or closed: it cannot be asked, and is not to be claimed.
    pub(crate) fn set_busy(&mut self, run: &str) {
        if let Some(known) = self.runs.get_mut(run) {
            known.mine = Some(Mine::Busy);
            known.orphan_since = None;
        }
    }

    pub(crate) fn opened(&mut self, run: &str, epoch: u64) {
        let known = self.runs.entry(run.to_owned()).or_default();
        *known = Known { mine: Some(Mine::Open { epoch }), ..Known::default() };
    }

    /// Its owner, which is this node, had to open it anew.
    pub(crate) fn reclaimed(&mut self, run: &str, claim: u64) {
        if let Some(Mine::Open { epoch } | Mine::Giving { epoch }) =
            self.runs.get_mut(run).and_then(|known| known.mine.as_mut())
        {
            *epoch = claim.max(*epoch);
        }
    }

    /// It was given up in good order: whoever is to have it may take it at once.
    pub(crate) fn closed(&mut self, run: &str) {
        if let Some(known) = self.runs.get_mut(run) {
            known.mine = None;
        }
    }

    /// It could not be made.
    pub(crate) fn forget(&mut self, run: &str) {
        self.runs.remove(run);
    }

    /// Somebody else took it.
    pub(crate) fn lost(&mut self, run: &str, now: Instant) {
        self.closed(run);
        if let Some(known) = self.runs.get_mut(run) {
            known.not_before = Some(now + LEFT_ALONE);
        }
    }

    /// It could not be opened.
    pub(crate) fn failed(&mut self, run: &str, now: Instant) {
        self.closed(run);
        if let Some(known) = self.runs.get_mut(run) {
            let pause = TRIED_AGAIN.saturating_mul(1 << known.failures.min(5)).min(TRIED_AGAIN_LONGEST);
            known.failures = known.failures.saturating_add(1);
            known.failed_at = Some(now);
            known.not_before = Some(now + pause);
        }
    }

    /// Every run with its owner's name and epoch.
    pub(crate) fn placed(&self, now: Instant) -> Vec<(String, Option<String>, u64)> {
        let epoch_of = |run: &String, known: &Known, node: &str| match known.mine {
            Some(mine) if node == self.me.node => mine.epoch().unwrap_or_default(),
            _ => {
                let there = self.nodes.alive(now).find(|peer| peer.beat.node == node);
                let held = there.and_then(|peer| peer.held.get(run));
                held.map_or(0, |held| held.epoch)
            }
        };
        let placed = self.runs.iter().map(|(run, known)| {
            let owner = match self.owner(run, now) {
                Some(Owner::Here) => Some(self.me.node.clone()),
                Some(Owner::There { node, .. }) => Some(node),
                _ => None,
            };
            let epoch = owner.as_ref().map_or(0, |node| epoch_of(run, known, node));
            (run.clone(), owner, epoch)
        });
        placed.collect()
    }

    fn candidates(&self, run: &str, now: Instant) -> Vec<Candidate<'_>> {
        let able = |peer: &&Peer| !peer.beat.retiring && !peer.beat.unable.iter().any(|unable| unable == run);
        let others = self.nodes.alive(now).filter(able).map(|peer| Candidate {
            node: &peer.beat.node,
            alive_for: now.saturating_duration_since(peer.since),
        });
        let me = Candidate { node: &self.me.node, alive_for: Duration::ZERO };
        others.chain(Some(me)).collect()
    }

    /// Whoever does not hear the others cannot say that nobody has a run, nor for how long: two nodes that begin together
    /// would claim everything at the same moment.
    fn note_orphans(&mut self, now: Instant) {
        let nodes = &self.nodes;
        let hears = nodes.hears(now);
        for (run, known) in &mut self.runs {
            let is_held = known.mine.is_some() || nodes.alive(now).any(|peer| peer.held.contains_key(run));
            match known.orphan_since {
                _ if is_held || !hears => known.orphan_since = None,
                None => known.orphan_since = Some(now),
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
