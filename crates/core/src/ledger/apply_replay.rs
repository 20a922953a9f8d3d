//! Takes in what happens to single rollouts of a run that samples.

use super::Ledger;
use super::group::{GroupStatus, Uid};
use super::lease::Sample;
use super::replay::{Column, Replay, Use};
use super::settled::Fate;
use crate::ids::{GroupNo, Place};
use crate::pipeline::DropReason;
use crate::run_config::{Mode, RunConfig};

impl Ledger {
    /// Takes on a configuration, and the pool it needs.
    pub(super) fn configure(&mut self, config: RunConfig) {
        let rules = config.rules();
        match (&mut self.replay, config.mode) {
            (_, Mode::Queue) => self.replay = None,
            (None, Mode::Replay) => self.replay = Some(Box::new(Replay::new(rules))),
            (Some(replay), Mode::Replay) if *replay.pool.rules() == rules => {}
            (Some(replay), Mode::Replay) => {
                let order = replay.order();
                let columns = self.columns(&order);
                if let Some(replay) = &mut self.replay {
                    replay.index(rules, &order);
                }
                // Another number of uses may be the last.
                for (uid, before) in columns {
                    self.rebook(uid, before);
                }
            }
        }
        self.group_size_max = self.group_size_max.max(config.group_len());
        self.config = config;
    }

    pub(super) fn pool(&mut self, no: GroupNo, members: &[(Uid, f32)]) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        if group.status == GroupStatus::Open {
            let deadline = group.touched_at.after_secs(self.config.group_timeout_seconds);
            self.group_deadlines.remove(&(deadline, no));
            self.tally.finish(&group.instance);
        }
        group.status = GroupStatus::Pooled;
        self.close(no);
        if let Some(replay) = &mut self.replay {
            for (uid, advantage) in members {
                replay.enter(*uid, *advantage);
            }
        }
    }

    pub(super) fn draw(&mut self, sample: &Sample) {
        if let Some(replay) = &mut self.replay {
            replay.draws = sample.draw + 1;
        }
        for pick in &sample.picks {
            self.use_rollout(pick.uid, Use::Drawn);
        }
    }

    /// A use of every rollout of a sample comes to its end; those that nothing can change any more are settled.
    pub(super) fn end_uses(&mut self, sample: Option<Sample>, used: Use, freed: &mut Vec<(Place, u32)>) {
        for pick in sample.into_iter().flat_map(|sample| sample.picks) {
            self.use_rollout(pick.uid, used);
            self.settle_member(pick.uid, freed);
        }
    }

    /// A rollout of the pool is to be drawn no more.
    pub(super) fn drop_pooled(&mut self, uid: Uid, reason: DropReason, freed: &mut Vec<(Place, u32)>) {
        let before = self.column(uid);
        if let Some(replay) = &mut self.replay {
            replay.leave(uid, reason);
        }
        if reason == DropReason::Corrupt {
            // Whoever has it cannot read it, and nobody ever will.
            self.remove_member(uid, before, Fate::Dropped(reason), freed);
            return;
        }
        if let Some(before) = before {
            self.rebook(uid, before);
        }
        self.settle_member(uid, freed);
    }

    fn use_rollout(&mut self, uid: Uid, used: Use) {
        let Some(before) = self.column(uid) else { return };
        if let Some(replay) = &mut self.replay {
            replay.note(uid, used);
        }
        self.rebook(uid, before);
    }

    fn settle_member(&mut self, uid: Uid, freed: &mut Vec<(Place, u32)>) {
        if let Some(fate) = self.replay.as_deref().and_then(|replay| replay.fate(uid)) {
            let column = self.column(uid);
            self.remove_member(uid, column, fate, freed);
        }
    }

    /// Takes a rollout off the books of what is kept.
    fn remove_member(&mut self, uid: Uid, column: Option<Column>, fate: Fate, freed: &mut Vec<(Place, u32)>) {
        let Some(no) = self.uids.get(&uid).copied() else { return };
        let Some(group) = self.groups.get_mut(&no) else { return };
        let Some(index) = group.rollouts.iter().position(|rollout| rollout.uid == uid) else { return };
        let rollout = group.rollouts.remove(index);
        let empty = group.rollouts.is_empty();
        if let Some(column) = column {
            self.book(column, u64::from(rollout.size_bytes), Way::Out);
        }
        match fate {
            Fate::Dropped(reason) => *self.books.dropped.entry(reason).or_default() += 1,
            Fate::Trained { .. } => self.books.trained += 1,
        }
        self.settle(&rollout, fate, freed);
        if empty {
            self.groups.remove(&no);
        }
    }

    fn column(&self, uid: Uid) -> Option<Column> {
        self.replay.as_deref()?.column(uid)
    }

    fn columns(&self, uids: &[Uid]) -> Vec<(Uid, Column)> {
        uids.iter().filter_map(|uid| Some((*uid, self.column(*uid)?))).collect()
    }

    /// Moves a rollout from one column of the books to the one it is in now.
    fn rebook(&mut self, uid: Uid, before: Column) {
        let Some(after) = self.column(uid).filter(|after| *after != before) else { return };
        let size = self.uids.get(&uid).and_then(|no| self.groups.get(no)).and_then(|group| {
            group.rollouts.iter().find(|rollout| rollout.uid == uid).map(|rollout| rollout.size_bytes)
        });
        let size = u64::from(size.unwrap_or_default());
        self.book(before, size, Way::Out);
        self.book(after, size, Way::In);
    }

    fn book(&mut self, column: Column, size: u64, way: Way) {
        let books = &mut self.books;
        let (count, bytes) = match column {
            Column::Held => (&mut books.held, &mut books.held_bytes),
            Column::Leased => (&mut books.leased, &mut books.leased_bytes),
            Column::Trained => {
                way.change(&mut books.trained, 1);
                (&mut books.retained, &mut books.retained_bytes)
            }
        };
        way.change(count, 1);
        way.change(bytes, size);
    }
}

#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

impl Way {
    fn change(self, number: &mut u64, by: u64) {
        match self {
            Self::In => *number += by,
            Self::Out => *number -= by,
        }
    }
}
