//! Where callers and the thread meet: requests that wait for a place, and notes that are heeded before any of them.
//!
//! Both are bounded by permits: whoever comes when all are taken waits in line for one. The lock is only held to put
//! something down or to pick it up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::Stats;
use super::ask::{Ask, AskError, Event};
use crate::model::Weights;

/// Notes are heeded at once, so that few ever wait.
const NOTES_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) ask: Ask,
    /// Told of every token, and not of the end alone.
    pub(super) streams: bool,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) asked: Instant,
    /// Its place in the queue.
    _place: OwnedSemaphorePermit,
}

pub(super) enum Note {
    Update { weights: Arc<Weights>, version: i32, done: oneshot::Sender<Result<(), AskError>> },
    Pause { done: oneshot::Sender<()> },
    Resume { done: oneshot::Sender<()> },
    Abort { rid: Option<String>, done: oneshot::Sender<usize> },
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Update { .. } => "Update",
            Self::Pause { .. } => "Pause",
            Self::Resume { .. } => "Resume",
            Self::Abort { .. } => "Abort",
        })
    }
}

#[derive(Debug)]
pub(super) struct Desk {
    state: Mutex<State>,
    /// The thread sleeps here while it has nothing to do.
    bell: Condvar,
    places: Arc<Semaphore>,
    notes: Arc<Semaphore>,
    pub(super) counters: Counters,
}

/// Written by the thread alone.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sampled: AtomicU64,
    pub(super) running: AtomicUsize,
    pub(super) version: AtomicI32,
    pub(super) paused: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Job>,
    notes: VecDeque<(Note, OwnedSemaphorePermit)>,
    /// Somebody went away, and the thread does not know yet.
    rung: bool,
    closed: bool,
}

/// What the thread picks up.
#[derive(Debug, Default)]
pub(super) struct Picked {
    pub(super) notes: Vec<Note>,
    pub(super) jobs: Vec<Job>,
}

impl Desk {
    pub(super) fn new(waiting_max: usize, version: i32) -> Self {
        Self {
            state: Mutex::default(),
            bell: Condvar::new(),
            places: Arc::new(Semaphore::new(waiting_max)),
            notes: Arc::new(Semaphore::new(NOTES_MAX)),
            counters: Counters { version: AtomicI32::new(version), ..Counters::default() },
        }
    }

    /// Waits for a place in the queue. No answer has more than `context` tokens, so the thread never waits to tell.
    pub(super) async fn push(
        &self,
        ask: Ask,
        streams: bool,
        context: usize,
    ) -> Result<mpsc::Receiver<Event>, AskError> {
        let asked = Instant::now();
        let places = Arc::clone(&self.places);
        let _place = places.acquire_owned().await.map_err(|_| AskError::Closed)?;
        let (events, receiver) = mpsc::channel(if streams { context + 1 } else { 1 });
        let mut state = self.lock();
        if state.closed {
            return Err(AskError::Closed);
        }
        state.waiting.push_back(Job { ask, streams, events, asked, _place });
        drop(state);
        self.bell.notify_one();
        Ok(receiver)
    }

    /// Waits until the thread has done as told.
    pub(super) async fn tell<T>(&self, note: impl FnOnce(oneshot::Sender<T>) -> Note) -> Result<T, AskError> {
        let permit = Arc::clone(&self.notes).acquire_owned().await.map_err(|_| AskError::Closed)?;
        let (done, told) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.closed {
                return Err(AskError::Closed);
            }
            state.notes.push_back((note(done), permit));
        }
        self.bell.notify_one();
        told.await.map_err(|_| AskError::Closed)
    }

    /// Somebody went away.
    pub(super) fn ring(&self) {
        self.lock().rung = true;
        self.bell.notify_one();
    }

    /// Who still waits is told that there is nobody to answer.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        state.notes.clear();
        drop(state);
        self.places.close();
        self.notes.close();
        self.bell.notify_one();
    }

    /// All notes and at most so many requests. Waits for any of them if told to; `None` when closed.
    pub(super) fn pick(&self, free: usize, wait: bool) -> Option<Picked> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let rung = std::mem::take(&mut state.rung);
            if rung {
                state.waiting.retain(|job| !job.events.is_closed());
            }
            let count = free.min(state.waiting.len());
            if rung || !wait || count > 0 || !state.notes.is_empty() {
                let notes = state.notes.drain(..).map(|(note, _)| note).collect();
                let jobs = state.waiting.drain(..count).collect();
                return Some(Picked { notes, jobs });
            }
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes out of the queue what matches.
    pub(super) fn withdraw(&self, matches: impl Fn(&Ask) -> bool) -> Vec<Job> {
        let mut state = self.lock();
        let (out, stay) = state.waiting.drain(..).partition(|job| matches(&job.ask));
        state.waiting = stay;
        Vec::from(out)
    }

    pub(super) fn stats(&self) -> Stats {
        let Counters { sampled, running, version, paused } = &self.counters;
        Stats {
            sampled: sampled.load(Ordering::Relaxed),
            running: running.load(Ordering::Relaxed),
            waiting: self.lock().waiting.len(),
            version: version.load(Ordering::Acquire),
            paused: paused.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
