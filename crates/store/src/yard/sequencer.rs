//! The thread that owns the ledger.

use bytes::Bytes;
use rollyard_core::ids::{LeaseNo, Place, Time};
use rollyard_core::ledger::{
    Command, Draw, Event, Events, LeaseStatus, LeaseTerms, Ledger, Refusal, Want, encode_events,
};
use rollyard_core::run_config::WhenFull;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::answer::{Admission, AdmitError, Done, Granted, Payload, Submission, YardError};
use super::committer::{Answer, Committer, Work};
use super::compact::{BITE_BYTES, Compaction};
use super::waiting::{AdmitReply, Reader, Waiting, Wanted, Writer};
use super::{News, Request};
use crate::log::{Log, LogError, Payloads, ReadError, Stage, StageError};

/// A batch that has grown to this goes to the disk before it takes more.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// Records between two snapshots, at least; more when the ledger is large, so that its cost stays small.
const SNAPSHOT_RECORDS_MIN: u64 = 500_000;

pub(super) struct Sequencer<L: Log> {
    pub(super) ledger: Ledger,
    pub(super) stager: L::Stager,
    pub(super) payloads: L::Reader,
    pub(super) requests: flume::Receiver<Request>,
    pub(super) to_self: flume::WeakSender<Request>,
    pub(super) committer: Committer<L::Writer, L::Snapshots>,
    pub(super) clock: Clock,
    pub(super) waiting: Waiting,
    pub(super) compaction: Compaction,
    pub(super) pending: Pending,
    pub(super) snapshot_seq: u64,
}

/// What goes out with the next batch.
#[derive(Default)]
pub(super) struct Pending {
    answers: Vec<Answer>,
    news: Vec<News>,
    body: Vec<u8>,
    freed: Vec<(Place, u32)>,
    /// Something became ready, so that a waiting reader might be served.
    news_for_readers: bool,
    /// Something left, so that a waiting writer might find room.
    room_for_writers: bool,
    /// Somebody outside has groups to judge.
    poses: bool,
}

/// Why the sequencer stopped.
pub(super) enum Exit {
    Closed,
    Failed(LogError),
}

impl<L: Log> Sequencer<L> {
    pub(super) fn serve(&mut self) -> Exit {
        loop {
            let first = match self.next_deadline() {
                Some(deadline) => self.requests.recv_deadline(deadline).ok(),
                None => self.requests.recv().ok(),
            };
            let mut closing = false;
            let mut next = first;
            while let Some(request) = next {
                closing |= self.handle(request);
                let full = self.stager.staged_bytes() >= BATCH_BYTES_MAX;
                next = if full || closing { None } else { self.requests.try_recv().ok() };
            }
            self.tick();
            self.serve_waiting();
            self.compact();
            if let Err(error) = self.commit(closing) {
                return Exit::Failed(error);
            }
            if closing {
                return Exit::Closed;
            }
        }
    }

