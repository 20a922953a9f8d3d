//! A stream that a copy fills.
//!
//! What a stream says about itself includes whether it is whole. One that is not is no run to anybody: it is not
//! listed, and who opens it is told so. A copy that was killed leaves such a stream, and the next one removes it.

use async_nats::jetstream::stream::Stream;
use rollyard_core::ids::RunName;
use std::sync::Arc;

use super::super::contract::Entry;
use super::super::error::{LogError, ReplayError};
use super::claim::Claim;
use super::connection::{Connection, is_unfinished, last_claim};
use super::history::{self, Followed};
use super::names::Names;
use super::open::{JetStreamLog, Opener};
use super::told;
use super::writer::fenced;

/// A stream that is not whole yet. Clones share it.
#[derive(Clone, Debug)]
pub struct Unfinished {
    connection: Connection,
    names: Names,
    opener: Arc<Opener>,
}

impl Unfinished {
    /// Claims it. Whoever else was filling it cannot go on.
    pub fn open(&self) -> Result<JetStreamLog, LogError> {
        self.opener.open()
    }

    /// Visits what is there so far.
    pub fn visit<E>(
        &self,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Followed, ReplayError<E>> {
        self.connection.run(async {
            let stream = self.stream().await?;
            self.connection.visit_stream(&self.names, stream, visit).await
        })
    }

    /// From here on it is a run.
    pub fn finish(&self) -> Result<(), LogError> {
        self.connection.run(async {
            let stream = self.stream().await?;
            self.check_ours(&stream).await?;
            self.connection.mark_whole(&self.names, &stream).await
        })
    }

    /// Leaves nothing of it, unless it has become somebody else's.
    pub fn remove(&self) -> Result<(), LogError> {
        self.connection.run(async {
            let Some(stream) = self.connection.find_any(&self.names).await? else { return Ok(()) };
            self.check_ours(&stream).await?;
            self.connection.remove(&self.names).await
        })
    }

    /// Another copy may have begun anew in its place, and may be done by now.
    async fn check_ours(&self, stream: &Stream) -> Result<(), LogError> {
        match last_claim(stream, &self.names).await? {
            Some((claim, _)) if Some(&claim) != self.opener.claimed().as_ref() => {
                Err(fenced(&claim, &self.names))
            }
            _ => Ok(()),
        }
    }

    async fn stream(&self) -> Result<Stream, LogError> {
        self.connection.find_any(&self.names).await?.ok_or_else(|| told::gone(&self.names))
    }
}

impl Connection {
    /// Makes a stream for a copy of a run, in place of one that another copy did not finish. A run stays as it is.
    pub fn begin_copy(&self, run: &RunName) -> Result<Unfinished, LogError> {
        let names = self.names(run);
        self.run(async {
            if let Some(records) = self.records(&names).await? {
                let what = format!("the run has been made meanwhile, with {records} records");
                return Err(told::failed("begin a copy", &names.stream, what));
            }
            // A bucket without a stream is removed too: its snapshots are of another history.
            self.remove(&names).await?;
            self.make_unfinished(&names).await
        })?;
        let node = format!("rollyard ledger copy (process {})", std::process::id());
        let opener = Arc::new(Opener::for_copy(self.clone(), names.clone(), node));
        Ok(Unfinished { connection: self.clone(), names, opener })
    }

    /// The name of a run's stream, and how many records are in it, if it is there and a copy would write over it.
    pub fn occupied(&self, run: &RunName) -> Result<Option<(String, u64)>, LogError> {
        let names = self.names(run);
        let records = self.run(self.records(&names))?;
        Ok(records.map(|records| (names.stream, records)))
    }

    /// A stream without any message is as good as none.
    async fn records(&self, names: &Names) -> Result<Option<u64>, LogError> {
        let Some(stream) = self.find_any(names).await? else { return Ok(None) };
        let info = stream.cached_info();
        if is_unfinished(&info.config) || info.state.last_sequence == 0 {
            return Ok(None);
        }
        last_seq(&stream, names).await.map(Some)
    }

    /// The last claim and the last record of a run: whoever writes changes one of them.
    pub fn mark(&self, run: &RunName) -> Result<(Option<Claim>, u64), LogError> {
        let names = self.names(run);
        self.run(async {
            let stream = self.find(&names).await?.ok_or_else(|| told::gone(&names))?;
            let claim = last_claim(&stream, &names).await?.map(|(claim, _)| claim);
            Ok((claim, last_seq(&stream, &names).await?))
        })
    }

    /// What is said of a run that was there a moment ago.
    pub fn gone(&self, run: &RunName) -> LogError {
        told::gone(&self.names(run))
    }
}

async fn last_seq(stream: &Stream, names: &Names) -> Result<u64, LogError> {
    Ok(history::newest(stream, names).await?.map_or(0, |(piece, _)| piece.committed_seq()))
}
