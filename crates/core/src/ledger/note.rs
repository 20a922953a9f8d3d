//! What is known of a run's generator: enough to go on with it after a restart.

use serde::{Deserialize, Serialize};

use crate::ids::Time;

/// Where the generator of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorState {
    /// Making rollouts, or about to again: a server that starts goes on with it.
    Running,
    /// It made everything it was asked for.
    Finished,
    /// It ended otherwise, more often than it is started again.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

impl GeneratorState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// The last that was noted of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    pub state: GeneratorState,
    pub at: Time,
    pub told: Box<str>,
}