    /// Answers everything that is still unanswered with `error`.
    pub(super) fn fail_pending(&mut self, error: &YardError) {
        for answer in std::mem::take(&mut self.pending.answers) {
            answer(Some(error.clone()));
        }
        // Whoever waited has gone away or is told; either way there is nothing more to do.
        for reader in std::mem::take(&mut self.waiting.readers) {
            let _gone = reader.reply.send(Err(error.clone()));
        }
        for writer in std::mem::take(&mut self.waiting.writers) {
            let _gone = writer.reply.send(Err(error.clone()));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let ledger = self.ledger.next_deadline().map(|time| self.clock.instant(time));
        let own = [ledger, self.waiting.next_deadline(), self.compaction.next_deadline()];
        own.into_iter().flatten().min()
    }

    /// Does what is asked; true if that is to close.
    fn handle(&mut self, request: Request) -> bool {
        match request {
            Request::Admit { submissions, reply } => {
                let done = Vec::with_capacity(submissions.len());
                let writer = Writer { done, rest: submissions.into(), deadline: None, reply };
                if let Some(waiting) = self.admit(writer) {
                    self.waiting.writers.push_back(waiting);
                }
            }
            Request::Lease { wanted, terms, deadline, reply } => {
                let reader = Reader { wanted, terms, deadline, reply };
                if let Some(waiting) = self.lease(reader) {
                    // Readers come back; those who hung up meanwhile need not be kept until their deadline.
                    self.waiting.readers.retain(|reader| !reader.reply.is_closed());
                    self.waiting.readers.push_back(waiting);
                }
            }
            Request::Run { command, reply } => {
                let outcome = self.run(&command);
                self.answer(move |failed| {
                    let _gone = reply.send(failed.map_or(outcome, Err));
                });
            }
            Request::Ask { question } => {
                let tell = question(Ok(&self.ledger));
                self.pending.answers.push(tell);
            }
            Request::Close => return true,
        }
        false
    }

    fn answer(&mut self, answer: impl FnOnce(Option<YardError>) + Send + 'static) {
        self.pending.answers.push(Box::new(answer));
    }

    /// Stages and applies what was decided. A record the log cannot take changes nothing.
    pub(super) fn record(&mut self, events: &Events, payload: Payload) -> Result<(), StageError> {
        if events.is_empty() {
            return Ok(());
        }
        let pending = &mut self.pending;
        pending.body.clear();
        encode_events(events, &mut pending.body);
        let (stamp, payload) = match payload {
            Payload::Here(bytes) => (self.stager.stage(&pending.body, bytes.clone())?, bytes),
            Payload::Stored(blob) => (self.stager.stage_stored(&pending.body, blob)?, Bytes::new()),
        };
        for event in events {
            match event {
                Event::GroupReady { .. }
                | Event::GroupShaped { .. }
                | Event::RewoundToStart { .. }
                | Event::Pooled { .. }
                | Event::Returned { .. }
                | Event::Rewound { .. }
                | Event::Configured { .. } => pending.news_for_readers = true,
                // A limiter may let inserts through now.
                Event::Sampled { .. } => pending.room_for_writers = true,
                _ => {}
            }
            self.ledger.apply(event, stamp.place, &mut pending.freed);
        }
        pending.poses |= self.ledger.posed_groups() > 0;
        pending.poses |= matches!(events.first(), Some(Event::Configured { .. }));
        for (place, size_bytes) in pending.freed.drain(..) {
            self.stager.free(place, size_bytes);
            self.compaction.note_freed();
            pending.room_for_writers = true;
        }
        // A knob may have been turned, which can make room too.
        pending.room_for_writers |= matches!(events.first(), Some(Event::Configured { .. }));
        if self.committer.outlets.news.receiver_count() > 0 {
            let (seq, place) = (stamp.seq, stamp.place);
            pending.news.push(News { seq, events: Arc::from(events.as_slice()), payload, place });
        }
        Ok(())
    }

    pub(super) fn run(&mut self, command: &Command) -> Result<Done, YardError> {
        let events = self.ledger.decide(command, self.clock.now())?;
        self.record(&events, Payload::NONE)?;
        Ok(Done { changed: !events.is_empty(), books: self.ledger.books().clone() })
    }

    /// Admits as many of a writer's rollouts as there is room for. Gives the writer back if it has to wait.
    fn admit(&mut self, mut writer: Writer) -> Option<Writer> {
        while let Some(submission) = writer.rest.pop_front() {
            match self.admit_one(submission) {
                Ok(outcome) => writer.done.push(outcome),
                Err(full) => {
                    let (refusal, submission) = *full;
                    let config = self.ledger.config();
                    let patience = Duration::from_secs_f64(config.full_wait_seconds);
                    let deadline = *writer.deadline.get_or_insert_with(|| Instant::now() + patience);
                    if config.when_full == WhenFull::Wait && Instant::now() < deadline {
                        writer.rest.push_front(submission);
                        return (!writer.reply.is_closed()).then_some(writer);
                    }
                    writer.done.push(Err(refusal.into()));
                }
            }
        }
        self.tell_writer(writer.reply, writer.done);
        None
    }

    fn tell_writer(&mut self, reply: AdmitReply, done: Vec<Result<Admission, AdmitError>>) {
        self.answer(move |failed| {
            let _gone = reply.send(failed.map_or(Ok(done), Err));
        });
    }

    /// Admits a rollout, or gives it back if the run is full, in a box: that is rare, and large.
    fn admit_one(
        &mut self,
        submission: Submission,
    ) -> Result<Result<Admission, AdmitError>, Box<(Refusal, Submission)>> {
        let size_bytes = submission.size_bytes();
        let Ok(size_bytes) = u32::try_from(size_bytes) else {
            let refusal = Refusal::TooLarge { size_bytes: size_bytes as u64, bytes_max: u64::from(u32::MAX) };
            return Ok(Err(refusal.into()));
        };
        let Submission { item, payload, digest } = submission;
        let command = Command::Admit { item, digest, size_bytes };
        let decided = self.ledger.decide(&command, self.clock.now());
        let Command::Admit { item, .. } = command else { unreachable!("it was made an admission above") };
        match decided {
            Err(refusal) if refusal.may_pass() => {
                Err(Box::new((refusal, Submission { item, payload, digest })))
            }
            Err(refusal) => Ok(Err(refusal.into())),
            Ok(events) => Ok(self.record(&events, payload).map_err(AdmitError::from).map(|()| Admission {
                duplicate: events.is_empty(),
                group_size_now: self.ledger.group_size_now(&item.uid),
            })),
        }
    }

    /// Grants a lease if it can be had now. Gives the reader back if it has to wait.
    fn lease(&mut self, reader: Reader) -> Option<Reader> {
        if reader.reply.is_closed() {
            return None;
        }
        let granted = match reader.wanted {
            Wanted::Groups(want) => self.grant_groups(want, reader.terms.clone()),
            Wanted::Rollouts(draw) => self.grant_rollouts(draw, reader.terms.clone()),
        };
        let granted = granted.map(|lease| lease.and_then(|lease| self.granted(lease)));
        if matches!(granted, Ok(None)) && Instant::now() < reader.deadline {
            return Some(reader);
        }
        self.tell_reader(reader, granted);
        None
    }

    fn grant_groups(&mut self, want: Want, terms: LeaseTerms) -> Result<Option<LeaseNo>, YardError> {
        let events = self.ledger.decide(&Command::Lease { want, terms }, self.clock.now())?;
        self.record(&events, Payload::NONE)?;
        let Some(Event::Leased { lease, .. }) = events.last() else { return Ok(None) };
        Ok(Some(*lease))
    }

    fn grant_rollouts(&mut self, draw: Draw, terms: LeaseTerms) -> Result<Option<LeaseNo>, YardError> {
        let command = Command::Sample { draw, terms };
        loop {
            let events = self.ledger.decide(&command, self.clock.now())?;
            self.record(&events, Payload::NONE)?;
            match events.last() {
                Some(Event::Sampled { lease, .. }) => return Ok(Some(*lease)),
                // What was stale has left; now the fresh can be drawn from.
                Some(_) => {}
                None => return Ok(draw.step.and_then(|step| self.ledger.batch_of(step))),
            }
        }
    }

    fn granted(&self, lease: LeaseNo) -> Option<Granted> {
        let until = match self.ledger.lease(lease)?.status {
            LeaseStatus::Out(until) => until,
            // A rank that asks again after another one acked.
            LeaseStatus::Acked(_) => Time(0),
        };
        Some(Granted {
            lease,
            until,
            groups: self.ledger.leased_groups(lease),
            rows: self.ledger.sampled_rows(lease).unwrap_or_default(),
            meta: self.ledger.lease_meta(lease),
        })
    }

    fn tell_reader(&mut self, reader: Reader, granted: Result<Option<Granted>, YardError>) {
        let to_self = self.to_self.clone();
        let shared = reader.wanted.is_shared();
        self.answer(move |failed| {
            let Err(Ok(Some(unread))) = reader.reply.send(failed.map_or(granted, Err)) else { return };
            if shared {
                return;
            }
            // The reader hung up while it waited: what it would have got goes straight back.
            let (reply, _nobody) = tokio::sync::oneshot::channel();
            let back = Request::Run { command: Command::Return { lease: unread.lease }, reply };
            if let Some(to_self) = to_self.upgrade() {
                let _expires_instead = to_self.try_send(back);
            }
        });
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        if self.ledger.next_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match self.run(&Command::Tick) {
            Ok(_) => {}
            Err(error) => tracing::error!("timeouts could not be recorded: {error}"),
        }
    }

    fn serve_waiting(&mut self) {
        let now = Instant::now();
        if std::mem::take(&mut self.pending.news_for_readers)
            || self.waiting.readers.iter().any(|reader| reader.deadline <= now)
        {
            for reader in std::mem::take(&mut self.waiting.readers) {
                if let Some(waiting) = self.lease(reader) {
                    self.waiting.readers.push_back(waiting);
                }
            }
        }
        let late = |writer: &Writer| writer.deadline.is_some_and(|deadline| deadline <= now);
        if std::mem::take(&mut self.pending.room_for_writers) || self.waiting.writers.iter().any(late) {
            for writer in std::mem::take(&mut self.waiting.writers) {
                if let Some(waiting) = self.admit(writer) {
                    self.waiting.writers.push_back(waiting);
                }
            }
        }
    }

    /// Moves some payloads out of a segment that is nearly empty.
    fn compact(&mut self) {
        self.compaction.look(&self.ledger, &self.stager);
        let mut moved_bytes = 0;
        while moved_bytes < BITE_BYTES
            && let Some(next) = self.compaction.moves.pop_front()
        {
            let events = match self.payloads.payload(next.place) {
                Ok(payload) => {
                    moved_bytes += payload.len() as u64;
                    let events: Events =
                        [Event::Relocated { group: next.group, uid: next.uid }].into_iter().collect();
                    self.record(&events, Payload::Here(payload))
                }
                // It left since the list was made, and its segment with it.
                Err(ReadError::Gone { .. }) => continue,
                Err(error) => {
                    tracing::error!("dropping a damaged rollout: {error}");
                    self.run(&Command::Discard { uid: next.uid }).map(|_| ()).or(Ok(()))
                }
            };
            if let Err(error) = events {
                tracing::error!("moving a payload: {error}");
                return;
            }
        }
    }

    /// Makes everything that was done durable, and answers.
    fn commit(&mut self, closing: bool) -> Result<(), LogError> {
        let seq = self.stager.next_seq() - 1;
        let snapshot = (closing && seq > self.snapshot_seq || self.snapshot_due(seq)).then(|| {
            self.snapshot_seq = seq;
            (seq, self.ledger.snapshot())
        });
        self.committer.commit(Work {
            batch: self.stager.take_batch(),
            answers: std::mem::take(&mut self.pending.answers),
            news: std::mem::take(&mut self.pending.news),
            poses: std::mem::take(&mut self.pending.poses),
            releases: self.stager.reclaimable(),
            snapshot,
        })
    }

    fn snapshot_due(&self, seq: u64) -> bool {
        let (items, _) = self.ledger.books().kept();
        seq - self.snapshot_seq >= SNAPSHOT_RECORDS_MIN.max(2 * items)
    }
}

/// Wall time that never jumps while the process lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
    started_at: Time,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_at: Time(since_epoch.as_millis() as u64) }
    }

    pub(super) fn now(&self) -> Time {
        Time(self.started_at.0 + self.started.elapsed().as_millis() as u64)
    }

    /// When it will be `time`, at most a day from now.
    fn instant(&self, time: Time) -> Instant {
        let wait = time.0.saturating_sub(self.now().0).min(86_400_000);
        Instant::now() + Duration::from_millis(wait)
    }
}
