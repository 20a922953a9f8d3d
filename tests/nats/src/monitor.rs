//! What a server says of itself on its monitoring port.

use serde_json::Value;
use std::time::Duration;

/// The answer to a path, if the server is there and content with itself.
pub(crate) fn ask(port: u16, path: &str) -> Option<Value> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(2))).proxy(None).build().into();
    let mut answer = agent.get(format!("http://127.0.0.1:{port}{path}")).call().ok()?;
    answer.body_mut().read_json().ok()
}
