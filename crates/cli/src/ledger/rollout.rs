//! `rollyard ledger rollout UID`: the story of one rollout.

use anyhow::{Result, bail};
use clap::Args;
use rollyard_core::ids::{GroupNo, LeaseNo};
use rollyard_core::ledger::{Event, Uid};
use rollyard_core::pipeline::DropReason;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::events::in_words;
use super::history::History;
use crate::terminal::many;

/// Tell what happened to a rollout
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
    rollyard ledger rollout math_17-3 --data ./yard-data")]
pub(super) struct Arguments {
    /// The rollout's uid
    uid: String,
}

pub(super) fn run(history: &History, arguments: &Arguments) -> Result<()> {
    let uid = &arguments.uid;
    let mut story = Story::new(uid);
    let mut lines = Vec::new();
    history.visit(|entry| {
        if story.hear(&entry.event) {
            lines.push(in_words(&entry));
        }
        Ok(())
    })?;
    let Some(fate) = &story.fate else {
        bail!("no rollout {uid:?} was ever admitted to run {}", history.run);
    };
    let mut out = io::stdout();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    let uses = match story.uses.len() {
        0 => String::new(),
        count => format!(", drawn {}", many(count, "time")),
    };
    let place = if *fate == Fate::Pooled { story.in_pool().to_owned() } else { fate.in_words() };
    writeln!(out, "rollout {uid:?} is {place}{uses}")?;
    Ok(())
}

/// What is known about a rollout up to some event.
struct Story {
    uid: String,
    hash: Uid,
    group: Option<GroupNo>,
    fate: Option<Fate>,
    /// Draws of a rollout in a pool that were not given back.
    uses: BTreeMap<LeaseNo, Use>,
    /// How often it may be drawn; below 1 as often as one likes.
    max_samples: i64,
    /// Groups that can be read and still take rollouts: one that joins is ready at once.
    ready_and_open: BTreeSet<GroupNo>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    is_acked: bool,
    /// The step that a commit has tied it to.
    step: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Waiting,
    /// The hooks of its generator are asked about the group.
    Posed,
    Ready,
    Pooled,
    Leased(LeaseNo),
    /// Out of reach of a rewind where `is_final`.
    Trained {
        lease: LeaseNo,
        step: Option<u64>,
        is_final: bool,
    },
    Dropped(DropReason),
}

impl Fate {
    fn in_words(&self) -> String {
        match self {
            Self::Waiting => "held, in a group that waits for more".to_owned(),
            Self::Posed => "held, in a group that the hooks of its generator are asked about".to_owned(),
            Self::Ready => "held, in a group that is ready to be read".to_owned(),
            Self::Pooled => "held, in the pool".to_owned(),
            Self::Leased(lease) => format!("with the reader of lease {lease}"),
            Self::Trained { lease, step: None, .. } => format!("trained, in lease {lease}, without a step"),
            Self::Trained { lease, step: Some(step), .. } => {
                format!("trained at step {step}, in lease {lease}")
            }
            Self::Dropped(reason) => format!("dropped: {reason}"),
        }
    }

    fn lease(&self) -> Option<LeaseNo> {
        match self {
            Self::Leased(lease) | Self::Trained { lease, .. } => Some(*lease),
            Self::Waiting | Self::Posed | Self::Ready | Self::Pooled | Self::Dropped(_) => None,
        }
    }
}

