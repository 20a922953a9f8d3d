//! One server of an engine: where it is, what it has to do, and how it fared.

use reqwest::Url;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

use super::config::Dialect;
use crate::generate::EngineError;

/// After the first failure, and the most after many.
const ASIDE: Duration = Duration::from_millis(500);
const ASIDE_MOST: Duration = Duration::from_secs(30);

/// What a user is told about one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerStatus {
    pub url: String,
    /// False while it is set aside because it failed.
    pub healthy: bool,
    pub in_flight: usize,
    pub requests: u64,
    pub failures: u64,
    pub last_error: Option<String>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) base: Url,
    /// Where tokens are generated.
    pub(super) tokens: Url,
    pub(super) chat: Url,
    in_flight: AtomicUsize,
    requests: AtomicU64,
    failures: AtomicU64,
    /// Spares the lock where all is well.
    is_aside: AtomicBool,
    fate: Mutex<Fate>,
    /// Wakes whoever waits for the last request to end.
    idle: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Fate {
    failed_in_a_row: u32,
    aside_until: Option<Instant>,
    /// Somebody is finding out whether it is well again.
    on_trial: bool,
    last_error: Option<String>,
}

/// Whether a server may be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Well,
    /// Its time aside is over, but it has not answered since.
    MayBeTried,
    Aside,
}

impl Server {
    pub(super) fn new(url: &str, dialect: Dialect, idle: Arc<Notify>) -> Result<Self, EngineError> {
        let base = base_url(url)?;
        let tokens = match dialect {
            Dialect::Sglang => "generate",
            Dialect::Vllm | Dialect::Openai => "v1/completions",
        };
        Ok(Self {
            tokens: join(&base, tokens)?,
            chat: join(&base, "v1/chat/completions")?,
            base,
            in_flight: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            is_aside: AtomicBool::new(false),
            fate: Mutex::default(),
            idle,
        })
    }

    pub(super) fn path(&self, path: &str) -> Result<Url, EngineError> {
        join(&self.base, path)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        if !self.is_aside.load(Ordering::Acquire) {
            return Standing::Well;
        }
        let fate = self.fate();
        match fate.aside_until {
            None => Standing::Well,
            Some(until) if until <= now && !fate.on_trial => Standing::MayBeTried,
            Some(_) => Standing::Aside,
        }
    }

    /// When it may be asked again, if it is aside.
    pub(super) fn aside_until(&self) -> Option<Instant> {
        self.fate().aside_until
    }

    /// For the first who comes: one question is enough to find out.
    pub(super) fn begin_trial(self: &Arc<Self>) -> Option<Trial> {
        let taken = std::mem::replace(&mut self.fate().on_trial, true);
        (!taken).then(|| Trial { server: Arc::clone(self) })
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Holds a request to be under way until the lease is dropped.
    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Lease { server: Arc::clone(self) }
    }

    pub(super) fn succeeded(&self) {
        if self.is_aside.load(Ordering::Acquire) {
            let mut fate = self.fate();
            fate.failed_in_a_row = 0;
            fate.aside_until = None;
            self.is_aside.store(false, Ordering::Release);
        }
    }

    /// A server that fails at once is always the least busy one, and would draw every request to itself; so
    /// it stands aside for a while, longer each time.
    pub(super) fn failed(&self, error: &EngineError, retry_after: Option<Duration>) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut fate = self.fate();
        fate.last_error = Some(error.to_string());
        if !error.may_pass() {
            return;
        }
        let doubled = ASIDE.saturating_mul(1 << fate.failed_in_a_row.min(16)).min(ASIDE_MOST);
        fate.failed_in_a_row += 1;
        fate.aside_until = Some(Instant::now() + retry_after.unwrap_or(doubled));
        self.is_aside.store(true, Ordering::Release);
    }

    pub(super) fn status(&self) -> ServerStatus {
        ServerStatus {
            url: self.base.as_str().trim_end_matches('/').to_owned(),
            healthy: self.standing(Instant::now()) == Standing::Well,
            in_flight: self.in_flight(),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            last_error: self.fate().last_error.clone(),
        }
    }

    /// Nobody panics while holding it, and what it holds is whole at any time.
    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request under way.
#[derive(Debug)]
pub(super) struct Lease {
    server: Arc<Server>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.server.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.server.idle.notify_waiters();
        }
    }
}

/// One attempt to find out whether a server is back. It ends when dropped, whoever gave up.
#[derive(Debug)]
pub(super) struct Trial {
    server: Arc<Server>,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.server.fate().on_trial = false;
    }
}

/// Takes what people write: with and without `http://`, with and without `/v1`.
fn base_url(url: &str) -> Result<Url, EngineError> {
    let bad =
        |reason: &str| EngineError::BadRequest(format!("this is no address of a server ({reason}): {url}"));
    let written = url.trim();
    let full = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let mut parsed = Url::parse(&full).map_err(|error| bad(&error.to_string()))?;
    let path = parsed.path().trim_end_matches('/');
    let path = format!("{}/", path.strip_suffix("/v1").unwrap_or(path));
    parsed.set_path(&path);
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(bad(&format!("{other} is neither http nor https"))),
    }
}

fn join(base: &Url, path: &str) -> Result<Url, EngineError> {
    base.join(path)
        .map_err(|error| EngineError::BadRequest(format!("no address of a call ({error}): {base}{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        for (written, base) in [
            ("http://10.0.0.1:30000", "http://10.0.0.1:30000/"),
            ("10.0.0.1:30000", "http://10.0.0.1:30000/"),
            ("http://10.0.0.1:8000/v1/", "http://10.0.0.1:8000/"),
            ("https://host/models/a/v1", "https://host/models/a/"),
        ] {
            assert_eq!(base_url(written).unwrap().as_str(), base, "{written}");
        }
        for written in ["", "http://", "ftp://host"] {
            assert!(matches!(base_url(written), Err(EngineError::BadRequest(_))), "{written}");
        }
    }

    #[test]
    fn a_failing_server_stands_aside_until_it_answers() {
        let server = Arc::new(Server::new("http://h", Dialect::Sglang, Arc::default()).unwrap());
        let error = EngineError::Unreachable { reason: "refused".into(), url: "u".into() };
        server.failed(&error, None);
        assert_eq!(server.standing(Instant::now()), Standing::Aside);
        let later = Instant::now() + ASIDE_MOST;
        assert_eq!(server.standing(later), Standing::MayBeTried);
        let trial = server.begin_trial().unwrap();
        assert!(server.begin_trial().is_none());
        assert_eq!(server.standing(later), Standing::Aside);
        drop(trial);
        assert_eq!(server.standing(later), Standing::MayBeTried);
        server.succeeded();
        assert_eq!(server.standing(Instant::now()), Standing::Well);
        assert_eq!(server.status().failures, 1);
    }
}
