//! Makes a batch durable, then lets the answers go that waited for it.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::answer::YardError;
use super::hold::Hold;
use super::{News, Outlets};
use crate::log::{Commit, KeepSnapshots, LogError, Release};

/// Tells somebody the outcome: `None` if all went well.
pub(super) type Answer = Box<dyn FnOnce(Option<YardError>) + Send>;

/// What goes to the disk, and out, together.
pub(super) struct Work<B> {
    pub(super) batch: Option<B>,
    pub(super) answers: Vec<Answer>,
    pub(super) news: Vec<News>,
    /// Groups were posed, or knobs turned.
    pub(super) poses: bool,
    pub(super) releases: Vec<Release>,
    /// The ledger after this batch, and the batch's last record.
    pub(super) snapshot: Option<(u64, Vec<u8>)>,
}

pub(super) struct Committer<W: Commit, S: KeepSnapshots> {
    pub(super) run: Arc<str>,
    pub(super) writer: W,
    pub(super) snapshots: S,
    pub(super) snapshotting: Option<JoinHandle<()>>,
    pub(super) outlets: Outlets,
    pub(super) hold: Hold,
    /// Segments that the archive still needs. A crash loses nothing: they are found again.
    pub(super) held_back: Vec<Release>,
}

impl<W: Commit, S: KeepSnapshots> Committer<W, S> {
    pub(super) fn commit(&mut self, work: Work<W::Batch>) -> Result<(), LogError> {
        let outcome = match work.batch {
            Some(batch) => self.writer.commit(batch),
            None if work.answers.is_empty() => Ok(()),
            None => self.writer.confirm(),
        };
        let failed = outcome.as_ref().err().map(|error| YardError::from(error.clone()));
        for answer in work.answers {
            answer(failed.clone());
        }
        outcome?;
        self.hold.note_committed(self.writer.committed_seq());
        for news in work.news {
            let _nobody_listens = self.outlets.news.send(news);
        }
        if work.poses {
            self.outlets.posed.send_replace(());
        }
        self.release(work.releases);
        if let Some((seq, bytes)) = work.snapshot {
            self.write_snapshot(seq, bytes);
        }
        Ok(())
    }

    /// Closes the log; what could not be finished is left for the next start.
    pub(super) fn close(mut self) {
        self.join_snapshot();
        if let Err(error) = self.writer.close() {
            tracing::error!(run = %self.run, "closing the log: {error}");
        }
    }

    fn release(&mut self, releases: Vec<Release>) {
        self.held_back.extend(releases);
        let archived_seq = self.hold.archived_seq();
        let (free, held_back) = std::mem::take(&mut self.held_back)
            .into_iter()
            .partition(|held| held.after_seq() <= archived_seq);
        self.held_back = held_back;
        let free: Vec<Release> = free;
        for release in free {
            let segment = release.segment();
            match self.writer.release(release) {
                Ok(bytes) => tracing::debug!(run = %self.run, %segment, bytes, "released consumed payloads"),
                // Only disk space is at stake; it is tried again after the next start.
                Err(error) => tracing::warn!(run = %self.run, %segment, "releasing payloads: {error}"),
            }
        }
    }

    /// A snapshot is many megabytes, so it is written beside the batches.
    fn write_snapshot(&mut self, seq: u64, bytes: Vec<u8>) {
        self.join_snapshot();
        let (snapshots, run) = (self.snapshots.clone(), Arc::clone(&self.run));
        let write = move || match snapshots.write(seq, &bytes) {
            Ok(()) => tracing::debug!(%run, seq, bytes = bytes.len(), "wrote a snapshot"),
            Err(error) => tracing::warn!(%run, seq, "writing a snapshot: {error}"),
        };
        match std::thread::Builder::new().name("snapshot".into()).spawn(write) {
            Ok(thread) => self.snapshotting = Some(thread),
            Err(error) => tracing::warn!(run = %self.run, "no thread for a snapshot: {error}"),
        }
    }

    fn join_snapshot(&mut self) {
        if let Some(thread) = self.snapshotting.take()
            && thread.join().is_err()
        {
            tracing::error!(run = %self.run, "a snapshot thread panicked");
        }
    }
}
