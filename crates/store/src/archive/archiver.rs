//! Follows the log of a run and archives what is in it.
//!
//! One thread a run. At its start it reads the log from the beginning, because who is in which group and lease is only
//! told there, and archives what the cursors do not cover; then it listens to the yard's news. If it falls too far
//! behind to have heard everything, it reads the log again. Until something is archived its payload stays in the log
//! ([`Hold`]), so being slow, or having nowhere to write for a day, costs disk space and nothing else.

use bytes::Bytes;
use rollyard_core::ids::{Place, Time};
use rollyard_core::ledger::{Admitted, Event, Uid, decode_events};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use super::error::ArchiveError;
use super::fates::{Fate, Fates};
use super::layout::Day;
use super::line::{self, Facts};
use super::record::Record;
use super::settings::ArchiveSettings;
use super::sink::{self, Sink};
use crate::log::{Archive, ReadError, ReplayError};
use crate::yard::{Hold, News, Yard};

/// How long a place that failed is left alone, at first and at most.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// How long a place that fails may delay the end of the program. What is missing is archived after the next start.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

/// The archive of a run that is open. Stops when dropped.
#[derive(Debug)]
pub struct Archiver {
    place: String,
    hold: Hold,
    told: Arc<Mutex<Told>>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How an archive is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub place: String,
    /// Everything up to this record of the run's log is safe.
    pub archived_seq: u64,
    /// Records that are not yet.
    pub behind: u64,
    /// Rollouts and bytes written since the server started.
    pub rollouts: u64,
    pub bytes: u64,
    /// Rollouts that could not be archived: they had left before there was an archive, or are damaged.
    pub missing: u64,
    /// Why it is not getting on.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
struct Told {
    rollouts: u64,
    bytes: u64,
    missing: u64,
    error: Option<String>,
}

impl Archiver {
    /// What the run kept in `dir` has to be opened with, so that nothing goes that is not archived.
    pub fn hold(dir: &Path, settings: &ArchiveSettings) -> Hold {
        Hold::from(sink::saved_seq(dir, settings))
    }

    /// Archives a run that was opened with `hold` from `dir`.
    pub fn start(
        yard: Yard,
        dir: &Path,
        settings: &ArchiveSettings,
        hold: Hold,
    ) -> Result<Self, ArchiveError> {
        let (stop, stopped) = watch::channel(false);
        let told = Arc::new(Mutex::new(Told::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let follower = Follower {
            run: yard.run_name().to_string(),
            dir: dir.to_owned(),
            settings: settings.clone(),
            // Before the log is read: whatever comes later is heard of.
            news: yard.news(),
            yard,
            runtime: runtime.map_err(ArchiveError::Thread)?,
            stopped,
            hold: hold.clone(),
            told: Arc::clone(&told),
            sinks: Vec::new(),
            fates: Fates::default(),
            heard_seq: 0,
            waiting: None,
            unread: HashMap::new(),
        };
        let thread = std::thread::Builder::new()
            .name(format!("archive {}", follower.run))
            .spawn(move || follower.run())
            .map_err(ArchiveError::Thread)?;
        let (place, thread) = (settings.root(), Mutex::new(Some(thread)));
        Ok(Self { place, hold, told, stop, thread })
    }

    pub fn status(&self) -> Status {
        // In this order: whoever sees that it is not behind must not see an error that has passed.
        let (archived_seq, committed_seq) = (self.hold.archived_seq(), self.hold.committed_seq());
        let told = lock(&self.told);
        Status {
            place: self.place.clone(),
            archived_seq,
            behind: committed_seq.saturating_sub(archived_seq),
            rollouts: told.rollouts,
            bytes: told.bytes,
            missing: told.missing,
            error: told.error.clone(),
        }
    }

    /// Archives what has happened so far, closes the files, and waits for it.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.stop.send_replace(true);
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the archive of a run panicked: {}", self.place);
        }
    }
}

impl Drop for Archiver {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lives on the archive's thread.
struct Follower {
    run: String,
    dir: PathBuf,
    settings: ArchiveSettings,
    yard: Yard,
    news: broadcast::Receiver<News>,
    runtime: Runtime,
    stopped: watch::Receiver<bool>,
    hold: Hold,
    told: Arc<Mutex<Told>>,
    /// Empty until the files could be opened.
    sinks: Vec<Sink>,
    fates: Fates,
    /// The last record whose events were taken in.
    heard_seq: u64,
    /// What that record adds, until all sinks have it.
    waiting: Option<Record>,
    /// Rollouts whose payload was not where it came in: it may have been moved.
    unread: HashMap<Uid, Unread>,
}

struct Unread {
    seq: u64,
    sample_index: u64,
    admitted: Admitted,
}

/// What ended a wait.
enum Heard {
    News(News),
    TooMuch,
    Nothing,
    Stop,
}

impl Follower {
    fn run(mut self) {
        let mut patience = RETRY_AFTER;
        while let Err(error) = self.follow() {
            let was_well = lock(&self.told).error.replace(error.to_string()).is_none();
            if was_well {
                patience = RETRY_AFTER;
                tracing::warn!(run = %self.run, "the archive is behind and goes on when it can: {error}");
            }
            if self.is_stopped_within(patience) {
                break;
            }
            patience = (patience * 2).min(RETRY_AFTER_MAX);
        }
        self.finish();
    }

