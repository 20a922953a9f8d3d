//! Runs on JetStream, as they are copied out of it and into it.

use super::super::contract::Entry;
use super::super::error::{LogError, ReplayError};
use super::super::jetstream::{Connection, Followed, JetStreamLog, Reader, Unfinished};
use super::error::CopyError;
use super::source::{Mark, Seen, Source};
use super::target::Target;
use rollyard_core::ids::RunName;

/// A run that has a stream. Nothing keeps others from writing to it, so its mark is compared.
#[derive(Debug)]
pub struct StreamSource {
    connection: Connection,
    run: RunName,
}

impl StreamSource {
    pub fn open(connection: &Connection, run: &RunName) -> Result<Self, CopyError> {
        if connection.runs()?.contains(run) {
            return Ok(Self { connection: connection.clone(), run: run.clone() });
        }
        // One that is listed nowhere may have been begun by a copy, which is said here.
        connection.last_claim(run)?;
        Err(CopyError::NoRun { run: run.clone(), place: connection.settings().servers_told() })
    }
}

impl Source for StreamSource {
    type Reader = Reader;

    fn visit<E>(
        &self,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Seen<Reader>, ReplayError<E>> {
        let followed = self.connection.visit(&self.run, visit)?;
        let followed = followed.ok_or_else(|| self.connection.gone(&self.run))?;
        Ok(seen(followed))
    }

    fn mark(&self) -> Result<Mark, LogError> {
        let (claim, last_seq) = self.connection.mark(&self.run)?;
        Ok(Mark { claim, last_seq: Some(last_seq) })
    }

    fn place(&self) -> String {
        self.connection.settings().servers_told()
    }
}

/// A run that is to have a stream.
#[derive(Debug)]
pub struct StreamTarget {
    connection: Connection,
    run: RunName,
    begun: Option<Unfinished>,
}

impl StreamTarget {
    pub fn new(connection: &Connection, run: &RunName) -> Self {
        Self { connection: connection.clone(), run: run.clone(), begun: None }
    }
}

impl Target for StreamTarget {
    type Log = JetStreamLog;
    type View = Unfinished;

    fn check(&self) -> Result<(), CopyError> {
        let Some((stream, records)) = self.connection.occupied(&self.run)? else { return Ok(()) };
        Err(CopyError::NotEmpty {
            run: self.run.clone(),
            records,
            place: self.connection.settings().servers_told(),
            advice: format!(
                "copy to another yard with --log-yard NAME, or, if nobody needs that run, remove its streams: \
                 `nats stream rm {stream}` and `nats stream rm OBJ_{stream}`"
            ),
        })
    }

    fn begin(&mut self) -> Result<JetStreamLog, CopyError> {
        let begun = self.begun.insert(self.connection.begin_copy(&self.run)?);
        Ok(begun.open()?)
    }

    fn view(&self) -> Result<Unfinished, CopyError> {
        Ok(self.begun.clone().ok_or_else(|| self.connection.gone(&self.run))?)
    }

    fn finish(&mut self) -> Result<(), CopyError> {
        self.begun.take().map_or(Ok(()), |begun| Ok(begun.finish()?))
    }

    fn abandon(&mut self) -> Result<(), LogError> {
        self.begun.take().map_or(Ok(()), |begun| begun.remove())
    }
}

/// What was written so far, read back.
impl Source for Unfinished {
    type Reader = Reader;

    fn visit<E>(
        &self,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Seen<Reader>, ReplayError<E>> {
        Self::visit(self, visit).map(seen)
    }

    /// Its claim keeps everybody out.
    fn mark(&self) -> Result<Mark, LogError> {
        Ok(Mark::default())
    }

    fn place(&self) -> String {
        "the copy".to_owned()
    }
}

fn seen(Followed { reader, last_seq }: Followed) -> Seen<Reader> {
    Seen { reader, last_seq }
}
