//! Keeps the workers at work: finds the one with the least to do, replaces those that die.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::frame::{Answer, Load, Order};
use super::process::Worker;
use super::{HostConfig, HostError};
use crate::stats::Stats;

/// A worker that never did anything before it died may have had bad luck so often.
const DEATHS_MAX: u32 = 3;

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LONGEST: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Shift {
    state: Arc<Both>,
    closed: watch::Sender<bool>,
}

/// What the keepers of the workers share with those who give them work.
#[derive(Debug)]
struct Both {
    config: HostConfig,
    stats: &'static Stats,
    state: Mutex<State>,
    /// A worker came up or went down.
    changed: Notify,
    keepers: AtomicUsize,
}

/// Everything that a new worker is told comes from here, under one lock with its coming up: it misses nothing.
#[derive(Debug)]
struct State {
    places: Vec<Place>,
    turn: usize,
    loads: Vec<(u64, Load)>,
    next_handle: u64,
    version: Option<i32>,
    is_paused: bool,
    is_closed: bool,
}

#[derive(Debug)]
enum Place {
    Starting,
    Up(Arc<Worker>),
    Failing(HostError),
}

impl Shift {
    pub(super) fn start(config: HostConfig, stats: &'static Stats) -> Arc<Self> {
        let processes = config.processes.get();
        let state = State {
            places: (0..processes).map(|_| Place::Starting).collect(),
            turn: 0,
            loads: Vec::new(),
            next_handle: 0,
            version: None,
            is_paused: false,
            is_closed: false,
        };
        let both = Arc::new(Both {
            config,
            stats,
            state: Mutex::new(state),
            changed: Notify::new(),
            keepers: AtomicUsize::new(processes),
        });
        let (closed, _) = watch::channel(false);
        for place in 0..processes {
            tokio::spawn(keep(both.clone(), place, closed.subscribe()));
        }
        Arc::new(Self { state: both, closed })
    }

    /// The worker with the least to do; waits until there is one.
    pub(super) async fn worker(&self) -> Result<Arc<Worker>, HostError> {
        loop {
            let changed = self.state.changed.notified();
            if let Some(found) = self.state.lock().least_loaded() {
                return found;
            }
            changed.await;
        }
    }

    pub(super) fn workers(&self) -> Vec<Arc<Worker>> {
        self.state.lock().up()
    }

    pub(super) async fn until_gone(&self, pids: &[u32]) {
        loop {
            let changed = self.state.changed.notified();
            let up = self.workers();
            if self.state.lock().is_closed || !up.iter().any(|worker| pids.contains(&worker.pid)) {
                return;
            }
            changed.await;
        }
    }

    /// The number of what is to be imported, and who must be told of it.
    pub(super) fn add_load(&self, load: Load) -> (u64, Vec<Arc<Worker>>) {
        let mut state = self.state.lock();
        if let Some((handle, _)) = state.loads.iter().find(|(_, known)| *known == load) {
            return (*handle, Vec::new());
        }
        let handle = state.next_handle;
        state.next_handle += 1;
        state.loads.push((handle, load));
        (handle, state.up())
    }

    pub(super) fn forget_load(&self, handle: u64) {
        self.state.lock().loads.retain(|(known, _)| *known != handle);
    }

    pub(super) fn set_version(&self, version: i32) -> Vec<Arc<Worker>> {
        let mut state = self.state.lock();
        state.version = Some(version);
        state.up()
    }

    pub(super) fn set_paused(&self, is_paused: bool) -> Vec<Arc<Worker>> {
        let mut state = self.state.lock();
        state.is_paused = is_paused;
        state.up()
    }

    pub(super) async fn close(&self) {
        self.state.lock().is_closed = true;
        let _ = self.closed.send(true);
        loop {
            let changed = self.state.changed.notified();
            if self.state.keepers.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.state.lock().is_closed = true;
        // The keepers hear that the sender is gone, too, and end their workers.
        self.state.changed.notify_waiters();
    }
}

impl Both {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, place: usize, now: Place) {
        if let Some(slot) = self.lock().places.get_mut(place) {
            *slot = now;
        }
        self.changed.notify_waiters();
    }

