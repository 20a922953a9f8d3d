//! One open run: a ledger kept on its log.
//!
//! One thread, the *sequencer*, owns the ledger and the log. It takes all requests that wait, decides, stages
//! their events and applies them, makes the batch durable with one sync, and only then sends the answers.
//! While the disk syncs, what arrives waits and goes into the next batch: the disk sets the pace, and the
//! batches grow with the load. (Two threads, one to stage and one to sync, were no faster and took more
//! CPU; see `docs/decisions/002-one-thread.md`.)
//!
//! ```text
//! Yard (anyone) --requests--> decide, stage, apply | write, sync | answer --> anyone
//! ```
//!
//! If a batch cannot be written, its answers become errors, the ledger is thrown away and made anew from
//! the log.

mod answer;
mod committer;
mod compact;
mod hold;
mod open;
mod sequencer;
mod waiting;

pub use answer::{Admission, AdmitError, Done, Granted, Submission, YardError};
pub use hold::Hold;
pub use open::{Progress, open, open_held, open_held_on, open_on};

use bytes::Bytes;
use rollyard_core::ids::{LeaseNo, Place, RunName};
use rollyard_core::ledger::{Command, Draw, Event, LeaseTerms, Ledger, Want};

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::{broadcast, oneshot, watch};

use crate::log::{BlobPlace, LogError, ReadError};
use answer::Payload;
use waiting::Wanted;

/// A run that is open. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Yard {
    inner: Arc<Inner>,
}

struct Inner {
    run: RunName,
    requests: flume::Sender<Request>,
    payload: PayloadFn,
    blobs: BlobsFn,
    outlets: Outlets,
    sequencer: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<OnceLock<YardError>>,
}

type PayloadFn = Box<dyn Fn(Place) -> Result<Bytes, ReadError> + Send + Sync>;
type BlobsFn = Box<dyn Fn() -> Option<(Arc<dyn BlobPlace>, u64)> + Send + Sync>;

/// Events that are now durable, for whoever listens.
#[derive(Clone, Debug)]
pub struct News {
    pub seq: u64,
    pub events: Arc<[Event]>,
    /// The bytes of the rollout that came in with them, if one did and its bytes were not stored before.
    pub payload: Bytes,
    /// Where they can be read.
    pub place: Place,
}

/// How others hear of what became durable.
#[derive(Clone)]
struct Outlets {
    news: broadcast::Sender<News>,
    posed: watch::Sender<()>,
}

/// What the sequencer is asked.
pub(crate) enum Request {
    Admit {
        submissions: Vec<Submission>,
        reply: oneshot::Sender<Result<Vec<Result<Admission, AdmitError>>, YardError>>,
    },
    Lease {
        wanted: Wanted,
        terms: LeaseTerms,
        deadline: Instant,
        reply: oneshot::Sender<Result<Option<Granted>, YardError>>,
    },
    Run {
        command: Command,
        reply: oneshot::Sender<Result<Done, YardError>>,
    },
    Ask {
        question: Question,
    },
    Close,
}

/// Looks at the ledger, and gives back the closure that tells the asker what it saw.
type Question =
    Box<dyn FnOnce(Result<&Ledger, &YardError>) -> Box<dyn FnOnce(Option<YardError>) + Send> + Send>;

/// Requests that may wait for the sequencer; beyond that the askers wait.
const REQUESTS_WAITING_MAX: usize = 4096;

/// News that a slow listener may lag behind before it is told that it missed some.
const NEWS_KEPT: usize = 8192;

impl std::fmt::Debug for Yard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yard").field("run", &self.inner.run).finish_non_exhaustive()
    }
}

impl Yard {
    fn new(
        run: RunName,
        requests: flume::Sender<Request>,
        payload: PayloadFn,
        blobs: BlobsFn,
        outlets: Outlets,
        sequencer: JoinHandle<()>,
        ended: Arc<OnceLock<YardError>>,
    ) -> Self {
        let sequencer = Mutex::new(Some(sequencer));
        Self { inner: Arc::new(Inner { run, requests, payload, blobs, outlets, sequencer, ended }) }
    }

    pub fn run_name(&self) -> &RunName {
        &self.inner.run
    }