impl Story {
    fn new(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            hash: Uid::of(uid),
            group: None,
            fate: None,
            uses: BTreeMap::new(),
            max_samples: 0,
            ready_and_open: BTreeSet::new(),
        }
    }

    /// Where a rollout in the pool is, as the books have it.
    fn in_pool(&self) -> &'static str {
        let is_out = self.uses.values().any(|used| !used.is_acked);
        let is_used_up = self.max_samples > 0 && self.uses.len() as i64 >= self.max_samples;
        match (is_out, is_used_up) {
            (true, _) => "leased",
            (false, true) => "trained, and used up",
            (false, false) => "held, in the pool",
        }
    }

    /// Takes an event in; true if it concerns the rollout.
    fn hear(&mut self, event: &Event) -> bool {
        if let Event::Admitted(admitted) = event {
            let is_ours = admitted.uid == self.uid;
            if is_ours {
                self.group = Some(admitted.group);
                let is_ready = self.ready_and_open.contains(&admitted.group);
                self.fate = Some(if is_ready { Fate::Ready } else { Fate::Waiting });
            }
            return is_ours;
        }
        match event {
            Event::Configured { config, .. } => self.max_samples = config.max_samples,
            Event::GroupReady { group, closed: false, .. } => drop(self.ready_and_open.insert(*group)),
            Event::Leased { groups, .. } => self.ready_and_open.retain(|group| !groups.contains(group)),
            _ => {}
        }
        let (Some(group), Some(fate)) = (self.group, self.fate.clone()) else { return false };
        if matches!(fate, Fate::Dropped(_)) {
            return false;
        }
        if let Some(concerns) = self.hear_of_pool(event, &fate) {
            return concerns;
        }
        let our_group = |named: &GroupNo| *named == group;
        let our_lease = |named: &LeaseNo| fate.lease() == Some(*named);
        let (concerns, fate) = match event {
            Event::GroupReady { group, .. } | Event::GroupShaped { group, .. } => {
                (our_group(group), Fate::Ready)
            }
            Event::GroupPosed { group, .. } => (our_group(group), Fate::Posed),
            Event::GroupWaits { group, .. } => (our_group(group), Fate::Waiting),
            Event::GroupDropped { group, reason, .. } => (our_group(group), Fate::Dropped(*reason)),
            Event::RolloutDropped { uid, reason, .. } => (*uid == self.hash, Fate::Dropped(*reason)),
            Event::Leased { lease, groups, .. } => (groups.iter().any(our_group), Fate::Leased(*lease)),
            Event::Acked { lease, last, .. } => {
                (our_lease(lease), Fate::Trained { lease: *lease, step: None, is_final: *last })
            }
            Event::Returned { lease, .. } => (our_lease(lease), Fate::Ready),
            Event::Committed { leases, step, .. } => match leases.iter().find(|lease| our_lease(lease)) {
                Some(lease) => (true, Fate::Trained { lease: *lease, step: Some(*step), is_final: false }),
                None => return false,
            },
            // What was taken after that step, and not yet gone for good, goes back.
            Event::Rewound { .. } | Event::RewoundToStart { .. } => match &fate {
                Fate::Leased(_) => (true, Fate::Ready),
                Fate::Trained { step: tied, is_final, .. } => {
                    (!is_final && tied.is_none_or(|tied| !event.spares(tied)), Fate::Ready)
                }
                _ => return false,
            },
            Event::Extended { lease, .. } => (our_lease(lease), fate.clone()),
            Event::Relocated { uid, .. } => (*uid == self.hash, fate.clone()),
            Event::Configured { .. }
            | Event::VersionSet { .. }
            | Event::Noted { .. }
            | Event::Admitted(_)
            | Event::Pooled { .. }
            | Event::StepSet { .. }
            | Event::Sampled { .. } => return false,
        };
        if concerns {
            self.fate = Some(fate);
        }
        concerns
    }

    /// Takes in what happens to a rollout that is sampled, perhaps more than once; `None` if this is another kind
    /// of event, or of rollout.
    fn hear_of_pool(&mut self, event: &Event, fate: &Fate) -> Option<bool> {
        if let Event::Pooled { members, .. } = event {
            let ours = members.iter().any(|(uid, _)| *uid == self.hash);
            if ours {
                self.fate = Some(Fate::Pooled);
            }
            return Some(ours);
        }
        if *fate != Fate::Pooled {
            return None;
        }
        match event {
            Event::Sampled { lease, picks, .. } => {
                let ours = picks.iter().any(|pick| pick.uid == self.hash);
                if ours {
                    self.uses.insert(*lease, Use::default());
                }
                Some(ours)
            }
            Event::Acked { lease, .. } => {
                let ours = self.uses.get_mut(lease);
                Some(ours.map(|used| used.is_acked = true).is_some())
            }
            Event::Extended { lease, .. } => Some(self.uses.contains_key(lease)),
            Event::Returned { lease, .. } => Some(self.uses.remove(lease).is_some()),
            Event::Committed { leases, step, .. } => {
                let mut ours = false;
                for lease in leases {
                    if let Some(used) = self.uses.get_mut(lease) {
                        used.step = Some(*step);
                        ours = true;
                    }
                }
                Some(ours)
            }
            Event::Rewound { .. } | Event::RewoundToStart { .. } => {
                let before = self.uses.len();
                self.uses.retain(|_, used| used.step.is_some_and(|step| event.spares(step)));
                Some(self.uses.len() < before)
            }
            _ => None,
        }
    }
}
