//! Where every task is, and how many there are of each kind.
//!
//! A task is enqueued, running, ready to be taken, or settled; the counts say so at every moment:
//! submitted = enqueued + running + accepted + rejected + failed.

use serde::Serialize;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::failures::{Failures, Reasons};
use super::finished::{Finished, Reason, Status, TaskId};
use super::pace::{Load, Pace};
use super::{RunningTask, Task};
use crate::group::Progress;

/// How a task ended is remembered for so many of them, for whoever asks for one by its id.
const VERDICTS_MAX: usize = 1 << 16;

/// Fewer groups in a row that are too old may be bad luck.
const STALE_IN_A_ROW_MIN: u64 = 16;

/// How many tasks there are of each kind. Every task is counted once, evaluation included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub submitted: u64,
    pub enqueued: u64,
    pub running: u64,
    /// Taken by the caller, or waiting to be.
    pub accepted: u64,
    pub rejected: u64,
    /// Of those rejected, for their age.
    pub stale: u64,
    pub failed: u64,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: TaskId,
    pub(super) task: Task,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) started: Instant,
    pub(super) started_version: i32,
    pub(super) group_size: u32,
    pub(super) is_eval: bool,
    pub(super) progress: Arc<Progress>,
    /// Set when it has been spawned, which is a moment after it is counted.
    pub(super) handle: Option<AbortHandle>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) pace: Pace,
    pub(super) version: i32,
    /// The version that pacing counts from.
    first_version: i32,
    pub(super) paused: bool,
    /// Why nothing goes on, if nothing does.
    pub(super) stopped: Option<Stopped>,
    next_id: u64,
    pending: VecDeque<Queued>,
    /// Evaluation is not paced, and so does not wait behind what is.
    pending_eval: VecDeque<Queued>,
    pub(super) running: HashMap<TaskId, Running>,
    /// Tasks for training.
    running_paced: u64,
    pub(super) running_episodes: u64,
    /// Accepted and not yet taken, the oldest first.
    ready: BTreeMap<TaskId, Finished>,
    ready_paced: u64,
    /// Taken by the trainer since `first_version`, in groups; a dynamic batch counts as a whole one.
    charged: u64,
    /// Groups that ended too old to be read, one after the other.
    stale_in_a_row: u64,
    /// Settled for training since the last batch was taken.
    settled_since_batch: u64,
    counts: Counts,
    verdicts: BTreeMap<TaskId, Status>,
    pub(super) failures: Failures,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Closed,
    Failing { in_a_row: u64 },
    Sink(String),
    Stale { in_a_row: u64, head_version: i32, version: i32 },
}

impl State {
    pub(super) fn new(pace: Pace, version: i32) -> Self {
        Self {
            pace,
            version,
            first_version: version,
            paused: false,
            stopped: None,
            next_id: 0,
            pending: VecDeque::new(),
            pending_eval: VecDeque::new(),
            running: HashMap::new(),
            running_paced: 0,
            running_episodes: 0,
            ready: BTreeMap::new(),
            ready_paced: 0,
            charged: 0,
            stale_in_a_row: 0,
            settled_since_batch: 0,
            counts: Counts::default(),
            verdicts: BTreeMap::new(),
            failures: Failures::default(),
        }
    }

    /// Puts the task in the queue. An id of its own must be larger than all before it.
    pub(super) fn enqueue(&mut self, task: Task) -> Result<TaskId, u64> {
        let id = task.id.unwrap_or(self.next_id);
        if id < self.next_id {
            return Err(self.next_id);
        }
        self.next_id = id + 1;
        self.counts.submitted += 1;
        let queue = if task.is_eval { &mut self.pending_eval } else { &mut self.pending };
        queue.push_back(Queued { id: TaskId(id), task });
        Ok(TaskId(id))
    }

    pub(super) fn capacity(&self) -> u64 {
        self.pace.capacity(Load {
            steps: self.steps(),
            running: self.running_paced,
            accepted: self.charged + self.ready_paced,
        })
    }

    fn steps(&self) -> u64 {
        u64::try_from(self.version - self.first_version).unwrap_or(0)
    }

    /// The next task that may be begun, counted as running from now on.
    pub(super) fn begin(&mut self, now: Instant) -> Option<(Queued, Arc<Progress>)> {
        if self.paused || self.stopped.is_some() {
            return None;
        }
        if self.running.len() as u64 >= u64::from(self.pace.max_concurrent.get()) {
            return None;
        }
        let queued = match self.pending_eval.pop_front() {
            Some(queued) => queued,
            None if self.capacity() == 0 => return None,
            None => self.pending.pop_front()?,
        };
        let is_eval = queued.task.is_eval;
        let progress = Arc::new(Progress::default());
        let running = Running {
            started: now,
            started_version: self.version,
            group_size: queued.task.group_size.get(),
            is_eval,
            progress: Arc::clone(&progress),
            handle: None,
        };
        self.running_paced += u64::from(!is_eval);
        self.running_episodes += u64::from(running.group_size);
        self.running.insert(queued.id, running);
        Some((queued, progress))
    }

