//! So many rollouts under way as may be, and no more in memory than that asks for.
//!
//! A plan is fed in through a short channel, and a writer takes out what is finished. A rollout keeps its place
//! until it is written, so a shelf that is full holds the engine back. Nothing grows with the data set.

use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::TaskError;
use super::maker::Maker;
use super::plan::{Plan, Work};
use super::progress::{Progress, UnderWay};
use super::shelf::Shelf;
use super::writer::{Finished, Writer};
use crate::generate::EngineError;

/// Rollouts that are ready to be begun.
const FED: usize = 256;
/// Rollouts that are finished and wait for the shelf, beside those under way.
const UNWRITTEN: usize = 1024;
/// So many failures before the first success are not the fault of single prompts: the engine is asked for
/// something that it does not do.
const FAILED_FIRST: u64 = 64;

#[derive(Debug)]
pub(super) struct Window {
    pub(super) maker: Arc<Maker>,
    pub(super) shelf: Arc<dyn Shelf>,
    pub(super) at_once: usize,
}

/// The feeder and the writer. Dropped, they end.
type Stages = JoinSet<Result<(), TaskError>>;

impl Window {
    /// Until all is written or it is stopped. What is finished is written, however it ends.
    pub(super) async fn make_all(&self, plan: Plan, stop: &CancellationToken) -> Result<(), TaskError> {
        let (feed, fed) = mpsc::channel(FED);
        // As many as have a place, so that nobody waits to be taken.
        let (finish, finished) = mpsc::channel(self.places());
        let (shelf, progress) = (|| Arc::clone(&self.shelf), || Arc::clone(&self.maker.progress));
        let give_up = stop.child_token();
        let writer = Writer { shelf: shelf(), progress: progress(), stop: give_up.clone() };
        let mut stages = Stages::new();
        stages.spawn(plan.feed(shelf(), progress(), feed));
        stages.spawn(writer.run(finished));
        let mut ended = self.begin_all(fed, finish, &mut stages, stop).await;
        if ended.is_err() {
            // Whoever wants to know what went wrong does not wait until a full shelf has room.
            give_up.cancel();
        }
        while let Some(stage) = stages.join_next().await {
            ended = ended.and(stage.map_err(TaskError::from).flatten());
        }
        ended
    }

    fn places(&self) -> usize {
        self.at_once + UNWRITTEN
    }

    /// Begins a rollout whenever there is room, until there are no more. None is under way when this returns.
    async fn begin_all(
        &self,
        mut fed: mpsc::Receiver<Work>,
        finish: mpsc::Sender<Finished>,
        stages: &mut Stages,
        stop: &CancellationToken,
    ) -> Result<(), TaskError> {
        let room = Arc::new(Semaphore::new(self.places()));
        let mut under_way: JoinSet<Result<(), EngineError>> = JoinSet::new();
        let mut all_begun = false;
        let ended = loop {
            if all_begun && under_way.is_empty() {
                break Ok(());
            }
            let next = async { (Arc::clone(&room).acquire_owned().await.ok(), fed.recv().await) };
            let so_far = tokio::select! {
                () = stop.cancelled() => break Ok(()),
                Some(stage) = stages.join_next() => stage.map_err(TaskError::from).flatten(),
                Some(made) = under_way.join_next() => match made {
                    Ok(Ok(())) => hopeful(&self.maker.progress),
                    Ok(Err(error)) => Err(error.into()),
                    Err(error) => Err(error.into()),
                },
                next = next, if !all_begun && under_way.len() < self.at_once => {
                    match next {
                        (Some(place), Some(work)) => {
                            let (maker, finish) = (Arc::clone(&self.maker), finish.clone());
                            under_way.spawn(async move {
                                let counted = UnderWay::begin(&maker.progress);
                                let item = maker.make(&work).await?;
                                drop(counted);
                                // A writer that is gone has said why.
                                let _gone = finish.send((item, place)).await;
                                Ok(())
                            });
                        }
                        _ => all_begun = true,
                    }
                    Ok(())
                }
            };
            if so_far.is_err() {
                break so_far;
            }
        };
        // Dropping a request cancels it on the engine too.
        under_way.shutdown().await;
        ended
    }
}

fn hopeful(progress: &Progress) -> Result<(), TaskError> {
    match progress.failed_first() {
        times @ FAILED_FIRST.. => {
            Err(TaskError::AllFailed { times, error: progress.last_error().unwrap_or_default() })
        }
        _ => Ok(()),
    }
}
