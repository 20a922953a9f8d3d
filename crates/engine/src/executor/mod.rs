//! Runs tasks at the pace that keeps them fresh.
//!
//! A task is a prompt and the workflow that makes a group of it. Tasks wait in a queue, are begun as [`Pace`]
//! allows, and end accepted, rejected or failed; the [`Counts`] say how many, at every moment. What was
//! accepted waits to be taken, the oldest first, and is looked at once more then: nothing staler than the bound
//! is handed out.

mod course;
mod failures;
mod finished;
mod pace;
mod state;
mod terms;

pub use failures::Reasons;
pub use finished::{Finished, Reason, Status, TaskId, version_range};
pub use pace::{Load, Pace};
pub use state::Counts;
pub use terms::{Accept, ExecutorConfig, ExecutorError, RunningTask, Stats, Task};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::generate::SharedEngine;
use crate::sink::Sink;
use state::{State, Stopped};

/// Shared by whoever submits, waits and watches. The last one to go stops what runs.
#[derive(Clone, Debug)]
pub struct Executor {
    inner: Arc<Inner>,
    _stopper: Arc<Stopper>,
}

#[derive(Debug)]
struct Stopper(Arc<Inner>);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.stop(Stopped::Closed);
    }
}

struct Inner {
    engine: SharedEngine,
    config: ExecutorConfig,
    sinks: Vec<Arc<dyn Sink>>,
    runtime: Handle,
    state: Mutex<State>,
    /// Bumped with every change that somebody may wait for.
    changes: watch::Sender<u64>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Executor {
    pub fn new(
        engine: SharedEngine,
        config: ExecutorConfig,
        sinks: Vec<Arc<dyn Sink>>,
        runtime: Handle,
    ) -> Self {
        let state = Mutex::new(State::new(config.pace, engine.version()));
        let changes = watch::Sender::new(0);
        let inner = Arc::new(Inner { engine, config, sinks, runtime, state, changes });
        Self { _stopper: Arc::new(Stopper(Arc::clone(&inner))), inner }
    }

    pub fn submit(&self, task: Task) -> Result<TaskId, ExecutorError> {
        self.submit_all([task]).map(|ids| ids.first().copied().unwrap_or(TaskId(0)))
    }

    pub fn submit_all(&self, tasks: impl IntoIterator<Item = Task>) -> Result<Vec<TaskId>, ExecutorError> {
        let mut state = self.inner.state();
        self.inner.going(&state)?;
        let ids = tasks.into_iter().map(|task| {
            let id = task.id;
            state.enqueue(task).map_err(|next| ExecutorError::BadId { id: id.unwrap_or_default(), next })
        });
        let ids = ids.collect();
        drop(state);
        self.inner.advance();
        ids
    }

    /// The `count` oldest groups that were accepted, as soon as there are so many.
    ///
    /// Without a time limit it is an error at once if so many can no longer come; with one it is an error then.
    pub async fn wait(
        &self,
        count: usize,
        timeout: Option<Duration>,
    ) -> Result<Vec<Finished>, ExecutorError> {
        self.until(count, timeout, |state| {
            if let Some(taken) = state.take(count) {
                return Some(Ok(taken));
            }
            (timeout.is_none() && state.hopeful() < count).then(|| Err(not_enough(state, count)))
        })
        .await
    }

    /// What came of one task; `None` if it was rejected.
    pub async fn wait_for_task(
        &self,
        id: TaskId,
        timeout: Option<Duration>,
    ) -> Result<Option<Finished>, ExecutorError> {
        self.until(1, timeout, |state| match state.take_task(id) {
            Some(Ok(finished)) => Some(Ok(Some(finished))),
            Some(Err(Status::Rejected(_))) => Some(Ok(None)),
            Some(Err(Status::Failed(reason))) => Some(Err(ExecutorError::TaskFailed { id, reason })),
            // Accepted, and somebody else has it.
            Some(Err(Status::Accepted)) => Some(Err(ExecutorError::UnknownTask(id))),
            None if state.knows(id) => None,
            None => Some(Err(ExecutorError::UnknownTask(id))),
        })
        .await
    }

    /// Runs these and waits for all of them; those that were accepted, in their order. More than may be begun
    /// would wait for ever, and are refused.
    pub async fn rollout_batch(
        &self,
        tasks: impl IntoIterator<Item = Task>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Finished>, ExecutorError> {
        let tasks: Vec<Task> = tasks.into_iter().collect();
        let asked = tasks.iter().filter(|task| !task.is_eval).count();
        {
            let state = self.inner.state();
            let (owed, version) = (state.owed(), state.version);
            if asked as u64 > owed {
                return Err(ExecutorError::TooMany { asked, owed, version });
            }
        }
        let ids = self.submit_all(tasks)?;
        let wanted = ids.len();
        let (mut accepted, mut failed) = (Vec::new(), 0);
        let mut left = ids.iter().copied().peekable();
        let ended = self.until(wanted, timeout, |state| {
            // In their order, each until it has ended and never again: all of them have to, sooner or later.
            while let Some(id) = left.peek() {
                match state.take_task(*id) {
                    Some(Ok(finished)) => accepted.push(finished),
                    Some(Err(status)) => failed += usize::from(matches!(status, Status::Failed(_))),
                    None if state.knows(*id) => return None,
                    None => {}
                }
                left.next();
            }
            Some(match failed {
                failed if failed > 0 && failed == wanted => {
                    Err(ExecutorError::AllFailed { failed: failed as u64, reasons: state.reasons() })
                }
                _ => Ok(()),
            })
        });
        ended.await?;
        Ok(accepted)
    }

    /// One batch for the trainer, while `next` keeps the queue filled. `None` from `next` says that there are
    /// no more prompts; then the batch has what is left.
    pub async fn prepare_batch(
        &self,
        mut next: impl FnMut() -> Result<Option<Task>, ExecutorError>,
        dynamic: bool,
        timeout: Option<Duration>,
    ) -> Result<Vec<Finished>, ExecutorError> {
        let wanted = self.inner.config.pace.batch.get() as usize;
        let mut no_more = false;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut changes = self.inner.changes.subscribe();
        loop {
            while !no_more && self.inner.state().wants() > 0 {
                match next()? {
                    Some(task) => drop(self.submit(task)?),
                    None => no_more = true,
                }
            }
            {
                let mut state = self.inner.state();
                if let Some(taken) = state.take_batch(dynamic) {
                    drop(state);
                    self.inner.advance();
                    return Ok(taken);
                }
                self.inner.going(&state)?;
                if no_more && state.is_idle() {
                    let left = state.ready_len();
                    if left == 0 {
                        return Err(not_enough(&state, wanted));
                    }
                    return Ok(state.take(left).unwrap_or_default());
                }
            }
            self.changed(&mut changes, wanted, timeout, deadline).await?;
        }
    }

    /// Gives back what was taken and could not be used: it is ready again.
    pub fn give_back(&self, taken: Vec<Finished>) {
        self.inner.state().give_back(taken);
        self.inner.tell();
    }

    /// Waits until everything that was submitted has ended.
    pub async fn idle(&self) -> Result<Counts, ExecutorError> {
        self.until(0, None, |state| {
            let counts = state.counts();
            // A run that was stopped has ended too, and is told why.
            (state.stopped.is_none() && state.is_idle()).then(|| match counts {
                Counts { accepted: 0, rejected: 0, failed, .. } if failed > 0 => {
                    Err(ExecutorError::AllFailed { failed, reasons: state.reasons() })
                }
                counts => Ok(counts),
            })
        })
        .await
    }

    /// Nothing new is begun; what runs goes on.
    pub fn pause(&self) {
        self.inner.state().paused = true;
    }

    pub fn resume(&self) {
        self.inner.state().paused = false;
        self.inner.advance();
    }

    /// The trainer has new weights, and the engine has them too.
    pub fn set_version(&self, version: i32) {
        self.inner.engine.set_version(version);
        let stale = self.inner.state().set_version(version);
        self.inner.advance();
        if !stale.is_empty() && !self.inner.sinks.is_empty() {
            self.inner.runtime.spawn(Arc::clone(&self.inner).say_again(stale));
        }
    }

    /// Groups that count as accepted though others made them, or, if negative, no longer do: what a yard held
    /// before this executor began, and what a yard has dropped since. Without the first too much is begun, without
    /// the second the trainer waits for ever.
    pub fn charge(&self, groups: i64) {
        self.inner.state().charge_elsewhere(groups);
        self.inner.advance();
    }

    pub fn version(&self) -> i32 {
        self.inner.state().version
    }

    /// Stops a task, wherever it is; false if it has ended.
    pub fn cancel(&self, id: TaskId) -> bool {
        let cancelled = self.inner.state().cancel(id);
        self.inner.advance();
        cancelled
    }

    pub fn stats(&self) -> Stats {
        let state = self.inner.state();
        let now = Instant::now();
        let ages = state.running.values().map(|running| now.duration_since(running.started));
        Stats {
            counts: state.counts(),
            ready: state.ready_len(),
            version: state.version,
            capacity: state.capacity(),
            paused: state.paused,
            oldest_running_secs: ages.max().unwrap_or_default().as_secs_f64(),
        }
    }

    /// What runs, the longest first.
    pub fn running(&self) -> Vec<RunningTask> {
        self.inner.state().running_tasks(Instant::now())
    }

    /// Why attempts have failed so far.
    pub fn reasons(&self) -> Reasons {
        self.inner.state().reasons()
    }

    pub fn engine(&self) -> &SharedEngine {
        &self.inner.engine
    }

    /// Cancels what runs and waits. What is ready can still be taken.
    pub fn close(&self) {
        self.inner.stop(Stopped::Closed);
    }

    /// Asks at every change until there is an answer.
    async fn until<T>(
        &self,
        wanted: usize,
        timeout: Option<Duration>,
        mut ask: impl FnMut(&mut State) -> Option<Result<T, ExecutorError>>,
    ) -> Result<T, ExecutorError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut changes = self.inner.changes.subscribe();
        loop {
            {
                let mut state = self.inner.state();
                if let Some(answer) = ask(&mut state) {
                    drop(state);
                    self.inner.advance();
                    return answer;
                }
                self.inner.going(&state)?;
            }
            self.changed(&mut changes, wanted, timeout, deadline).await?;
        }
    }

    async fn changed(
        &self,
        changes: &mut watch::Receiver<u64>,
        wanted: usize,
        timeout: Option<Duration>,
        deadline: Option<Instant>,
    ) -> Result<(), ExecutorError> {
        // The sender lives as long as we do.
        let changed = async { changes.changed().await.unwrap_or_default() };
        let Some(deadline) = deadline else {
            changed.await;
            return Ok(());
        };
        tokio::time::timeout_at(deadline, changed).await.map_err(|_| {
            let state = self.inner.state();
            ExecutorError::Timeout {
                wanted,
                ready: state.ready_len(),
                secs: timeout.unwrap_or_default().as_secs_f64(),
                counts: state.counts(),
                reasons: state.reasons(),
            }
        })
    }
}

fn not_enough(state: &State, wanted: usize) -> ExecutorError {
    let (counts, reasons) = (state.counts(), state.reasons());
    if counts.accepted + counts.rejected == 0 && counts.failed > 0 {
        return ExecutorError::AllFailed { failed: counts.failed, reasons };
    }
    ExecutorError::NotEnough { wanted, possible: state.hopeful(), counts, reasons }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    fn going(&self, state: &State) -> Result<(), ExecutorError> {
        match &state.stopped {
            None => Ok(()),
            Some(Stopped::Closed) => Err(ExecutorError::Closed),
            Some(Stopped::Sink(why)) => Err(ExecutorError::Sink(why.clone())),
            Some(Stopped::Stale { in_a_row, head_version, version }) => Err(ExecutorError::Stale {
                in_a_row: *in_a_row,
                head_version: *head_version,
                version: *version,
            }),
            Some(Stopped::Failing { in_a_row }) => {
                Err(ExecutorError::Failing { in_a_row: *in_a_row, reasons: state.reasons() })
            }
        }
    }

    fn stop(&self, why: Stopped) {
        self.state().stop(why);
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|change| *change += 1);
    }
}

#[cfg(test)]
mod tests;
