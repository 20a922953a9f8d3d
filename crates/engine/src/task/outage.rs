//! An engine that is away is waited for.
//!
//! What went wrong decides: a server that cannot be reached, is overloaded, restarts or does not know us has
//! nothing to do with the problem it was asked, and the rollout is made when it is back. Only what the engine
//! says about this very prompt is the prompt's fault. So an outage never becomes data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::progress::Progress;
use crate::clients::backoff::Backoff;
use crate::clients::{Dialect, EngineConfig, find_dialect};
use crate::episode::EpisodeError;
use crate::generate::EngineError;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), most: Duration::from_secs(10) };

/// An engine that was well so recently is not asked again how it is.
const RECENTLY: Duration = Duration::from_secs(1);

/// What an error says about the engine and about the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The engine is not in a state to answer anybody.
    Outage,
    /// It broke inside; the next attempt may go better.
    Again,
    /// This prompt cannot be answered.
    Failed,
    /// The engine cannot do what is asked of it, whatever the prompt.
    Unfit,
}

impl Verdict {
    pub(super) fn on(error: &EpisodeError) -> Self {
        match error {
            EpisodeError::Engine(error) => Self::on_engine(error),
            other if other.may_pass() => Self::Again,
            _ => Self::Failed,
        }
    }

    fn on_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Unreachable { .. }
            | EngineError::Timeout { .. }
            | EngineError::Interrupted { .. } => Self::Outage,
            // A wrong key, a call or a model that is not there, too many at once: true of every prompt.
            EngineError::Refused { status: 401 | 403..=405 | 407 | 408 | 425 | 429 | 500.., .. } => {
                Self::Outage
            }
            EngineError::Refused { .. } | EngineError::BadAnswer { .. } | EngineError::BadRequest(_) => {
                Self::Failed
            }
            EngineError::NotExact { .. } | EngineError::Closed => Self::Unfit,
        }
    }
}

#[derive(Debug)]
pub(super) struct Outage {
    config: EngineConfig,
    progress: Arc<Progress>,
    /// When the engine last said that it is there. Who holds it asks for all others.
    well_at: Mutex<Option<Instant>>,
    answers: AtomicU64,
}

impl Outage {
    pub(super) fn new(config: EngineConfig, progress: Arc<Progress>) -> Self {
        Self { config, progress, well_at: Mutex::default(), answers: AtomicU64::new(0) }
    }

    /// Rollouts that the engine answered so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.progress.goes_on();
    }

    /// After a rollout failed `times` in a row: until it is worth another try.
    pub(super) async fn wait(&self, error: &EpisodeError, times: u32) {
        self.tell(error);
        tokio::time::sleep(BACKOFF.after(times)).await;
        let mut well_at = self.well_at.lock().await;
        if well_at.is_none_or(|at| at.elapsed() > RECENTLY) {
            self.reach().await;
            *well_at = Some(Instant::now());
        }
    }

    /// Asks until the engine says what it is.
    pub(super) async fn reach(&self) -> Dialect {
        let mut failed = 0;
        loop {
            match find_dialect(&self.config).await {
                Ok(dialect) => return dialect,
                Err(error) => self.tell(&error.into()),
            }
            failed += 1;
            tokio::time::sleep(BACKOFF.after(failed)).await;
        }
    }

    fn tell(&self, error: &EpisodeError) {
        let url = self.config.urls.first().map_or("", String::as_str);
        let what = match error {
            EpisodeError::Engine(EngineError::Unreachable { .. }) => "engine unreachable",
            _ => "engine in trouble",
        };
        self.progress.waits_for(format!("{what}: {url}: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::RewardError;

    #[test]
    fn what_says_nothing_about_the_prompt_is_no_failure_of_it() {
        let url = || "u".to_owned();
        let refused = |status| EngineError::Refused { status, message: "m".into(), url: url() };
        let reward = RewardError::BadData { by: "math".into(), message: "no label".into() };
        for (error, expected) in [
            (EngineError::Unreachable { reason: "refused".into(), url: url() }.into(), Verdict::Outage),
            (EngineError::Timeout { secs: 1.0, url: url() }.into(), Verdict::Outage),
            (EngineError::Interrupted { times: 33, url: url() }.into(), Verdict::Outage),
            (refused(500).into(), Verdict::Outage),
            (refused(503).into(), Verdict::Outage),
            (refused(429).into(), Verdict::Outage),
            (refused(401).into(), Verdict::Outage),
            (refused(404).into(), Verdict::Outage),
            (refused(400).into(), Verdict::Failed),
            (refused(413).into(), Verdict::Failed),
            (refused(422).into(), Verdict::Failed),
            (EngineError::BadAnswer { reason: "?".into(), url: url() }.into(), Verdict::Failed),
            (EngineError::NotExact { what: "log-probs", hint: "h", url: url() }.into(), Verdict::Unfit),
            (EpisodeError::BadData("no template".into()), Verdict::Failed),
            (EpisodeError::Workflow("gave up".into()), Verdict::Again),
            (reward.into(), Verdict::Failed),
        ] {
            assert_eq!(Verdict::on(&error), expected, "{error}");
        }
    }
}
