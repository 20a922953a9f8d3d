//! How a gateway behaves.

use rollyard_engine::executor::Pace;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Sessions that may be open at once, over all runs.
    pub sessions_max: usize,
    /// The pacing rule of each run, in rollouts; none if left out.
    pub pace: Option<Pace>,
    /// How long an answer goes on after the agent hung up: it may ask again.
    pub hang_up_grace: Duration,
    /// How long a session can still be looked at after it was closed.
    pub keep_closed: Duration,
    /// How long a group waits for sessions that were announced and never opened.
    pub group_wait: Duration,
    /// Answers to one prompt.
    pub choices_max: u32,
    /// Of an agent's request.
    pub body_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sessions_max: 10_000,
            pace: None,
            hang_up_grace: Duration::from_secs(30),
            keep_closed: Duration::from_secs(600),
            group_wait: Duration::from_secs(600),
            choices_max: 128,
            body_bytes_max: 64 << 20,
        }
    }
}