    /// The worker gets work from now on, after it was told all that the others know.
    fn register(&self, place: usize, worker: &Arc<Worker>) {
        {
            let mut state = self.lock();
            for (handle, load) in &state.loads {
                worker.tell(|id| Order::Load { id, handle: *handle, load }.frame());
            }
            if let Some(version) = state.version {
                worker.tell(|id| Order::SetVersion { id, version }.frame());
            }
            if state.is_paused {
                worker.tell(|id| Order::Pause { id }.frame());
            }
            if let Some(slot) = state.places.get_mut(place) {
                *slot = Place::Up(worker.clone());
            }
        }
        self.changed.notify_waiters();
    }
}

impl State {
    fn up(&self) -> Vec<Arc<Worker>> {
        let up = self.places.iter().filter_map(|place| match place {
            Place::Up(worker) => Some(worker.clone()),
            _ => None,
        });
        up.collect()
    }

    /// `None` if there is nobody, but soon may be.
    fn least_loaded(&mut self) -> Option<Result<Arc<Worker>, HostError>> {
        if self.is_closed {
            return Some(Err(HostError::Closed));
        }
        let mut workers = self.up();
        if !workers.is_empty() {
            // They take turns where they have as much to do.
            self.turn = (self.turn + 1) % workers.len();
            workers.rotate_left(self.turn);
        }
        if let Some(worker) = workers.into_iter().min_by_key(|worker| worker.in_flight()) {
            return Some(Ok(worker));
        }
        let failing = self.places.iter().map(|place| match place {
            Place::Failing(error) => Some(error.clone()),
            _ => None,
        });
        // One that is still starting may get through.
        failing.collect::<Option<Vec<_>>>().and_then(|errors| errors.into_iter().next()).map(Err)
    }
}

/// Keeps one place filled until the shift is over.
async fn keep(both: Arc<Both>, place: usize, mut closed: watch::Receiver<bool>) {
    let mut deaths = 0;
    let mut pause = PAUSE_FIRST;
    loop {
        let (error, did_something) = one_life(&both, place, closed.clone()).await;
        if both.lock().is_closed {
            break;
        }
        if did_something {
            (deaths, pause) = (0, PAUSE_FIRST);
        }
        deaths += 1;
        tracing::warn!("a worker process ended and is replaced: {error}");
        let is_hopeless = deaths >= DEATHS_MAX || !matches!(error, HostError::Lost(_));
        both.set(place, if is_hopeless { Place::Failing(error) } else { Place::Starting });
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(PAUSE_LONGEST),
            () = until_closed(&mut closed) => break,
        }
    }
    both.keepers.fetch_sub(1, Ordering::Release);
    both.changed.notify_waiters();
}

/// From its start to its end: why it ended, and whether it had done anything.
async fn one_life(both: &Both, place: usize, mut closed: watch::Receiver<bool>) -> (HostError, bool) {
    let config = &both.config;
    let (worker, running) = match Worker::start(config) {
        Ok(started) => started,
        Err(error) => return (error, false),
    };
    let ready = worker.ready();
    let HostConfig { engine, sys_path, threads, .. } = config;
    let start = Order::Start { engine: engine.as_deref(), threads: threads.get(), sys_path };
    worker.tell(|_| start.frame());
    let mut was_ready = false;
    let coming_up = async {
        match timeout(config.start_timeout, ready.answer()).await {
            Ok(Ok(Answer::Raised(raised))) => HostError::Failing(raised.told),
            // The other branch knows why it ended.
            Ok(Err(_)) => std::future::pending().await,
            Ok(Ok(_)) => {
                was_ready = true;
                both.register(place, &worker);
                std::future::pending().await
            }
            Err(_) => {
                let secs = config.start_timeout.as_secs_f64();
                HostError::Failing(format!("not ready within {secs} s"))
            }
        }
    };
    let error = tokio::select! {
        why = running.run(&worker, both.stats, until_closed(&mut closed)) => HostError::Lost(why),
        error = coming_up => error,
    };
    worker.end(error.to_string());
    match error {
        HostError::Lost(why) if !was_ready => (HostError::Failing(hinted(why, config)), false),
        error => (error, worker.has_answered()),
    }
}

fn hinted(why: String, config: &HostConfig) -> String {
    let python = config.interpreter();
    if why.contains("No module named") && why.contains("rollyard") {
        return format!("the package rollyard is not installed there: {}", python.display());
    }
    format!("{why}: {}", python.display())
}

async fn until_closed(closed: &mut watch::Receiver<bool>) {
    // An error is a sender that is gone, which is the end as well.
    let _ = closed.wait_for(|closed| *closed).await;
}
