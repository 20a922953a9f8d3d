//! `rollyard ledger step N`: what went into a checkpoint.

use anyhow::{Result, bail};
use clap::Args;
use rollyard_core::ids::{GroupNo, LeaseNo, Time};
use rollyard_core::ledger::{Event, Uid};
use rollyard_core::pipeline::DropReason;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::history::History;
use super::tell::{clock, list};
use crate::terminal::{Table, many};

/// Tell what was trained at a step
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
    rollyard ledger step 812 --data ./yard-data")]
pub(super) struct Arguments {
    /// The step, as it was committed
    step: u64,
}

pub(super) fn run(history: &History, arguments: &Arguments) -> Result<()> {
    let step = arguments.step;
    let mut commits = Commits::default();
    history.visit(|entry| {
        commits.hear(entry.event);
        Ok(())
    })?;
    let Some(committed) = commits.by_step.get(&step) else {
        bail!("{}", commits.excuse(step));
    };
    let leases: Vec<(&LeaseNo, &Lease)> =
        committed.leases.iter().filter_map(|no| Some((no, commits.leases.get(no)?))).collect();
    let groups: BTreeSet<GroupNo> =
        leases.iter().flat_map(|(_, lease)| lease.groups.iter().copied()).collect();
    let members = members(history, &groups)?;

    let mut out = io::stdout();
    let trained: usize = leases.iter().map(|(_, lease)| lease.trained(&members)).sum();
    writeln!(
        out,
        "step {step} of run {}, committed {}: {}, {}, {}",
        history.run,
        clock(committed.at),
        many(leases.len(), "lease"),
        many(groups.len(), "group"),
        many(trained, "rollout")
    )?;
    for (no, lease) in leases {
        writeln!(out, "\nlease {no} to {:?}, granted {}", lease.reader, clock(lease.granted_at))?;
        write!(out, "{}", table(lease, &members))?;
    }
    Ok(())
}

#[derive(Default)]
struct Commits {
    leases: BTreeMap<LeaseNo, Lease>,
    by_step: BTreeMap<u64, Commit>,
    /// Steps that a rewind has undone.
    undone: BTreeSet<u64>,
    acked_without_step: bool,
}

struct Lease {
    groups: BTreeSet<GroupNo>,
    /// Those that were drawn, in a run that samples.
    drawn: Option<BTreeSet<Uid>>,
    reader: String,
    granted_at: Time,
}

struct Commit {
    at: Time,
    leases: Vec<LeaseNo>,
}

impl Commits {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Leased { at, lease, groups, reader, .. } => {
                let groups = groups.into_iter().collect();
                self.leases.insert(lease, Lease { groups, drawn: None, reader, granted_at: at });
            }
            Event::Sampled { at, lease, picks, reader, .. } => {
                let groups = picks.iter().map(|pick| pick.group).collect();
                let drawn = Some(picks.iter().map(|pick| pick.uid).collect());
                self.leases.insert(lease, Lease { groups, drawn, reader, granted_at: at });
            }
            Event::Returned { lease, .. } => drop(self.leases.remove(&lease)),
            Event::Acked { last, .. } => self.acked_without_step |= last,
            Event::Committed { at, step, leases } => {
                self.undone.remove(&step);
                let commit = self.by_step.entry(step).or_insert(Commit { at, leases: Vec::new() });
                commit.leases.extend(leases);
            }
            Event::Rewound { .. } | Event::RewoundToStart { .. } => {
                let undone = self.by_step.keys().copied().filter(|step| !event.spares(*step));
                self.undone.extend(undone);
                self.by_step.retain(|step, _| !self.undone.contains(step));
            }
            _ => {}
        }
    }

    /// Why there is nothing to tell of a step.
    fn excuse(&self, step: u64) -> String {
        if self.undone.contains(&step) {
            return format!("step {step} was committed, but a rewind has undone it");
        }
        let known: Vec<u64> = self.by_step.keys().copied().collect();
        let known = match known.as_slice() {
            [] if self.acked_without_step => {
                "none was: plain slime reads are final without a step (auto_commit)".to_owned()
            }
            [] => "none was".to_owned(),
            [only] => format!("only {only} was"),
            [first, .., last] if last - first + 1 == known.len() as u64 => format!("{first} to {last} were"),
            many if many.len() <= 20 => format!("{} were", list(many)),
            [first, .., last] => format!("{} steps from {first} to {last} were", known.len()),
        };
        format!("step {step} was not committed; {known}")
    }
}

struct Member {
    uid: String,
    instance: String,
    round: u32,
    reward: f64,
    version: Option<u64>,
    dropped: Option<DropReason>,
}

fn members(history: &History, groups: &BTreeSet<GroupNo>) -> Result<BTreeMap<GroupNo, Vec<Member>>> {
    let mut members: BTreeMap<GroupNo, Vec<Member>> = BTreeMap::new();
    history.visit(|entry| {
        match entry.event {
            Event::Admitted(new) if groups.contains(&new.group) => {
                members.entry(new.group).or_default().push(Member {
                    uid: new.uid,
                    instance: new.instance,
                    round: new.round,
                    reward: new.reward,
                    version: new.version,
                    dropped: None,
                });
            }
            Event::RolloutDropped { group, uid, reason, .. } => {
                let all = members.get_mut(&group).into_iter().flatten();
                for member in all.filter(|member| Uid::of(&member.uid) == uid) {
                    member.dropped = Some(reason);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(members)
}

impl Lease {
    /// Its rollouts. One that was drawn was trained on, whatever became of it later.
    fn rows<'a>(
        &'a self,
        members: &'a BTreeMap<GroupNo, Vec<Member>>,
    ) -> impl Iterator<Item = (GroupNo, &'a Member, Option<DropReason>)> {
        let all = self
            .groups
            .iter()
            .flat_map(|group| members.get(group).into_iter().flatten().map(|member| (*group, member)));
        all.filter_map(|(group, member)| match &self.drawn {
            None => Some((group, member, member.dropped)),
            Some(drawn) => drawn.contains(&Uid::of(&member.uid)).then_some((group, member, None)),
        })
    }

    fn trained(&self, members: &BTreeMap<GroupNo, Vec<Member>>) -> usize {
        self.rows(members).filter(|(_, _, dropped)| dropped.is_none()).count()
    }
}

fn table(lease: &Lease, members: &BTreeMap<GroupNo, Vec<Member>>) -> String {
    let mut table = Table::new(&["uid", "group", "instance", "round", "weights", "reward", ""]);
    for (group, member, dropped) in lease.rows(members) {
        table.push(vec![
            member.uid.clone(),
            group.to_string(),
            member.instance.clone(),
            member.round.to_string(),
            member.version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
            member.reward.to_string(),
            dropped.map(|reason| format!("not trained: {reason}")).unwrap_or_default(),
        ]);
    }
    table.to_string()
}
