//! What all clients of the demo share: where the server is now, how far things are, and whether to go on.

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

use crate::client::Client;

/// Rollouts in a group.
pub(super) const GROUP_SIZE: u64 = 8;

/// Pause before a call that failed is made again.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// Beyond this the demo is stuck, not slow.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    Time(Duration),
    Rollouts(u64),
}

#[derive(Debug)]
pub(super) struct Stage {
    goal: Goal,
    started: Instant,
    /// Another one after every start of the server.
    url: RwLock<String>,
    groups_begun: AtomicU64,
    answered: AtomicU64,
    delivered: AtomicU64,
    writing_ended: AtomicBool,
    reading_ended: AtomicBool,
    /// What went wrong first; nobody goes on after that.
    failure: OnceLock<String>,
    interrupted: AtomicBool,
}

/// An answer, and how often it had to be asked for.
pub(super) struct Answer {
    pub(super) body: Value,
    pub(super) attempts: u32,
}

impl Stage {
    pub(super) fn new(goal: Goal, url: &str) -> Self {
        Self {
            goal,
            started: Instant::now(),
            url: RwLock::new(url.to_owned()),
            groups_begun: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            writing_ended: AtomicBool::new(false),
            reading_ended: AtomicBool::new(false),
            failure: OnceLock::new(),
            interrupted: AtomicBool::new(false),
        }
    }

    /// From 0 to 1.
    pub(super) fn progress(&self) -> f64 {
        match self.goal {
            Goal::Time(time) => self.elapsed().as_secs_f64() / time.as_secs_f64(),
            Goal::Rollouts(rollouts) => self.answered() as f64 / rollouts as f64,
        }
    }

    /// The number of a new group to write, while there is more to do.
    pub(super) fn begin_group(&self) -> Option<u64> {
        let group = self.groups_begun.fetch_add(1, Relaxed);
        let is_enough = match self.goal {
            Goal::Time(_) => false,
            Goal::Rollouts(rollouts) => group * GROUP_SIZE >= rollouts,
        };
        (!is_enough && !self.writing_ended.load(Relaxed)).then_some(group)
    }

    pub(super) fn note_answered(&self) {
        self.answered.fetch_add(1, Relaxed);
    }

    pub(super) fn note_delivered(&self, rollouts: usize) {
        self.delivered.fetch_add(rollouts as u64, Relaxed);
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Relaxed)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn end_writing(&self) {
        self.writing_ended.store(true, Relaxed);
    }

    /// No more is coming: a reader that finds nothing left may go.
    pub(super) fn end_reading(&self) {
        self.reading_ended.store(true, Relaxed);
    }

    pub(super) fn is_reading_ended(&self) -> bool {
        self.reading_ended.load(Relaxed)
    }

    /// Makes everybody stop.
    pub(super) fn fail(&self, error: &anyhow::Error) {
        self.failure.get_or_init(|| format!("{error:#}"));
    }

    pub(super) fn set_url(&self, url: &str) {
        url.clone_into(&mut self.url.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// An error if there is no point in going on.
    pub(super) fn check(&self) -> Result<()> {
        if self.interrupted.load(Relaxed) {
            bail!("interrupted");
        }
        if let Some(failure) = self.failure.get() {
            bail!("{failure}");
        }
        let limit = PATIENCE + if let Goal::Time(time) = self.goal { time } else { PATIENCE };
        if self.elapsed() > limit {
            bail!("the demo is not done after {} s", limit.as_secs());
        }
        Ok(())
    }

    /// Lets Ctrl-C end the demo in good order: the server is killed and the folder removed.
    pub(super) fn watch_for_interrupt(self: &Arc<Self>) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
        let mut terminate = runtime.block_on(async { signal(SignalKind::terminate()) })?;
        let stage = Arc::clone(self);
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            stage.interrupted.store(true, Relaxed);
        });
        Ok(())
    }

    /// Sends until there is an answer, however often the server dies meanwhile. The same body each time: that
    /// is all a client has to do.
    pub(super) fn post(&self, client: &mut Client, path: &str, body: &Value) -> Result<Answer> {
        let body = body.to_string();
        for attempts in 1.. {
            self.check()?;
            match client.post(path, &body) {
                Ok((status, text)) if status.is_success() => {
                    return Ok(Answer { body: serde_json::from_str(&text)?, attempts });
                }
                Ok((status, text)) if status.is_client_error() => {
                    bail!("the server refused {path}: {status} {text}")
                }
                Ok(_) | Err(_) => {
                    std::thread::sleep(RETRY_AFTER);
                    *client = self.client();
                }
            }
        }
        Err(anyhow!("no answer from {path}"))
    }

    pub(super) fn get(&self, client: &mut Client, path: &str) -> Result<Value> {
        loop {
            self.check()?;
            match client.get(path) {
                Ok(body) => return Ok(body),
                Err(_) => {
                    std::thread::sleep(RETRY_AFTER);
                    *client = self.client();
                }
            }
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.url.read().unwrap_or_else(PoisonError::into_inner), None)
    }
}