    /// Notes what became of a running task. `keep` says that the caller will take what was accepted. What the
    /// version has overtaken in the meantime is returned, rejected.
    pub(super) fn finish(&mut self, mut finished: Finished, keep: bool) -> Vec<Finished> {
        let Some(running) = self.end(finished.id) else { return Vec::new() };
        let paced = u64::from(!running.is_eval);
        self.settled_since_batch += paced;
        match &finished.status {
            Status::Rejected(Reason::Stale { head_version, version }) => {
                self.counts.rejected += 1;
                self.counts.stale += 1;
                self.stale_in_a_row += 1;
                let (head_version, version) = (*head_version, *version);
                if self.stale_in_a_row >= (4 * self.pace.pending_max()).max(STALE_IN_A_ROW_MIN) {
                    self.stop(Stopped::Stale { in_a_row: self.stale_in_a_row, head_version, version });
                }
            }
            Status::Rejected(_) => self.counts.rejected += 1,
            Status::Failed(_) => self.counts.failed += 1,
            Status::Accepted if !keep => {
                self.counts.accepted += 1;
                self.charged += paced;
            }
            Status::Accepted => {
                if let Some(stale) = self.staleness(&finished) {
                    self.reject_stale(&mut finished, stale);
                    return vec![finished];
                }
                self.stale_in_a_row = 0;
                self.counts.accepted += 1;
                self.ready_paced += paced;
                self.ready.insert(finished.id, finished);
                return Vec::new();
            }
        }
        self.remember(finished.id, finished.status);
        Vec::new()
    }

    /// Takes a task out before it has ended; false if it has.
    pub(super) fn cancel(&mut self, id: TaskId) -> bool {
        let running = self.end(id);
        if let Some(handle) = running.as_ref().and_then(|running| running.handle.as_ref()) {
            handle.abort();
        }
        if running.is_none() && !remove(&mut self.pending, id) && !remove(&mut self.pending_eval, id) {
            return false;
        }
        self.counts.failed += 1;
        self.remember(id, Status::Failed(Reason::Cancelled));
        true
    }

    /// Stops everything for this reason; what is ready stays to be taken.
    pub(super) fn stop(&mut self, why: Stopped) {
        self.stopped.get_or_insert(why);
        let pending = self.pending.iter().chain(&self.pending_eval).map(|queued| queued.id);
        // The last in the queue first, so that nothing has to move up.
        let ids: Vec<TaskId> = self.running.keys().copied().chain(pending).collect();
        let ids = ids.into_iter().rev();
        for id in ids {
            self.cancel(id);
        }
    }

    /// Goes on with these weights. What waits and is too old for them is returned, rejected.
    pub(super) fn set_version(&mut self, version: i32) -> Vec<Finished> {
        // What a yard held before counts as begun.
        let began =
            self.charged > 0 || self.counts.submitted > (self.pending.len() + self.pending_eval.len()) as u64;
        // Nothing was begun yet, or the trainer went back: what it took before does not count any more.
        if version < self.version || !began {
            self.first_version = version;
            self.charged = 0;
        }
        self.version = version;
        let old: Vec<(TaskId, Reason)> =
            self.ready.values().filter_map(|f| Some((f.id, self.staleness(f)?))).collect();
        let mut dropped = Vec::with_capacity(old.len());
        for (id, stale) in old {
            if let Some(mut finished) = self.ready.remove(&id) {
                self.ready_paced -= 1;
                self.counts.accepted -= 1;
                self.reject_stale(&mut finished, stale);
                dropped.push(finished);
            }
        }
        dropped
    }

    /// Groups that a yard has, or, if negative, has no longer.
    pub(super) fn charge_elsewhere(&mut self, groups: i64) {
        self.charged = self.charged.saturating_add_signed(groups);
    }

    /// Why the trainer should not have it, if it is too old.
    pub(super) fn staleness(&self, finished: &Finished) -> Option<Reason> {
        let (head_version, version) = (finished.head_version(), self.version);
        let is_stale = !finished.is_eval && self.pace.is_stale(head_version, version);
        is_stale.then_some(Reason::Stale { head_version, version })
    }

    fn reject_stale(&mut self, finished: &mut Finished, stale: Reason) {
        finished.status = Status::Rejected(stale);
        self.counts.rejected += 1;
        self.counts.stale += 1;
        self.remember(finished.id, finished.status.clone());
    }

    /// It runs no more.
    fn end(&mut self, id: TaskId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        self.running_paced -= u64::from(!running.is_eval);
        self.running_episodes -= u64::from(running.group_size);
        Some(running)
    }

