//! The gateway over HTTP.
//!
//! [`agents`] is what an agent sees: the calls of the providers, with and without `/v1`. [`sessions`] is for those who
//! open sessions, reward them and look at them.

mod agents;
mod body;
mod sessions;

pub use agents::{agents, is_agents_path};
pub use sessions::{Operator, sessions};
