//! What all connections share: the settings, the counters, and who is told to stop.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};

use crate::settings::Settings;

#[derive(Debug)]
pub(crate) struct Engine {
    settings: Mutex<Settings>,
    /// Counts calls to abort; whoever waits looks whether it is meant.
    aborts: watch::Sender<u64>,
    aborted: Mutex<Aborted>,
    paused: watch::Sender<bool>,
    /// For so many generations at once as `at_once_max` says.
    pub(crate) places: Arc<Semaphore>,
    recorded: Mutex<Vec<Vec<i32>>>,
    requests: AtomicU64,
    in_flight: AtomicU64,
    max_in_flight: AtomicU64,
    disconnected: AtomicU64,
    abort_calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Aborted {
    /// The last call that meant everybody.
    all_at: u64,
    rids: HashSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub requests: u64,
    pub in_flight: u64,
    pub max_in_flight: u64,
    /// Generations whose client went away before the answer.
    pub disconnected: u64,
    /// Generations that were aborted by name.
    pub aborted_by_name: u64,
}

/// What to do with one request.
#[derive(Debug)]
pub(crate) enum Plan {
    Fail { status: u16, retry_after: Option<String> },
    Disconnect,
    Raw(String),
    Generate(Box<Settings>),
}

impl Engine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            places: Arc::new(Semaphore::new(if settings.at_once_max == 0 {
                Semaphore::MAX_PERMITS
            } else {
                settings.at_once_max
            })),
            recorded: Mutex::default(),
            settings: Mutex::new(settings),
            aborts: watch::Sender::new(0),
            aborted: Mutex::default(),
            paused: watch::Sender::new(false),
            requests: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            max_in_flight: AtomicU64::new(0),
            disconnected: AtomicU64::new(0),
            abort_calls: AtomicU64::new(0),
        }
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            requests: self.requests.load(Ordering::SeqCst),
            in_flight: self.in_flight.load(Ordering::SeqCst),
            max_in_flight: self.max_in_flight.load(Ordering::SeqCst),
            disconnected: self.disconnected.load(Ordering::SeqCst),
            aborted_by_name: self.abort_calls.load(Ordering::SeqCst),
        }
    }

    /// Takes from the settings what is meant for one request.
    pub(crate) fn plan(&self, request: &[u8]) -> Plan {
        let mut settings = self.settings();
        let is_meant = |text: &String| String::from_utf8_lossy(request).contains(text.as_str());
        let always_fails = settings.fail_where.as_ref().is_some_and(is_meant);
        if always_fails || settings.fail_next > 0 {
            settings.fail_next = settings.fail_next.saturating_sub(u32::from(!always_fails));
            return Plan::Fail {
                status: settings.fail_status,
                retry_after: settings.fail_retry_after.clone(),
            };
        }
        if settings.disconnect_next > 0 {
            settings.disconnect_next -= 1;
            return Plan::Disconnect;
        }
        if !settings.raw_answers.is_empty() {
            return Plan::Raw(settings.raw_answers.remove(0));
        }
        // A long script is not copied for every line of it.
        let mut script = std::mem::take(&mut settings.token_answers);
        let mut mine = settings.clone();
        if !script.is_empty() {
            mine.token_answers = vec![script.remove(0)];
        }
        settings.token_answers = script;
        if !settings.abort_next.is_empty() {
            mine.abort_after = Some(settings.abort_next.remove(0));
        }
        Plan::Generate(Box::new(mine))
    }

    /// If that is wanted.
    pub(crate) fn record(&self, settings: &Settings, prompt: &[i32]) {
        if settings.records {
            self.recorded.lock().unwrap_or_else(PoisonError::into_inner).push(prompt.to_vec());
        }
    }

    /// All prompts in token ids, in the order in which they came.
    pub(crate) fn recorded(&self) -> Vec<Vec<i32>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a generation until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_in_flight.fetch_max(in_flight, Ordering::SeqCst);
        UnderWay { engine: Arc::clone(self), answered: false }
    }

    pub(crate) fn abort_all(&self) {
        let mut aborted = self.aborted();
        self.aborts.send_modify(|calls| {
            *calls += 1;
            aborted.all_at = *calls;
        });
    }

    /// All requests whose name begins so, as SGLang does it.
    pub(crate) fn abort(&self, rid: &str) {
        self.abort_calls.fetch_add(1, Ordering::SeqCst);
        self.aborted().rids.insert(rid.to_owned());
        self.aborts.send_modify(|calls| *calls += 1);
    }

    pub(crate) fn watch_aborts(&self) -> watch::Receiver<u64> {
        self.aborts.subscribe()
    }

    /// Whether a request that began when `since` calls had been made is to stop.
    pub(crate) fn is_aborted(&self, rid: &str, since: u64) -> bool {
        let aborted = self.aborted();
        aborted.all_at > since || aborted.rids.iter().any(|name| rid.starts_with(name.as_str()))
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.send_replace(paused);
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    pub(crate) async fn wait_while_paused(&self) {
        if self.is_paused() {
            let mut paused = self.paused.subscribe();
            let _resumed = paused.wait_for(|paused| !paused).await;
        }
    }

    fn aborted(&self) -> MutexGuard<'_, Aborted> {
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct UnderWay {
    engine: Arc<Engine>,
    answered: bool,
}

impl UnderWay {
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.engine.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !self.answered {
            self.engine.disconnected.fetch_add(1, Ordering::SeqCst);
        }
    }
}