    /// Admits rollouts, each for itself: a bad one does not touch the others. Durable when it returns.
    pub async fn admit(
        &self,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Result<Admission, AdmitError>>, YardError> {
        self.request(|reply| Request::Admit { submissions, reply }).await
    }

    /// Waits until `deadline` for what is wanted. Dropping the future returns a lease nobody would get.
    pub async fn lease(
        &self,
        want: Want,
        terms: LeaseTerms,
        deadline: Instant,
    ) -> Result<Option<Granted>, YardError> {
        let wanted = Wanted::Groups(want);
        self.request(|reply| Request::Lease { wanted, terms, deadline, reply }).await
    }

    /// Waits until `deadline` for rollouts to be drawn. A batch of a step is drawn once; whoever asks for it gets
    /// the same lease, and nobody's going away returns it.
    pub async fn sample(
        &self,
        draw: Draw,
        terms: LeaseTerms,
        deadline: Instant,
    ) -> Result<Option<Granted>, YardError> {
        let wanted = Wanted::Rollouts(draw);
        self.request(|reply| Request::Lease { wanted, terms, deadline, reply }).await
    }

    pub async fn run(&self, command: Command) -> Result<Done, YardError> {
        self.request(|reply| Request::Run { command, reply }).await
    }

    /// Looks at the ledger as it is on disk.
    pub async fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Ledger) -> T + Send + 'static,
    ) -> Result<T, YardError> {
        self.request(|reply: oneshot::Sender<Result<T, YardError>>| Request::Ask {
            question: Box::new(move |ledger| {
                let seen = ledger.map(look).map_err(Clone::clone);
                Box::new(move |failed| {
                    // Nobody listening any more is no reason to worry.
                    let _gone = reply.send(failed.map_or(seen, Err));
                })
            }),
        })
        .await
    }

    /// Returns a lease without waiting for the outcome; for destructors.
    pub fn return_later(&self, lease: LeaseNo) {
        let (reply, _nobody) = oneshot::channel();
        let request = Request::Run { command: Command::Return { lease }, reply };
        // A full queue or a closed run: the lease goes back when it expires.
        let _expires_instead = self.inner.requests.try_send(request);
    }

    /// The bytes of a rollout. Reads the disk, so not for the threads of an async runtime.
    pub fn payload(&self, place: Place) -> Result<Bytes, ReadError> {
        (self.inner.payload)(place)
    }

    /// Where whoever makes large payloads may put them, and the claim to put them for; `None` if they go through the
    /// run's own log.
    pub fn blobs(&self) -> Option<(Arc<dyn BlobPlace>, u64)> {
        (self.inner.blobs)()
    }

    /// Whether the bytes of a submission are where it says, all of them. Asks a server, so not for the threads of an
    /// async runtime.
    pub fn is_stored(&self, submission: &Submission) -> Result<bool, LogError> {
        let Payload::Stored(blob) = &submission.payload else { return Ok(true) };
        let Some((blobs, _)) = self.blobs() else { return Ok(false) };
        Ok(blobs.len(&blob.name)? == Some(u64::from(blob.len)))
    }

    /// What happens from now on, as it becomes durable.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.inner.outlets.news.subscribe()
    }

    /// Changes whenever a group is posed or a knob is turned: for whoever looks after posed groups, and would
    /// otherwise have to hear of every rollout.
    pub fn posed(&self) -> watch::Receiver<()> {
        self.inner.outlets.posed.subscribe()
    }

    /// Whether the run has been closed, or has another owner: nothing can be asked here any more.
    pub fn is_over(&self) -> bool {
        self.inner.requests.is_disconnected()
    }

    /// Finishes what was asked, takes a snapshot and closes the log. Waits for it.
    pub fn close(&self) {
        self.inner.close();
    }

    async fn request<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, YardError>>) -> Request,
    ) -> Result<T, YardError> {
        let (reply, answer) = oneshot::channel();
        self.inner.requests.send_async(make(reply)).await.map_err(|_| self.inner.why_ended())?;
        answer.await.map_err(|_| self.inner.why_ended())?
    }
}

impl Inner {
    fn why_ended(&self) -> YardError {
        self.ended.get().cloned().unwrap_or(YardError::Closed)
    }

    fn close(&self) {
        let thread = self.sequencer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let _gone_already = self.requests.send(Request::Close);
        if thread.join().is_err() {
            tracing::error!(run = %self.run, "the sequencer panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
