//! Makes batches durable, then lets the answers go.

use std::sync::Arc;
use tokio::sync::broadcast;

use super::answer::YardError;
use super::{News, Request};
use crate::log::{Commit, KeepSnapshots, LogError, Release};

/// Tells somebody the outcome: `None` if all went well.
pub(super) type Answer = Box<dyn FnOnce(Option<YardError>) + Send>;

/// What the sequencer hands over at once.
pub(super) struct Work<B> {
    pub(super) batch: Option<B>,
    pub(super) answers: Vec<Answer>,
    pub(super) news: Vec<News>,
    pub(super) releases: Vec<Release>,
    /// The ledger after this batch, and the batch's last record.
    pub(super) snapshot: Option<(u64, Vec<u8>)>,
}

pub(super) struct Syncer<W: Commit, S: KeepSnapshots> {
    pub(super) run: Arc<str>,
    pub(super) writer: W,
    pub(super) snapshots: S,
    pub(super) work: flume::Receiver<Work<W::Batch>>,
    pub(super) synced: flume::Sender<Result<(), LogError>>,
    /// To wake a sequencer that waits for requests.
    pub(super) requests: flume::WeakSender<Request>,
    pub(super) news: broadcast::Sender<News>,
}

impl<W: Commit, S: KeepSnapshots> Syncer<W, S> {
    /// Works until the sequencer hangs up or the log fails.
    pub(super) fn serve(mut self) {
        let mut snapshotting: Option<std::thread::JoinHandle<()>> = None;
        while let Ok(work) = self.work.recv() {
            let outcome = work.batch.map_or(Ok(()), |batch| self.writer.commit(batch));
            let failed = outcome.as_ref().err().map(|error| YardError::Log(error.clone()));
            // The sequencer first: it can build the next batch while the answers go out.
            let broken = outcome.is_err();
            let _stopping = self.synced.send(outcome);
            if let Some(requests) = self.requests.upgrade() {
                let _busy_anyway = requests.try_send(Request::Wake);
            }
            for answer in work.answers {
                answer(failed.clone());
            }
            if broken {
                break;
            }
            if self.news.receiver_count() > 0 {
                for news in work.news {
                    let _nobody_listens = self.news.send(news);
                }
            }
            self.release(work.releases);
            if let Some((seq, bytes)) = work.snapshot {
                join(snapshotting.take());
                snapshotting = self.write_snapshot(seq, bytes);
            }
        }
        join(snapshotting);
        if let Err(error) = self.writer.close() {
            tracing::error!(run = %self.run, "closing the log: {error}");
        }
    }

    fn release(&mut self, releases: Vec<Release>) {
        for release in releases {
            let segment = release.segment();
            match self.writer.release(release) {
                Ok(bytes) => tracing::debug!(run = %self.run, %segment, bytes, "released consumed payloads"),
                // Only disk space is at stake; it is tried again after the next start.
                Err(error) => tracing::warn!(run = %self.run, %segment, "releasing payloads: {error}"),
            }
        }
    }

    /// A snapshot is many megabytes, so it is written beside the batches.
    fn write_snapshot(&self, seq: u64, bytes: Vec<u8>) -> Option<std::thread::JoinHandle<()>> {
        let (snapshots, run) = (self.snapshots.clone(), Arc::clone(&self.run));
        let write = move || match snapshots.write(seq, &bytes) {
            Ok(()) => tracing::debug!(%run, seq, bytes = bytes.len(), "wrote a snapshot"),
            Err(error) => tracing::warn!(%run, seq, "writing a snapshot: {error}"),
        };
        std::thread::Builder::new().name("snapshot".into()).spawn(write).ok()
    }
}

fn join(thread: Option<std::thread::JoinHandle<()>>) {
    if let Some(thread) = thread
        && thread.join().is_err()
    {
        tracing::error!("a snapshot thread panicked");
    }
}
