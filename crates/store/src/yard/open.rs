//! Opens a run from its log, and keeps it open when the log fails.

use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Event, Events, Ledger, decode_events};
use rollyard_core::run_config::RunConfig;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};

use super::answer::{Payload, YardError};
use super::committer::Committer;
use super::compact::Compaction;
use super::hold::Hold;
use super::sequencer::{Clock, Exit, Sequencer};
use super::waiting::Waiting;
use super::{NEWS_KEPT, Outlets, REQUESTS_WAITING_MAX, Request, Yard};
use crate::log::{self, Log, LogError, Parts, Payloads, ReplayError, Stage};

/// How long a failed log is left alone before it is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Bytes of the log read so far, and in total.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Opens the run kept in `dir`, or begins it with `config` if there is nothing yet.
pub fn open(
    run: &RunName,
    dir: &Path,
    config: &RunConfig,
    progress: Progress<'_>,
) -> Result<Yard, YardError> {
    open_held(run, dir, config, Hold::none(), progress)
}

/// The same for a run that is archived: payloads stay until the archive has them.
pub fn open_held(
    run: &RunName,
    dir: &Path,
    config: &RunConfig,
    hold: Hold,
    progress: Progress<'_>,
) -> Result<Yard, YardError> {
    let (dir, name) = (dir.to_owned(), run.clone());
    open_held_on(run, config, hold, progress, move || {
        let opened = log::open(&dir, log::Options::default())?;
        if opened.torn_bytes > 0 {
            // Nobody was told that it had succeeded; a damaged end of the last batch would look the same.
            tracing::warn!(run = %name, bytes = opened.torn_bytes, "cut an interrupted write off the log");
        }
        Ok(opened)
    })
}

/// Opens a run on any log; `open_log` is called again if the log fails and can be opened anew.
pub fn open_on<L: Log + 'static>(
    run: &RunName,
    config: &RunConfig,
    progress: Progress<'_>,
    open_log: impl Fn() -> Result<L, LogError> + Send + 'static,
) -> Result<Yard, YardError> {
    open_held_on(run, config, Hold::none(), progress, open_log)
}

/// Opens a run that is archived on any log.
pub fn open_held_on<L: Log + 'static>(
    run: &RunName,
    config: &RunConfig,
    hold: Hold,
    progress: Progress<'_>,
    open_log: impl Fn() -> Result<L, LogError> + Send + 'static,
) -> Result<Yard, YardError> {
    let loaded = load(open_log()?, config, progress)?;
    let (requests, inbox) = flume::bounded(REQUESTS_WAITING_MAX);
    let outlets = Outlets { news: broadcast::Sender::new(NEWS_KEPT), posed: watch::Sender::default() };
    let payloads = Arc::new(RwLock::new(loaded.parts.reader.clone()));
    let ended = Arc::default();
    let keeper = Keeper {
        run: run.as_str().into(),
        config: config.clone(),
        open_log,
        inbox,
        to_self: requests.downgrade(),
        outlets: outlets.clone(),
        payloads: Arc::clone(&payloads),
        hold,
        ended: Arc::clone(&ended),
    };
    let thread = std::thread::Builder::new()
        .name(format!("yard {run}"))
        .spawn(move || keeper.keep(loaded))
        .map_err(|error| YardError::State(format!("no thread for it: {error}")))?;
    let reader = move || payloads.read().unwrap_or_else(PoisonError::into_inner).clone();
    let reader_of_blobs = reader.clone();
    let payload = move |place| reader().payload(place);
    let blobs = move || {
        let reader = reader_of_blobs();
        Some((reader.blobs()?, reader.claim()?))
    };
    Ok(Yard::new(run.clone(), requests, Box::new(payload), Box::new(blobs), outlets, thread, ended))
}

/// A ledger, and the log it was made from.
struct Loaded<L: Log> {
    ledger: Ledger,
    parts: Parts<L>,
    snapshot_seq: u64,
    /// The log was empty: the configuration has to be written down.
    fresh: bool,
}

fn load<L: Log>(mut log: L, config: &RunConfig, progress: Progress<'_>) -> Result<Loaded<L>, YardError> {
    let restored = log.take_snapshot().and_then(|snapshot| match Ledger::restore(&snapshot.bytes) {
        Ok(ledger) => Some((ledger, snapshot.seq)),
        Err(error) => {
            tracing::warn!("a snapshot is not used, the log is replayed from its beginning: {error}");
            None
        }
    });
    let (mut ledger, snapshot_seq) = restored.unwrap_or_else(|| (Ledger::new(config.clone()), 0));
    let mut freed = Vec::new();
    let replayed = log.replay(snapshot_seq + 1, progress, |entry| -> Result<(), String> {
        for event in decode_events(entry.body).map_err(|e| format!("record {}: {e}", entry.seq))? {
            ledger.apply(&event, entry.place, &mut freed);
        }
        freed.clear();
        Ok(())
    });
    match replayed {
        Ok(()) => {}
        Err(ReplayError::Log(error)) => return Err(error.into()),
        Err(ReplayError::Visit(why)) => return Err(YardError::State(why)),
    }
    log.set_durability(ledger.config().durability);
    let mut parts = log.into_parts();
    let gone = parts.stager.retain(&mut ledger.places());
    if gone > 0 {
        tracing::error!(
            gone,
            "payloads that the ledger needs are missing from the log; reading them will say so"
        );
    }
    let fresh = parts.stager.next_seq() == 1;
    Ok(Loaded { ledger, parts, snapshot_seq, fresh })
}

