//! What goes into the executor and what comes out, beside what was made.

use serde::Serialize;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

use super::failures::Reasons;
use super::finished::{Finished, Reason, TaskId};
use super::pace::Pace;
use super::state::{Counts, Running};
use crate::episode::{Data, SharedWorkflow};
use crate::group::{GroupRules, Progress};

#[derive(Clone, Debug)]
pub struct ExecutorConfig {
    /// The name of the run, for workflows that ask.
    pub run: Arc<str>,
    pub pace: Pace,
    pub rules: GroupRules,
    /// Every episode gets its own seed from it.
    pub seed: u64,
    /// Attempts that may fail one after the other, over all tasks, before the run is stopped; by default four
    /// times as many as may run at once, and a hundred at least.
    pub failures_in_a_row_max: Option<u64>,
    /// What is accepted waits to be taken. Where sinks have it all, nobody will.
    pub keep: bool,
}

impl ExecutorConfig {
    pub fn new(pace: Pace) -> Self {
        Self {
            run: Arc::from("default"),
            pace,
            rules: GroupRules::default(),
            seed: 0,
            failures_in_a_row_max: None,
            keep: true,
        }
    }
}

/// Says whether a group is worth training on; an error is the filter's own.
pub type Accept = Arc<dyn Fn(&Finished) -> Result<bool, String> + Send + Sync>;

#[derive(Clone)]
pub struct Task {
    /// Larger than all before it; the next, if left out.
    pub id: Option<u64>,
    pub data: Arc<Data>,
    pub workflow: SharedWorkflow,
    pub group_size: NonZeroU32,
    pub accept: Option<Accept>,
    /// Not paced, and counted apart in statistics.
    pub is_eval: bool,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("id", &self.id).field("workflow", &self.workflow).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecutorError {
    #[error("the executor is closed")]
    Closed,
    #[error("{in_a_row} attempts failed one after the other, so the run was stopped: {reasons}")]
    Failing { in_a_row: u64, reasons: Reasons },
    #[error("all {failed} tasks failed: {reasons}")]
    AllFailed { failed: u64, reasons: Reasons },
    #[error(
        "{in_a_row} groups one after the other were too old when they ended, so the run was stopped: their tokens are of \
         version {head_version}, and the executor was told {version}; give the engine its new weights before set_version, \
         or allow a larger max_head_offpolicyness"
    )]
    Stale { in_a_row: u64, head_version: i32, version: i32 },
    #[error(
        "{asked} groups were asked for at once, but only {owed} more may be begun at version {version}; call set_version \
         first, allow a larger max_head_offpolicyness, or mark them as evaluation"
    )]
    TooMany { asked: usize, owed: u64, version: i32 },
    #[error("what was made could not be kept, so the run was stopped: {0}")]
    Sink(String),
    #[error(
        "{wanted} results were asked for, but only {possible} can still come: {} accepted, {} rejected and {} failed of \
         {} tasks{}", .counts.accepted, .counts.rejected, .counts.failed, .counts.submitted, said(.reasons)
    )]
    NotEnough { wanted: usize, possible: usize, counts: Counts, reasons: Reasons },
    #[error(
        "{wanted} results were asked for, but {ready} were ready after {secs} s: {} running, {} enqueued{}",
        .counts.running, .counts.enqueued, said(.reasons)
    )]
    Timeout { wanted: usize, ready: usize, secs: f64, counts: Counts, reasons: Reasons },
    #[error("task id {id} is not larger than those before it; the next free one is {next}")]
    BadId { id: u64, next: u64 },
    #[error("there is no task {0}: it was never submitted, or was taken long ago")]
    UnknownTask(TaskId),
    #[error("task {id} failed: {reason}")]
    TaskFailed { id: TaskId, reason: Reason },
}

fn said(reasons: &Reasons) -> String {
    if reasons.counted.is_empty() { String::new() } else { format!("; failed attempts: {reasons}") }
}

/// One that runs, for people who look for what holds the others up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunningTask {
    pub id: TaskId,
    pub age_secs: f64,
    pub started_version: i32,
    pub group_size: u32,
    pub members_done: u32,
    pub attempts_failed: u32,
    pub is_eval: bool,
}

impl RunningTask {
    pub(super) fn of(id: TaskId, running: &Running, now: Instant) -> Self {
        let Progress { members_done, attempts_failed } = running.progress.as_ref();
        Self {
            id,
            age_secs: now.duration_since(running.started).as_secs_f64(),
            started_version: running.started_version,
            group_size: running.group_size,
            members_done: members_done.load(Ordering::Relaxed),
            attempts_failed: attempts_failed.load(Ordering::Relaxed),
            is_eval: running.is_eval,
        }
    }
}

/// A look at everything.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    #[serde(flatten)]
    pub counts: Counts,
    /// Accepted and not yet taken.
    pub ready: usize,
    pub version: i32,
    /// Groups that may be begun now.
    pub capacity: u64,
    pub paused: bool,
    pub oldest_running_secs: f64,
}
