//! A session while agents may ask in it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::flight::Flight;
use crate::look::News;
use crate::session::event::Closed;
use crate::session::opening::Opening;
use crate::session::state::State;

/// A watcher that is so far behind is told to look at the whole again.
const NEWS_MAX: usize = 1024;

#[derive(Debug)]
pub struct Live {
    pub id: Arc<str>,
    pub(crate) key: String,
    pub(crate) reward_key: String,
    pub opening: Opening,
    /// Milliseconds since 1970.
    pub opened_ms: u64,
    /// Of its group, counted from 0: another pass over the same prompts.
    pub(crate) round: u32,
    inner: Mutex<Inner>,
    /// Cancelled when it is closed.
    pub(crate) over: CancellationToken,
    news: OnceLock<broadcast::Sender<News>>,
    /// Its rollouts are on their way.
    pub(crate) delivering: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) state: State,
    /// Every question that was asked, the latest last.
    pub(crate) calls: HashMap<u128, Vec<Arc<Called>>>,
    pub(crate) by_idempotency_key: HashMap<String, Arc<Called>>,
    /// Messages that the journal has, by the hash of their text.
    pub(crate) written: HashSet<u128>,
    pub(crate) running: u32,
    pub(crate) failures: u32,
    pub(crate) last_error: Option<String>,
}

/// A request that was made, and its choices.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) first_id: u32,
    pub(crate) choices: u32,
    pub(crate) flights: Mutex<Vec<Weak<Flight>>>,
    /// The agent got the answer to its end.
    is_taken: AtomicBool,
    has_failed: AtomicBool,
}

impl Called {
    pub(crate) fn new(first_id: u32, flights: &[Arc<Flight>]) -> Arc<Self> {
        let choices = u32::try_from(flights.len()).unwrap_or(u32::MAX);
        let flights = Mutex::new(flights.iter().map(Arc::downgrade).collect());
        let (is_taken, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { first_id, choices, flights, is_taken, has_failed })
    }

    /// One that a journal gave back: whether the agent got it nobody knows, so it may ask again.
    pub(crate) fn recovered(id: u32) -> Arc<Self> {
        Arc::new(Self { choices: 1, ..Arc::into_inner(Self::new(id, &[])).expect("nobody else has it") })
    }

    pub(crate) fn take(&self) {
        self.is_taken.store(true, Ordering::Release);
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    pub(crate) fn flights(&self) -> Vec<Arc<Flight>> {
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Live {
    pub(crate) fn new(
        id: Arc<str>,
        keys: (String, String),
        opening: Opening,
        opened_ms: u64,
        round: u32,
    ) -> Arc<Self> {
        let (key, reward_key) = keys;
        let (inner, over, news) = (Mutex::default(), CancellationToken::new(), OnceLock::new());
        let delivering = watch::Sender::new(false);
        Arc::new(Self { id, key, reward_key, opening, opened_ms, round, inner, over, news, delivering })
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expires_ms(&self) -> u64 {
        self.opened_ms.saturating_add((self.opening.budget.secs * 1e3) as u64)
    }

    /// An answer is no longer under way, however it ended.
    pub(crate) fn end_one(&self) {
        let mut inner = self.inner();
        inner.running = inner.running.saturating_sub(1);
    }

    pub(crate) fn time_is_up(&self) -> String {
        format!("its {} s were over", self.opening.budget.secs)
    }

    pub fn closed(&self) -> Option<Closed> {
        self.inner().state.closed.clone()
    }

    pub(crate) fn watch(&self) -> broadcast::Receiver<News> {
        self.news.get_or_init(|| broadcast::Sender::new(NEWS_MAX)).subscribe()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.news.get().is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Is made only if somebody watches.
    pub(crate) fn say(&self, news: impl FnOnce() -> News) {
        if let Some(sender) = self.news.get().filter(|sender| sender.receiver_count() > 0) {
            let _nobody_watches = sender.send(news());
        }
    }
}
