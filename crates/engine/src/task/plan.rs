//! The order of work, and what of it is still to be done.
//!
//! Epoch by epoch, problem by problem, the repeats of a problem next to each other: a group's members are sampled
//! at about the same time, and share the cache of a server. The order of each epoch is drawn by the seed, and is
//! the same whenever the task is started again.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::TaskError;
use super::input::{Input, Instance};
use super::payload::StartPayload;
use super::progress::{self, Progress};
use super::shelf::{KNOWN_MAX, Shelf};

/// Rollouts whose names are asked after together.
const BLOCK: usize = 4096;

#[derive(Debug)]
pub(super) struct Plan {
    input: Arc<Input>,
    epochs: NonZeroU32,
    repeats: NonZeroU32,
    seed: u64,
    /// In how many epochs a problem is skipped, from the first on.
    skipped: HashMap<String, u32>,
}

/// One rollout to make.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) uid: String,
    pub(super) instance: Arc<Instance>,
    /// Of the problem in this epoch: the repeats share it.
    pub(super) group: u64,
    pub(super) epoch: u32,
    pub(super) repeat: u32,
}

impl Plan {
    pub(super) fn new(input: Arc<Input>, payload: &StartPayload) -> Self {
        let mut skipped = HashMap::new();
        for id in &payload.skip_instance_ids {
            *skipped.entry(id.clone()).or_insert(0) += 1;
        }
        Self {
            input,
            epochs: payload.num_epoch,
            repeats: payload.num_repeat_per_sample,
            seed: payload.seed,
            skipped,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.input.len() as u64 * u64::from(self.epochs.get()) * u64::from(self.repeats.get())
    }

    /// Every problem of an epoch, as places in the input.
    fn order(&self, epoch: u32) -> Vec<usize> {
        let of_epoch = xxh3_64_with_seed(&epoch.to_le_bytes(), self.seed);
        let mut order: Vec<usize> = (0..self.input.len()).collect();
        order.sort_by_cached_key(|index| xxh3_64_with_seed(&index.to_le_bytes(), of_epoch));
        order
    }

    fn is_skipped(&self, index: usize, epoch: u32) -> bool {
        let mentions = self.input.id(index).and_then(|id| self.skipped.get(id));
        mentions.is_some_and(|mentions| epoch < *mentions)
    }

    /// Sends all that is missing, as fast as it is taken.
    pub(super) async fn feed(
        self,
        shelf: Arc<dyn Shelf>,
        progress: Arc<Progress>,
        work: Sender<Work>,
    ) -> Result<(), TaskError> {
        let repeats = self.repeats.get() as usize;
        for epoch in 0..self.epochs.get() {
            let mut order = self.order(epoch);
            order.retain(|index| !self.is_skipped(*index, epoch));
            progress::add(&progress.skipped, (self.input.len() - order.len()) * repeats);
            for block in order.chunks((BLOCK / repeats).max(1)) {
                for missing in self.missing(block, epoch, &*shelf, &progress).await? {
                    // Whoever takes it away has stopped, and wants no more.
                    if work.send(missing).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn missing(
        &self,
        block: &[usize],
        epoch: u32,
        shelf: &dyn Shelf,
        progress: &Progress,
    ) -> Result<Vec<Work>, TaskError> {
        let named = |index: &usize| {
            let id = self.input.id(*index).unwrap_or_default();
            let index = *index;
            (0..self.repeats.get()).map(move |repeat| (index, repeat, uid(id, epoch, repeat)))
        };
        let all: Vec<(usize, u32, String)> = block.iter().flat_map(named).collect();
        let mut missing = Vec::new();
        let mut last: Option<(usize, Arc<Instance>)> = None;
        for asked in all.chunks(KNOWN_MAX) {
            let known = shelf.known(asked.iter().map(|(_, _, uid)| uid.clone()).collect()).await?;
            for (index, repeat, uid) in asked {
                if known.contains(uid) {
                    progress::count(&progress.known);
                    continue;
                }
                let instance = match last.take().filter(|(of, _)| of == index) {
                    Some((_, instance)) => instance,
                    None => match self.input.instance(*index) {
                        Some(instance) => Arc::new(instance?),
                        None => continue,
                    },
                };
                last = Some((*index, Arc::clone(&instance)));
                let group = u64::from(epoch) * self.input.len() as u64 + *index as u64;
                missing.push(Work { uid: uid.clone(), instance, group, epoch, repeat: *repeat });
            }
        }
        Ok(missing)
    }
}

/// The name of a rollout, the same whoever makes it.
fn uid(instance_id: &str, epoch: u32, repeat: u32) -> String {
    format!("{instance_id}:{epoch}:{repeat}")
}
