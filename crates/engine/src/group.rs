//! A prompt's episodes, run side by side.
//!
//! A group is one future: whoever drops it has stopped every one of its episodes. A member that fails is tried
//! again within its budget, and what becomes of the group when that is used up is the user's choice
//! ([`Incomplete`]). A member that returned nothing was rejected by its workflow, which is no failure.

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::episode::{Context, Data, EpisodeError, SharedWorkflow, Trajectory};
use crate::generate::SharedEngine;

/// What becomes of a group whose member failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// The member is tried until it succeeds; only the run's own budget ends it.
    Wait,
    /// Another episode with a seed of its own takes its place, as many times as the group has members.
    Replace,
    /// The group goes on without it, if at least so many members are left.
    Accept { at_least: u32 },
    /// The other members are cancelled and the group has failed.
    Drop,
}

impl Default for Incomplete {
    fn default() -> Self {
        Self::Accept { at_least: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("incomplete is {0:?}, but must be wait, replace, drop, accept, or accept:K for at least K members")]
pub struct BadIncomplete(String);

impl FromStr for Incomplete {
    type Err = BadIncomplete;

    fn from_str(text: &str) -> Result<Self, BadIncomplete> {
        let bad = || BadIncomplete(text.to_owned());
        match text.split_once(':') {
            None => match text {
                "wait" => Ok(Self::Wait),
                "replace" => Ok(Self::Replace),
                "drop" => Ok(Self::Drop),
                "accept" => Ok(Self::default()),
                _ => Err(bad()),
            },
            Some(("accept", least)) => match least.parse() {
                Ok(at_least) if at_least > 0 => Ok(Self::Accept { at_least }),
                _ => Err(bad()),
            },
            Some(_) => Err(bad()),
        }
    }
}

/// How the episodes of a group are run.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRules {
    /// Times a member is tried before it has failed.
    pub attempts: u32,
    pub incomplete: Incomplete,
    /// The longest an attempt may take; for ever, if left out.
    pub episode_timeout: Option<Duration>,
    /// Before the second attempt; doubles with every further one.
    pub backoff: Duration,
}

impl Default for GroupRules {
    fn default() -> Self {
        Self {
            attempts: 3,
            incomplete: Incomplete::default(),
            episode_timeout: None,
            backoff: Duration::from_millis(200),
        }
    }
}

/// Longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What became of one member.
#[derive(Clone, Debug)]
pub struct Member {
    pub sample_idx: u32,
    /// Times it was tried.
    pub attempts: u32,
    /// Of the last attempt.
    pub elapsed: Duration,
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Done(Trajectory),
    /// The workflow returned nothing.
    Rejected,
    Failed(EpisodeError),
    /// Stopped because the group was given up.
    Cancelled,
}

/// How far a group is, for people who look while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    pub members_done: AtomicU32,
    pub attempts_failed: AtomicU32,
}

/// All that the members of one group share.
#[derive(Debug)]
pub struct Group {
    pub engine: SharedEngine,
    pub workflow: SharedWorkflow,
    pub data: Arc<Data>,
    pub size: u32,
    pub run: Arc<str>,
    pub task_id: u64,
    pub is_eval: bool,
    pub run_seed: u64,
    pub rules: GroupRules,
    pub progress: Arc<Progress>,
}

/// Is told how every attempt ended, so that a run in which everything fails can be stopped.
pub trait Watch: Sync {
    fn attempt_ended(&self, error: Option<&EpisodeError>);
}

impl Group {
    /// Runs all members; what became of each, by its place in the group.
    pub async fn run(&self, watch: &impl Watch) -> Vec<Member> {
        let mut running: FuturesUnordered<_> = (0..self.size).map(|idx| self.member(idx, watch)).collect();
        let mut members = Vec::with_capacity(self.size as usize);
        let mut next_idx = self.size;
        while let Some(member) = running.next().await {
            let failed = matches!(member.outcome, Outcome::Failed(_));
            self.progress.members_done.fetch_add(1, Ordering::Relaxed);
            members.push(member);
            match self.rules.incomplete {
                Incomplete::Drop if failed => break,
                Incomplete::Replace if failed && next_idx < 2 * self.size => {
                    running.push(self.member(next_idx, watch));
                    next_idx += 1;
                }
                _ => {}
            }
        }
        // Their futures are gone, and with them whatever they had begun.
        drop(running);
        for sample_idx in 0..self.size {
            if members.len() < self.size as usize && !members.iter().any(|m| m.sample_idx == sample_idx) {
                let (attempts, elapsed) = (0, Duration::ZERO);
                members.push(Member { sample_idx, attempts, elapsed, outcome: Outcome::Cancelled });
            }
        }
        members.sort_unstable_by_key(|member| member.sample_idx);
        members
    }

    async fn member(&self, sample_idx: u32, watch: &impl Watch) -> Member {
        let mut attempt = 0;
        loop {
            let context = Context {
                run: Arc::clone(&self.run),
                task_id: self.task_id,
                sample_idx,
                attempt,
                is_eval: self.is_eval,
                seed: episode_seed(self.run_seed, self.task_id, sample_idx),
            };
            attempt += 1;
            let started = Instant::now();
            let ended = self.attempt(&context).await;
            let elapsed = started.elapsed();
            watch.attempt_ended(ended.as_ref().err());
            let outcome = match ended {
                Ok(Some(trajectory)) => Outcome::Done(trajectory),
                Ok(None) => Outcome::Rejected,
                Err(error) => {
                    self.progress.attempts_failed.fetch_add(1, Ordering::Relaxed);
                    let again = attempt < self.rules.attempts || self.rules.incomplete == Incomplete::Wait;
                    if again && error.may_pass() {
                        tokio::time::sleep(self.pause_after(attempt)).await;
                        continue;
                    }
                    Outcome::Failed(error)
                }
            };
            return Member { sample_idx, attempts: attempt, elapsed, outcome };
        }
    }

    async fn attempt(&self, context: &Context) -> Result<Option<Trajectory>, EpisodeError> {
        let episode = caught(&self.workflow, &self.engine, &self.data, context);
        match self.rules.episode_timeout {
            None => episode.await,
            Some(limit) => match tokio::time::timeout(limit, episode).await {
                Ok(ended) => ended,
                Err(_) => Err(EpisodeError::Timeout { secs: limit.as_secs_f64() }),
            },
        }
    }

    fn pause_after(&self, attempt: u32) -> Duration {
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1).min(16));
        self.rules.backoff.saturating_mul(doubled).min(BACKOFF_MAX)
    }
}

/// One episode. A panic is a fault of the workflow, and no reason to lose the others.
pub(crate) async fn caught(
    workflow: &SharedWorkflow,
    engine: &SharedEngine,
    data: &Data,
    context: &Context,
) -> Result<Option<Trajectory>, EpisodeError> {
    let episode = AssertUnwindSafe(async { workflow.run_episode(engine, data, context).await });
    let ended = episode.catch_unwind().await;
    ended.unwrap_or_else(|panic| Err(EpisodeError::Workflow(panic_message(panic.as_ref()))))
}

/// The same for the same run, task and sample, on any machine and at any attempt.
///
/// It fits 31 bits: not every engine takes more.
pub fn episode_seed(run_seed: u64, task_id: u64, sample_idx: u32) -> u64 {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&task_id.to_le_bytes());
    place[8..].copy_from_slice(&sample_idx.to_le_bytes());
    xxh3_64_with_seed(&place, run_seed) >> 33
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the workflow panicked: {}", text.unwrap_or("without a word"))
}
