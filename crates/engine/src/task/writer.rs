//! Brings finished rollouts to the shelf, many at a time.
//!
//! While one batch is written the next one gathers, so a fast shelf has small batches and a slow one large ones,
//! and nobody waits for a clock. A full shelf is waited for: whoever reads from it makes room.

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::TaskError;
use super::progress::{Progress, count};
use super::shelf::{Refused, Shelf};
use crate::clients::backoff::Backoff;

const BATCH: usize = 256;
const ROOM: Backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_secs(1) };

/// With so many refused and none taken in between, nothing that is made can be kept.
const REFUSED_IN_A_ROW: u32 = 64;

/// An item, and its place among those that are under way: the place is free when the item is written.
pub(super) type Finished = (Bytes, OwnedSemaphorePermit);

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) shelf: Arc<dyn Shelf>,
    pub(super) progress: Arc<Progress>,
    pub(super) stop: CancellationToken,
}

impl Writer {
    /// Until nobody sends any more and all is written.
    pub(super) async fn run(self, mut finished: Receiver<Finished>) -> Result<(), TaskError> {
        let mut refused_in_a_row = 0;
        loop {
            let mut batch = Vec::new();
            if finished.recv_many(&mut batch, BATCH).await == 0 {
                return Ok(());
            }
            let mut tries = 0;
            while !batch.is_empty() {
                if tries > 0 && !self.wait_for_room(tries).await {
                    // They are made again when the task is.
                    tracing::warn!(
                        "{} finished rollouts found no room before the task was stopped",
                        batch.len()
                    );
                    break;
                }
                tries += 1;
                batch = self.write(batch, &mut refused_in_a_row).await?;
            }
            if tries > 1 {
                self.progress.goes_on();
            }
        }
    }

    /// Those that there was no room for.
    async fn write(
        &self,
        batch: Vec<Finished>,
        refused_in_a_row: &mut u32,
    ) -> Result<Vec<Finished>, TaskError> {
        let items = batch.iter().map(|(item, _)| item.clone()).collect();
        let answers = self.shelf.write(items).await?;
        let mut left = Vec::new();
        let mut answers = answers.into_iter();
        for finished in batch {
            match answers.next() {
                Some(Ok(_)) => {
                    count(&self.progress.written);
                    *refused_in_a_row = 0;
                }
                Some(Err(refused)) if refused.code == "uid_taken" => {
                    count(&self.progress.written);
                    *refused_in_a_row = 0;
                }
                Some(Err(refused)) if may_pass(&refused) => {
                    self.progress.waits_for(format!("the yard has no room: {refused}"));
                    left.push(finished);
                }
                Some(Err(refused)) => {
                    count(&self.progress.refused);
                    tracing::error!("the yard refused a rollout: {refused}");
                    self.progress.failure(format!("the yard refused a rollout: {refused}"));
                    *refused_in_a_row += 1;
                    if *refused_in_a_row >= REFUSED_IN_A_ROW {
                        return Err(TaskError::Refused { times: *refused_in_a_row, refused });
                    }
                }
                // Not answered is not written.
                None => left.push(finished),
            }
        }
        Ok(left)
    }

    /// False when the task is stopped first.
    async fn wait_for_room(&self, tries: u32) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(ROOM.after(tries)) => true,
        }
    }
}

fn may_pass(refused: &Refused) -> bool {
    matches!(refused.code.as_str(), "full" | "paced")
}