    /// Archives until it is stopped.
    fn follow(&mut self) -> Result<(), ArchiveError> {
        // What failed last is tried first: reading the log again would not help it.
        self.offer()?;
        self.save_due()?;
        self.catch_up()?;
        while !*self.stopped.borrow() {
            match self.listen() {
                Heard::News(news) => self.hear(news)?,
                Heard::TooMuch => self.catch_up()?,
                Heard::Nothing => {}
                Heard::Stop => break,
            }
            self.save_due()?;
        }
        Ok(())
    }

    /// Hears what was said until now, and closes the files.
    fn finish(&mut self) {
        let deadline = Instant::now() + FINISH_WITHIN;
        while let Err(error) = self.drain() {
            if Instant::now() + RETRY_AFTER > deadline {
                let behind = self.hold.committed_seq().saturating_sub(self.hold.archived_seq());
                tracing::warn!(run = %self.run, behind, "the archive is finished after the next start: {error}");
                return;
            }
            std::thread::sleep(RETRY_AFTER);
        }
    }

    fn drain(&mut self) -> Result<(), ArchiveError> {
        self.offer()?;
        self.settle()?;
        loop {
            match self.news.try_recv() {
                Ok(news) => self.hear(news)?,
                Err(TryRecvError::Lagged(_)) => self.catch_up()?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.sinks.iter_mut().try_for_each(Sink::save)?;
        self.note_saved();
        Ok(())
    }

    /// Waits for what the yard says, until something has to be saved.
    fn listen(&mut self) -> Heard {
        let due = self.sinks.iter().filter_map(Sink::next_due).min();
        let (news, stopped) = (&mut self.news, &mut self.stopped);
        self.runtime.block_on(async {
            let until_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                heard = news.recv() => match heard {
                    Ok(news) => Heard::News(news),
                    Err(RecvError::Lagged(_)) => Heard::TooMuch,
                    Err(RecvError::Closed) => Heard::Stop,
                },
                () = until_due => Heard::Nothing,
                _ = stopped.changed() => Heard::Stop,
            }
        })
    }

    fn hear(&mut self, news: News) -> Result<(), ArchiveError> {
        if news.seq > self.heard_seq + 1 {
            return self.catch_up();
        }
        if news.seq <= self.heard_seq {
            return Ok(());
        }
        let payload = (!news.payload.is_empty()).then_some(news.payload);
        self.take(news.seq, &news.events, payload)
    }

    /// Takes in everything that is in the log.
    fn catch_up(&mut self) -> Result<(), ArchiveError> {
        self.settle()?;
        let archive = Archive::open(&self.dir)?;
        let visited = archive.visit(|entry| {
            if entry.seq <= self.heard_seq {
                return Ok(());
            }
            let events = decode_events(entry.body)
                .map_err(|error| ArchiveError::Record { seq: entry.seq, why: error.to_string() })?;
            let payload = match entry.payload_len {
                0 => None,
                _ => self.fetch(entry.seq, &events, entry.place)?,
            };
            self.take(entry.seq, &events, payload)?;
            self.save_due()
        });
        match visited {
            Ok(_) => {}
            Err(ReplayError::Log(error)) => return Err(error.into()),
            Err(ReplayError::Visit(error)) => return Err(error),
        }
        let gone = self.unread.len() as u64;
        if gone > 0 {
            self.unread.clear();
            lock(&self.told).missing += gone;
            tracing::warn!(run = %self.run, gone, "rollouts left the run before it was archived, and are missing");
        }
        Ok(())
    }

    /// The payload of a record, where a sink needs it.
    fn fetch(&mut self, seq: u64, events: &[Event], place: Place) -> Result<Option<Bytes>, ArchiveError> {
        let is_needed = match events.first() {
            Some(Event::Admitted(_)) => self.sinks.iter().any(|sink| seq > sink.taken_seq()),
            Some(Event::Relocated { uid, .. }) => self.unread.contains_key(uid),
            _ => false,
        };
        if !is_needed {
            return Ok(None);
        }
        match self.yard.payload(place) {
            Ok(payload) => Ok(Some(payload)),
            Err(ReadError::Gone { .. }) => Ok(None),
            Err(error @ ReadError::Corrupt { .. }) => {
                tracing::error!(run = %self.run, "a damaged rollout is not archived: {error}");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a record in and hands what it adds to the sinks.
    fn take(&mut self, seq: u64, events: &[Event], payload: Option<Bytes>) -> Result<(), ArchiveError> {
        self.offer()?;
        let mut record = Record { seq, day: Day::of(Time(0)), rollout: Vec::new(), fates: Vec::new() };
        let mut told = Vec::new();
        for event in events {
            self.fates.hear(event, &mut told);
            match event {
                Event::Admitted(admitted) => {
                    record.day = Day::of(admitted.at);
                    let sample_index = self.fates.group_len(admitted.group).saturating_sub(1);
                    match &payload {
                        Some(payload) => {
                            let facts = Facts { run: &self.run, seq, sample_index, admitted };
                            self.write(&mut record, payload, &facts);
                        }
                        None if self.sinks.iter().any(|sink| seq > sink.taken_seq()) => {
                            let admitted = (**admitted).clone();
                            let unread = Unread { seq, sample_index, admitted };
                            self.unread.insert(Uid::of(&unread.admitted.uid), unread);
                        }
                        None => {}
                    }
                }
                Event::Relocated { uid, .. } => {
                    if let (Some(payload), Some(unread)) = (&payload, self.unread.remove(uid)) {
                        let Unread { seq, sample_index, admitted } = unread;
                        record.day = Day::of(admitted.at);
                        let facts = Facts { run: &self.run, seq, sample_index, admitted: &admitted };
                        self.write(&mut record, payload, &facts);
                    }
                }
                _ => {}
            }
        }
        if let (Some(fate), true) = (told.first(), record.rollout.is_empty()) {
            record.day = Day::of(fate.at);
        }
        self.write_fates(&mut record, &told);
        self.waiting = Some(record);
        self.heard_seq = seq;
        self.offer()
    }

    /// Of two fates that one record tells of a rollout, the later counts; the other is left out, so that the number of
    /// the record tells which fate is the last.
    fn write_fates(&self, record: &mut Record, told: &[Fate]) {
        let last: HashMap<&str, usize> =
            told.iter().enumerate().map(|(nth, fate)| (&*fate.uid, nth)).collect();
        for (nth, fate) in told.iter().enumerate() {
            if last.get(&*fate.uid) != Some(&nth) {
                continue;
            }
            if let Err(error) = line::write_fate(&mut record.fates, record.seq, fate) {
                tracing::error!(run = %self.run, uid = %fate.uid, "a fate is not archived: {error}");
            }
        }
    }

    fn write(&self, record: &mut Record, payload: &[u8], facts: &Facts<'_>) {
        let with_tokens = self.settings.with_tokens;
        if let Err(error) = line::write_rollout(&mut record.rollout, payload, facts, with_tokens) {
            record.rollout.clear();
            lock(&self.told).missing += 1;
            tracing::error!(run = %self.run, uid = %facts.admitted.uid, "a rollout is not archived: {error}");
        }
    }

    /// Hands the last record to the sinks that do not have it.
    fn offer(&mut self) -> Result<(), ArchiveError> {
        if self.sinks.is_empty() {
            let open = |format| Sink::open(&self.dir, &self.run, &self.settings, format);
            self.sinks =
                self.settings.formats.iter().map(|format| open(*format)).collect::<Result<_, _>>()?;
        }
        let Some(record) = &self.waiting else { return Ok(()) };
        let is_new = self.sinks.iter().any(|sink| record.seq > sink.taken_seq());
        self.sinks.iter_mut().try_for_each(|sink| sink.take(record))?;
        if is_new && !(record.rollout.is_empty() && record.fates.is_empty()) {
            let mut told = lock(&self.told);
            told.rollouts += u64::from(!record.rollout.is_empty());
            told.bytes += (record.rollout.len() + record.fates.len()) as u64;
        }
        self.waiting = None;
        Ok(())
    }

    fn save_due(&mut self) -> Result<(), ArchiveError> {
        self.sinks.iter_mut().try_for_each(Sink::tend)?;
        self.note_saved();
        Ok(())
    }

    fn note_saved(&self) {
        let saved = self.sinks.iter().map(Sink::saved_seq).min().unwrap_or_default();
        if saved >= self.heard_seq && lock(&self.told).error.take().is_some() {
            tracing::info!(run = %self.run, "the archive is written again");
        }
        if saved > self.hold.archived_seq() {
            self.hold.advance(saved);
        }
    }

    /// Waits until everything that was asked of the yard is durable: news of it has been sent, or it is in the log.
    fn settle(&self) -> Result<(), ArchiveError> {
        Ok(self.runtime.block_on(self.yard.ask(|_| ()))?)
    }

    fn is_stopped_within(&mut self, patience: Duration) -> bool {
        let stopped = &mut self.stopped;
        self.runtime
            .block_on(async { tokio::time::timeout(patience, stopped.wait_for(|stop| *stop)).await.is_ok() })
    }
}
