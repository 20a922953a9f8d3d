//! Where groups meet the hooks of their generator.
//!
//! The ledger poses a group once it could be ready. One task a run takes what is posed, many groups at a time, reads
//! their rollouts, calls the hooks and tells the ledger what they said. Writers and readers never wait for it: until a
//! group is ruled on it is simply not ready. If a call fails as a whole, because a hook hangs or its process dies, the
//! groups are tried one by one, so that only the one to blame is dropped.

use futures_util::future::join_all;
use rollyard_core::ids::GroupNo;
use rollyard_core::ledger::{Command, Ledger, PosedGroup, Ruling};
use rollyard_core::pipeline::DropReason;
use rollyard_core::run_config::RunConfig;
use rollyard_engine::generator::Generator;
use rollyard_engine::generator::hooks::{Candidate, HookError};
use rollyard_store::log::ReadError;
use rollyard_store::yard::{Yard, YardError};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Generators, meta};

/// Groups in one call, at most.
const GROUPS_TOGETHER: usize = 64;

/// Bytes of rollouts in one call, at most; a single group may be larger.
const BYTES_TOGETHER: u64 = 8 << 20;

/// How long to wait before hooks that cannot be called, or bytes that cannot be read, are tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A rollout that was moved within the log while it was looked for is found the next time; one that is not found so
/// often is lost.
const READS_MAX: u32 = 5;

/// Sees to it that the posed groups of a run are judged. Called for every run when it is opened; once is enough.
pub(crate) fn attach(
    generators: &Arc<Generators>,
    yard: &Yard,
    tasks: &TaskTracker,
    stopping: &CancellationToken,
) {
    let Some(asks) = generators.metas.attach(yard.run_name().as_str()) else { return };
    let reviewer = Reviewer {
        generators: Arc::clone(generators),
        yard: yard.clone(),
        misses: HashMap::new(),
        told: None,
    };
    let released = generators.metas.released(yard.run_name().as_str(), stopping);
    tasks.spawn(released.clone().run_until_cancelled_owned(reviewer.run()));
    let follow = meta::follow(Arc::clone(generators), yard.clone(), asks);
    tasks.spawn(released.run_until_cancelled_owned(follow));
}

struct Reviewer {
    generators: Arc<Generators>,
    yard: Yard,
    /// How often the rollouts of a group could not be found.
    misses: HashMap<GroupNo, u32>,
    /// What was last said about hooks that cannot be called: once is enough.
    told: Option<String>,
}

/// What is to be judged in one call.
struct Batch {
    config: RunConfig,
    posed: Vec<PosedGroup>,
}

impl Reviewer {
    async fn run(mut self) {
        let mut posed = self.yard.posed();
        loop {
            posed.mark_unchanged();
            match self.yard.ask(next_batch).await {
                Ok(Some(batch)) => {
                    if let Err(error) = self.judge(batch).await {
                        self.wait(error).await;
                    }
                }
                Ok(None) => {
                    self.misses.clear();
                    if posed.changed().await.is_err() {
                        return;
                    }
                }
                Err(YardError::Closed | YardError::Moved { .. }) => return,
                Err(error) => self.wait(error.to_string()).await,
            }
        }
    }

