//! What a client is told about its servers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::generate::EngineError;

/// How to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `/generate`: token ids both ways, and the version of the weights.
    #[default]
    Sglang,
    /// `/v1/completions`: token ids both ways.
    Vllm,
    /// `/v1/chat/completions` and no more: text.
    Openai,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::Sglang, Self::Vllm, Self::Openai];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
            Self::Openai => "openai",
        }
    }

    pub fn speaks_tokens(self) -> bool {
        self != Self::Openai
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        known.ok_or_else(|| format!("{text:?} is no dialect; there are sglang, vllm and openai"))
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    pub dialect: Dialect,
    /// Servers with the same weights; `/v1` at the end is not needed.
    pub urls: Vec<String>,
    /// Sent as a bearer token.
    pub api_key: Option<String>,
    /// What a server is asked for, if it is not the first that it lists.
    pub model: Option<String>,
    /// Refuse answers without token ids and log-probs. If false, they are taken as text.
    pub exact: bool,
    /// For one answer, from the first byte sent to the last received.
    pub request_timeout_secs: f64,
    pub connect_timeout_secs: f64,
    /// How often a request is sent at most, each time to another server if there is one.
    pub attempts: u32,
    /// How often in a row a generation may be interrupted without a new token.
    pub stalls_max: u32,
    /// Before the second attempt; doubles with every further one.
    pub backoff_secs: f64,
    pub backoff_max_secs: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            dialect: Dialect::Sglang,
            urls: Vec::new(),
            api_key: None,
            model: None,
            exact: true,
            request_timeout_secs: 3600.0,
            connect_timeout_secs: 5.0,
            attempts: 5,
            stalls_max: 32,
            backoff_secs: 0.1,
            backoff_max_secs: 10.0,
        }
    }
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys end up in logs through Debug.
        let key = self.api_key.as_ref().map(|_| "hidden");
        f.debug_struct("EngineConfig")
            .field("dialect", &self.dialect)
            .field("urls", &self.urls)
            .field("api_key", &key)
            .field("model", &self.model)
            .field("exact", &self.exact)
            .finish_non_exhaustive()
    }
}

impl EngineConfig {
    /// Of one server, with everything else as it is by default.
    pub fn of(dialect: Dialect, url: impl Into<String>) -> Self {
        Self { dialect, urls: vec![url.into()], ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), EngineError> {
        if self.urls.is_empty() {
            return Err(EngineError::BadRequest(
                "`urls` is empty, but an engine has at least one server".into(),
            ));
        }
        if self.attempts == 0 {
            return Err(EngineError::BadRequest(
                "`attempts` is 0, but a request is sent at least once".into(),
            ));
        }
        for (name, secs, least) in [
            ("request_timeout_secs", self.request_timeout_secs, f64::MIN_POSITIVE),
            ("connect_timeout_secs", self.connect_timeout_secs, f64::MIN_POSITIVE),
            ("backoff_secs", self.backoff_secs, 0.0),
            ("backoff_max_secs", self.backoff_max_secs, 0.0),
        ] {
            if !(secs >= least && Duration::try_from_secs_f64(secs).is_ok()) {
                return Err(EngineError::BadRequest(format!(
                    "`{name}` is {secs}, which is no length of time"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.request_timeout_secs)
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.connect_timeout_secs)
    }

    pub(super) fn backoff(&self) -> super::backoff::Backoff {
        super::backoff::Backoff {
            first: Duration::from_secs_f64(self.backoff_secs),
            most: Duration::from_secs_f64(self.backoff_max_secs),
        }
    }
}