    /// The oldest that are ready, if there are enough.
    pub(super) fn take(&mut self, count: usize) -> Option<Vec<Finished>> {
        if self.ready.len() < count {
            return None;
        }
        let taken: Vec<Finished> =
            (0..count).filter_map(|_| self.ready.pop_first()).map(|(_, f)| f).collect();
        self.charge(&taken);
        Some(taken)
    }

    /// The same for one batch of a trainer. A dynamic one is full when so many tasks have settled as a batch
    /// has groups, and then has what was accepted of them.
    pub(super) fn take_batch(&mut self, dynamic: bool) -> Option<Vec<Finished>> {
        let batch = u64::from(self.pace.batch.get());
        if !dynamic {
            let taken = self.take(batch as usize)?;
            self.settled_since_batch = 0;
            return Some(taken);
        }
        if self.settled_since_batch < batch || self.ready.is_empty() {
            return None;
        }
        let taken = self.take(self.ready.len().min(batch as usize))?;
        // The trainer moves on by a whole step.
        self.charged += batch - (taken.len() as u64).min(batch);
        self.settled_since_batch = 0;
        Some(taken)
    }

    /// Takes back what could not be used after all: it is ready again.
    pub(super) fn give_back(&mut self, taken: Vec<Finished>) {
        for finished in taken {
            let paced = u64::from(!finished.is_eval);
            self.charged -= paced.min(self.charged);
            self.ready_paced += paced;
            self.verdicts.remove(&finished.id);
            self.ready.insert(finished.id, finished);
        }
    }

    /// One task, if it has ended: what came of it, or why there is nothing.
    pub(super) fn take_task(&mut self, id: TaskId) -> Option<Result<Finished, Status>> {
        if let Some(finished) = self.ready.remove(&id) {
            self.charge(std::slice::from_ref(&finished));
            return Some(Ok(finished));
        }
        self.verdicts.get(&id).cloned().map(Err)
    }

    /// How a task ended that nobody can take any more.
    #[cfg(test)]
    pub(super) fn verdict(&self, id: TaskId) -> Option<Result<(), Status>> {
        self.verdicts.get(&id).cloned().map(Err)
    }

    /// Waiting, running, ready, or ended not long ago.
    pub(super) fn knows(&self, id: TaskId) -> bool {
        self.running.contains_key(&id)
            || self.ready.contains_key(&id)
            || self.verdicts.contains_key(&id)
            || place(&self.pending, id).is_some()
            || place(&self.pending_eval, id).is_some()
    }

    /// So many can still become ready, or are.
    pub(super) fn hopeful(&self) -> usize {
        self.ready.len() + self.running.len() + self.pending.len() + self.pending_eval.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.hopeful() == self.ready.len()
    }

    /// How many more groups may be begun at this version, now or when others have ended.
    pub(super) fn owed(&self) -> u64 {
        let without_limit = Pace { max_concurrent: NonZeroU32::MAX, ..self.pace };
        let (steps, accepted) = (self.steps(), self.charged + self.ready_paced);
        let begun = self.running_paced + self.pending.len() as u64;
        without_limit.capacity(Load { steps, running: begun, accepted })
    }

    /// Prompts that a data loader should hand in now.
    pub(super) fn wants(&self) -> u64 {
        let under_way = self.pending.len() as u64;
        self.pace.pending_max().saturating_sub(under_way)
    }

    pub(super) fn counts(&self) -> Counts {
        let enqueued = (self.pending.len() + self.pending_eval.len()) as u64;
        Counts { enqueued, running: self.running.len() as u64, ..self.counts }
    }

    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn reasons(&self) -> Reasons {
        self.failures.reasons()
    }

    /// What runs, the longest first.
    pub(super) fn running_tasks(&self, now: Instant) -> Vec<RunningTask> {
        let mut tasks: Vec<RunningTask> =
            self.running.iter().map(|(id, running)| RunningTask::of(*id, running, now)).collect();
        tasks.sort_unstable_by(|a, b| b.age_secs.total_cmp(&a.age_secs).then(a.id.cmp(&b.id)));
        tasks
    }

    fn charge(&mut self, taken: &[Finished]) {
        for finished in taken {
            self.ready_paced -= u64::from(!finished.is_eval);
            self.charged += u64::from(!finished.is_eval);
            self.remember(finished.id, Status::Accepted);
        }
    }

    fn remember(&mut self, id: TaskId, status: Status) {
        self.verdicts.insert(id, status);
        if self.verdicts.len() > VERDICTS_MAX {
            self.verdicts.pop_first();
        }
    }
}

/// Where a task stands in a queue, whose ids grow.
fn place(queue: &VecDeque<Queued>, id: TaskId) -> Option<usize> {
    queue.binary_search_by_key(&id, |queued| queued.id).ok()
}

fn remove(queue: &mut VecDeque<Queued>, id: TaskId) -> bool {
    place(queue, id).and_then(|place| queue.remove(place)).is_some()
}