/// Lives on the yard's thread and opens the log again when it has failed.
struct Keeper<L: Log, F> {
    run: Arc<str>,
    config: RunConfig,
    open_log: F,
    inbox: flume::Receiver<Request>,
    to_self: flume::WeakSender<Request>,
    outlets: Outlets,
    payloads: Arc<RwLock<L::Reader>>,
    hold: Hold,
    /// Why nobody can ask any more, if that is not because it was closed.
    ended: Arc<OnceLock<YardError>>,
}

impl<L: Log + 'static, F: Fn() -> Result<L, LogError>> Keeper<L, F> {
    fn keep(self, loaded: Loaded<L>) {
        let mut next = Some(loaded);
        while let Some(loaded) = next.take() {
            let Exit::Failed(error) = self.serve(loaded) else { return };
            let mut why = YardError::from(error.clone());
            if error.is_fenced() {
                tracing::warn!(run = %self.run, "{error}");
                self.end(why);
                return;
            }
            tracing::error!(run = %self.run, "the log failed: {error}");
            while next.is_none() {
                let until = (!error.is_poison()).then(|| Instant::now() + REOPEN_AFTER);
                if self.refuse_all(&why, until) {
                    return;
                }
                match (self.open_log)()
                    .map_err(YardError::from)
                    .and_then(|log| load(log, &self.config, &mut |_, _| {}))
                {
                    Ok(loaded) => next = Some(loaded),
                    Err(moved @ YardError::Moved { .. }) => {
                        tracing::warn!(run = %self.run, "{moved}");
                        self.end(moved);
                        return;
                    }
                    Err(error) => why = error,
                }
            }
            tracing::info!(run = %self.run, "the log is open again");
        }
    }

    /// Leaves the run to its new owner.
    fn end(&self, why: YardError) {
        for request in self.inbox.drain() {
            request.refuse(&why);
        }
        let _told_before = self.ended.set(why);
    }

    fn serve(&self, loaded: Loaded<L>) -> Exit {
        let Loaded { ledger, parts, snapshot_seq, fresh } = loaded;
        *self.payloads.write().unwrap_or_else(PoisonError::into_inner) = parts.reader.clone();
        let config = ledger.config().clone();
        self.hold.note_committed(parts.stager.next_seq() - 1);
        let mut sequencer: Sequencer<L> = Sequencer {
            ledger,
            stager: parts.stager,
            payloads: parts.reader,
            requests: self.inbox.clone(),
            to_self: self.to_self.clone(),
            committer: Committer {
                run: Arc::clone(&self.run),
                writer: parts.writer,
                snapshots: parts.snapshots,
                snapshotting: None,
                outlets: self.outlets.clone(),
                hold: self.hold.clone(),
                held_back: Vec::new(),
            },
            clock: Clock::start(),
            waiting: Waiting::default(),
            compaction: Compaction::new(),
            pending: Default::default(),
            snapshot_seq,
        };
        if fresh {
            sequencer.begin(config);
        }
        let exit = sequencer.serve();
        sequencer.fail_pending(&match &exit {
            Exit::Failed(error) => YardError::from(error.clone()),
            Exit::Closed => YardError::Closed,
        });
        sequencer.committer.close();
        exit
    }

    /// Answers every request with `why` until then, or for ever. True if asked to close.
    fn refuse_all(&self, why: &YardError, until: Option<Instant>) -> bool {
        loop {
            let request = match until {
                Some(until) => self.inbox.recv_deadline(until),
                None => self.inbox.recv().map_err(|_| flume::RecvTimeoutError::Disconnected),
            };
            match request {
                Ok(Request::Close) | Err(flume::RecvTimeoutError::Disconnected) => return true,
                Err(flume::RecvTimeoutError::Timeout) => return false,
                Ok(request) => request.refuse(why),
            }
        }
    }
}

impl Request {
    fn refuse(self, why: &YardError) {
        // Whoever has gone away needs no answer.
        match self {
            Self::Admit { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Lease { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Run { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Ask { question } => question(Err(why))(Some(why.clone())),
            Self::Close => {}
        }
    }
}

impl<L: Log> Sequencer<L> {
    /// Writes the configuration of a new run down, as its first record.
    ///
    /// Not by a command: the ledger has this configuration already and would decide that nothing changes,
    /// and a later start with other defaults would replay the log by rules it was not written under.
    fn begin(&mut self, config: RunConfig) {
        let event = Event::Configured { at: self.clock.now(), config: Box::new(config), start: None };
        if let Err(error) = self.record(&Events::from_iter([event]), Payload::NONE) {
            tracing::error!("the configuration could not be recorded: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Archive;
    use std::num::NonZeroU32;

    #[test]
    fn a_run_keeps_the_configuration_it_began_with() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunName::try_from("default").unwrap();
        let with_size =
            |size| RunConfig { group_size: NonZeroU32::new(size).unwrap(), ..RunConfig::default() };
        for size in [4, 16] {
            open(&run, dir.path(), &with_size(size), &mut |_, _| {}).unwrap().close();
        }
        let mut events = Vec::new();
        let visited = Archive::open(dir.path()).unwrap().visit(|entry| -> Result<(), String> {
            events.extend(decode_events(entry.body).map_err(|error| error.to_string())?);
            Ok(())
        });
        assert_eq!(visited.unwrap().last_seq, 1);
        let [Event::Configured { config, .. }] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(**config, with_size(4));
    }
}