    /// Says why nothing goes on, once, and lets some time pass.
    async fn wait(&mut self, why: String) {
        if self.told.as_ref() != Some(&why) {
            self.generators.tell(&self.yard, &why).await;
            self.told = Some(why);
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }

    async fn judge(&mut self, batch: Batch) -> Result<(), String> {
        self.generators.looked().await;
        let Batch { config, posed } = batch;
        let Some(generator) = self.generators.find(&config.task_type) else {
            return Err(format!(
                "{} groups and more wait for the hooks of task {:?}, but no generator file for it is loaded; start the \
                 server with --generators DIR, or set the knobs that are `hook` to something else",
                posed.len(),
                config.task_type
            ));
        };
        let candidates = self.read(posed).await?;
        let rulings = rule(&generator, &config, &candidates).await?;
        self.told = None;
        for (ruling, candidate) in rulings.iter().zip(&candidates) {
            if let Ruling::Drop { reason: DropReason::HookFailed, why: Some(why) } = ruling {
                let Candidate { posed, .. } = candidate;
                let line = format!("group {} (instance {:?}) dropped: {why}", posed.group, posed.instance);
                self.generators.print(&generator.file, &line);
            }
        }
        let commands = rulings.into_iter().zip(&candidates).map(|(ruling, candidate)| {
            let PosedGroup { group, seen, .. } = candidate.posed;
            self.yard.run(Command::Judge { group, seen, ruling })
        });
        for outcome in join_all(commands).await {
            outcome.map_err(|error| format!("what the hooks said could not be noted: {error}"))?;
        }
        Ok(())
    }

    /// The groups with their rollouts; one whose bytes are damaged loses these, and is posed again without.
    async fn read(&mut self, posed: Vec<PosedGroup>) -> Result<Vec<Candidate>, String> {
        let yard = self.yard.clone();
        let read = tokio::task::spawn_blocking(move || {
            posed.into_iter().map(|posed| candidate(&yard, posed)).collect::<Vec<_>>()
        });
        let mut candidates = Vec::new();
        for outcome in read.await.map_err(|error| error.to_string())? {
            match outcome {
                Ok(candidate) => candidates.push(candidate),
                Err(Unread { group, uid, error }) => {
                    let misses = self.misses.entry(group).or_default();
                    *misses += 1;
                    let moved = matches!(error, ReadError::Gone { .. }) && *misses < READS_MAX;
                    if matches!(error, ReadError::Io { .. }) {
                        return Err(format!("the rollouts of group {group} cannot be read: {error}"));
                    } else if !moved {
                        tracing::error!("dropping a damaged rollout: {error}");
                        self.yard.run(Command::Discard { uid }).await.map_err(|error| error.to_string())?;
                    }
                }
            }
        }
        Ok(candidates)
    }
}

/// What can be judged together: groups of one size, not too many bytes.
fn next_batch(ledger: &Ledger) -> Option<Batch> {
    let mut posed = ledger.posed(GROUPS_TOGETHER, |_, _| false);
    let size = posed.first()?.group_size;
    let mut bytes = 0;
    let mut fits = 0;
    for group in &posed {
        bytes += group.rollouts.iter().map(|rollout| u64::from(rollout.size_bytes)).sum::<u64>();
        if group.group_size != size || (bytes > BYTES_TOGETHER && fits > 0) {
            break;
        }
        fits += 1;
    }
    posed.truncate(fits);
    Some(Batch { config: ledger.config().clone(), posed })
}

struct Unread {
    group: GroupNo,
    uid: rollyard_core::ledger::Uid,
    error: ReadError,
}

fn candidate(yard: &Yard, posed: PosedGroup) -> Result<Candidate, Unread> {
    let mut items = Vec::with_capacity(posed.rollouts.len());
    for rollout in &posed.rollouts {
        let unread = |error| Unread { group: posed.group, uid: rollout.uid, error };
        let payload = yard.payload(rollout.place).map_err(unread)?;
        // It was JSON when it was admitted.
        let item = serde_json::from_slice(&payload);
        let damaged = |_| {
            let (what, path) = ("it is not the JSON it was", PathBuf::new());
            unread(ReadError::Corrupt { place: rollout.place, what, path })
        };
        items.push(item.map_err(damaged)?);
    }
    Ok(Candidate { posed, items })
}

/// What the hooks say of each, or of as many as they could be asked about; or why of none.
async fn rule(
    generator: &Generator,
    config: &RunConfig,
    candidates: &[Candidate],
) -> Result<Vec<Ruling>, String> {
    let within = Duration::from_secs_f64(config.hook_seconds);
    match generator.review(config, candidates, within).await {
        Ok(rulings) => return Ok(rulings),
        Err(error @ HookError::Unavailable(_)) => return Err(error.to_string()),
        Err(error) => {
            tracing::warn!(file = %generator.file.display(), "hooks, {} groups: {error}", candidates.len())
        }
    }
    let mut rulings = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        rulings.push(match generator.review(config, std::slice::from_ref(candidate), within).await {
            Ok(mut one) => one.pop().unwrap_or(Ruling::Waiting),
            Err(error @ HookError::Unavailable(_)) if rulings.is_empty() => return Err(error.to_string()),
            // What was said so far holds; the others stay posed.
            Err(HookError::Unavailable(_)) => break,
            Err(error) => Ruling::Drop { reason: DropReason::HookFailed, why: Some(error.to_string()) },
        });
    }
    Ok(rulings)
}
