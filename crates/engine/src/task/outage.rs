//! An engine that is away is waited for.
//!
//! What went wrong decides: a server that cannot be reached, is overloaded, restarts or does not know us has
//! nothing to do with the problem it was asked, and the rollout is made when it is back. Only what the engine
//! says about this very prompt is the prompt's fault. So an outage never becomes data.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::progress::Progress;
use crate::clients::backoff::Backoff;
use crate::clients::{Dialect, EngineConfig, check, find_dialect};
use crate::episode::EpisodeError;
use crate::generate::EngineError;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), most: Duration::from_secs(10) };

/// A few tokens take no longer, unless nobody is served.
const TRIAL_SECS: f64 = 60.0;

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

    pub(super) fn on_engine(error: &EngineError) -> Self {
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

/// Asks an engine how it is spoken to, until it says so.
pub(super) async fn reach(config: &EngineConfig, progress: &Progress) -> Dialect {
    let mut failed = 0;
    loop {
        match find_dialect(config).await {
            Ok(dialect) => {
                progress.goes_on();
                return dialect;
            }
            Err(error) => tell(progress, config, &error),
        }
        failed += 1;
        tokio::time::sleep(BACKOFF.after(failed)).await;
    }
}

#[derive(Debug)]
pub(super) struct Outage {
    config: EngineConfig,
    progress: Arc<Progress>,
    /// When the engine last answered anybody.
    well_at: Mutex<Option<Instant>>,
    /// Who holds it tries the engine for all who wait.
    trying: tokio::sync::Mutex<()>,
}

impl Outage {
    pub(super) fn new(config: EngineConfig, progress: Arc<Progress>) -> Self {
        let config = EngineConfig { request_timeout_secs: TRIAL_SECS, ..config };
        Self { config, progress, well_at: Mutex::default(), trying: tokio::sync::Mutex::default() }
    }

    pub(super) fn answered(&self) {
        *self.well_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.progress.goes_on();
    }

    /// After a rollout failed `times` in a row: until the engine has answered somebody since.
    pub(super) async fn wait(&self, error: &EngineError, times: u32) {
        let failed_at = Instant::now();
        tell(&self.progress, &self.config, error);
        tokio::time::sleep(BACKOFF.after(times)).await;
        let _trying = self.trying.lock().await;
        let mut failed = 0;
        while !self.was_well_after(failed_at) {
            // One short generation: a server may be up and its engine not.
            match check(self.config.clone(), Some(self.config.dialect)).await {
                Err(error) if speaks_of_all(&error) => {
                    tell(&self.progress, &self.config, &error);
                    failed += 1;
                    tokio::time::sleep(BACKOFF.after(failed)).await;
                }
                // Not every server likes the question; one that says so is there.
                Ok(_) | Err(_) => self.answered(),
            }
        }
    }

    fn was_well_after(&self, moment: Instant) -> bool {
        self.well_at.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at > moment)
    }
}

/// Whether a trial's error is one that every prompt would meet.
fn speaks_of_all(error: &EngineError) -> bool {
    let has_no_such_call = matches!(error, EngineError::Refused { status: 404 | 405, .. });
    Verdict::on_engine(error) == Verdict::Outage && !has_no_such_call
}

fn tell(progress: &Progress, config: &EngineConfig, error: &EngineError) {
    let url = config.urls.first().map_or("", String::as_str);
    let what = match error {
        EngineError::Unreachable { .. } => "engine unreachable",
        _ => "engine in trouble",
    };
    progress.waits_for(format!("{what}: {url}: {error}"));
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
