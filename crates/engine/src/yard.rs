//! A yard as its clients see it: a Rollyard server, over HTTP.
//!
//! A [`crate::sink::YardSink`] writes to it, a trainer draws from it. Every call may be repeated without harm, so a
//! server that is away for a while, to be restarted, is waited for.

mod draw;

pub use draw::{Books, Draw, Drawn, DrawnRollout};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

use crate::http::{self, HttpError, cause};

#[derive(Clone, Debug)]
pub struct YardSettings {
    /// Of the server, such as `http://127.0.0.1:8889`.
    pub url: String,
    pub run: String,
    pub token: Option<String>,
    /// How long a server that does not answer is waited for.
    pub patience: Duration,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum YardError {
    #[error("the yard cannot be reached ({reason}); is `rollyard serve` running there? {url}")]
    Unreachable { reason: String, url: String },
    #[error("the yard answered with status {status}: {message}: {url}")]
    Refused { status: u16, message: String, url: String },
    #[error("the yard refused {refused} of the rollouts, the first because {message}: {url}")]
    Rejected { refused: u64, message: String, url: String },
    #[error("this does not seem to be a rollyard server ({reason}): {url}")]
    NotAYard { reason: String, url: String },
    #[error("the yard's token: {0}")]
    Client(HttpError),
}

/// One run of a yard.
#[derive(Clone, Debug)]
pub struct YardClient {
    settings: YardSettings,
    client: Client,
}

/// Uids that are asked after together.
const ASKED_TOGETHER: usize = 5_000;
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for one answer, beyond what the call itself is told to wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct Known {
    known: Vec<String>,
}

impl YardClient {
    pub fn new(settings: YardSettings) -> Result<Self, YardError> {
        let client = http::client(settings.token.as_deref(), |builder| builder).map_err(YardError::Client)?;
        Ok(Self { settings, client })
    }

    pub fn url(&self) -> &str {
        &self.settings.url
    }

    /// Makes the run if there is none of that name; one that is there keeps its knobs.
    pub async fn make_run(&self, config: &Value) -> Result<(), YardError> {
        let run = json!({"name": self.settings.run, "config": config});
        // Whoever mistyped the address wants to know now, not when the first group is done.
        self.post_once("/api/runs", run.to_string().into_bytes(), ANSWER_WITHIN).await.map(drop)
    }

    /// Which of these the yard has, or had.
    pub async fn known(&self, uids: &[String]) -> Result<HashSet<String>, YardError> {
        let mut known = HashSet::new();
        for uids in uids.chunks(ASKED_TOGETHER) {
            let body = json!({"uids": uids}).to_string().into_bytes();
            let answer: Known = self.read(&self.post("known", body).await?)?;
            known.extend(answer.known);
        }
        Ok(known)
    }

    /// A call of the run. Until there is an answer, or patience is at an end.
    pub(crate) async fn post(&self, call: &str, body: Vec<u8>) -> Result<Vec<u8>, YardError> {
        self.post_waiting(call, body, Duration::ZERO).await
    }

    /// The same, where the server itself may wait for so long before it answers.
    async fn post_waiting(&self, call: &str, body: Vec<u8>, wait: Duration) -> Result<Vec<u8>, YardError> {
        let path = format!("/api/runs/{}/{call}", self.settings.run);
        let give_up = Instant::now() + self.settings.patience;
        let mut pause = Duration::from_millis(100);
        loop {
            let error = match self.post_once(&path, body.clone(), ANSWER_WITHIN + wait).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let may_pass = match &error {
                YardError::Unreachable { .. } => true,
                YardError::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504 | 507),
                _ => false,
            };
            if !may_pass || Instant::now() + pause >= give_up {
                return Err(error);
            }
            tracing::warn!("{error}; trying again in {:.1} s", pause.as_secs_f64());
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(WAIT_MAX);
        }
    }

    async fn post_once(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Vec<u8>, YardError> {
        let url = format!("{}{path}", self.settings.url.trim_end_matches('/'));
        let unreachable =
            |error: reqwest::Error| YardError::Unreachable { reason: cause(&error), url: url.clone() };
        let kind = if path.ends_with("/rollouts") { "application/x-ndjson" } else { "application/json" };
        let request = self.client.post(&url).header(CONTENT_TYPE, kind).timeout(within).body(body);
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(unreachable)?.to_vec();
        if status.is_success() {
            return Ok(bytes);
        }
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let message = match body.pointer("/error/message").and_then(Value::as_str) {
            _ if status == StatusCode::UNAUTHORIZED => {
                "a token is wanted; give it with --token or ROLLYARD_TOKEN"
            }
            Some(message) => message,
            None => "without a message of a rollyard server",
        };
        Err(YardError::Refused { status: status.as_u16(), message: message.to_owned(), url })
    }

    pub(crate) fn read<T: for<'de> Deserialize<'de>>(&self, answer: &[u8]) -> Result<T, YardError> {
        serde_json::from_slice(answer)
            .map_err(|error| YardError::NotAYard { reason: error.to_string(), url: self.url().to_owned() })
    }
}
