//! Accepted groups go to a yard: a Rollyard server, over HTTP.
//!
//! A rollout is named before it is sent, so that it may be sent as often as it takes: the yard recognises it.
//! A server that is away for a while, to be restarted, is waited for.

use futures_util::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

use super::Sink;
use super::identity::Naming;
use super::item::{self, Label};
use crate::executor::{Finished, Status};
use crate::http::{self, HttpError, cause};

#[derive(Clone, Debug)]
pub struct YardSettings {
    /// Of the server, such as `http://127.0.0.1:8889`.
    pub url: String,
    pub run: String,
    pub token: Option<String>,
    pub naming: Naming,
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

#[derive(Debug)]
pub struct YardSink {
    settings: YardSettings,
    client: Client,
}

/// Uids that are asked after together.
const ASKED_TOGETHER: usize = 5_000;
const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Written {
    rejected_total: u64,
    rejected: Vec<Value>,
}

#[derive(Deserialize)]
struct Known {
    known: Vec<String>,
}

impl YardSink {
    /// Makes the run if there is none of that name, with this group size if it is said.
    pub async fn open(settings: YardSettings, group_size: Option<u32>) -> Result<Self, YardError> {
        let client = http::client(settings.token.as_deref(), |builder| builder).map_err(YardError::Client)?;
        let sink = Self { settings, client };
        let config = group_size.map_or(json!({}), |size| json!({"group_size": size}));
        let run = json!({"name": sink.settings.run, "config": config});
        // Whoever mistyped the address wants to know now, not when the first group is done.
        sink.post_once("/api/runs", run.to_string().into_bytes()).await?;
        Ok(sink)
    }

    /// Which of these the yard has, or had.
    pub async fn known(&self, uids: &[String]) -> Result<HashSet<String>, YardError> {
        let mut known = HashSet::new();
        for uids in uids.chunks(ASKED_TOGETHER) {
            let body = json!({"uids": uids}).to_string().into_bytes();
            let answer: Known = self.read(&self.post(&self.of_run("known"), body).await?)?;
            known.extend(answer.known);
        }
        Ok(known)
    }

    async fn write(&self, finished: &Finished) -> Result<(), YardError> {
        let instance_id = Naming::instance_id(&finished.data);
        let (body, count) = self.items(finished, &instance_id)?;
        let written: Written = self.read(&self.post(&self.of_run("rollouts"), body).await?)?;
        if let Some(first) = written.rejected.first() {
            let message = first.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
            let (refused, url) = (written.rejected_total, self.settings.url.clone());
            return Err(YardError::Rejected { refused, message: message.to_owned(), url });
        }
        if count < finished.group_size as usize {
            // Nobody else will come. What an incomplete group is good for is the run's own rule.
            let body = json!({"instance_id": instance_id}).to_string().into_bytes();
            match self.post(&self.of_run("close_group"), body).await {
                Err(YardError::Refused { status: 404, .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn items(&self, finished: &Finished, instance_id: &str) -> Result<(Vec<u8>, usize), YardError> {
        let timestamp = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let group_size = finished.trajectories().map(|(_, trajectory)| trajectory.samples.len()).sum();
        let mut body = Vec::new();
        for (sample_idx, trajectory) in finished.trajectories() {
            for (part, sample) in trajectory.samples.iter().enumerate() {
                let uid = self.settings.naming.uid(finished.id.0, &finished.data, sample_idx, part);
                let label = Label {
                    uid: &uid,
                    instance_id,
                    timestamp: Some(timestamp),
                    group_size: Some(group_size),
                    epoch: None,
                    extra_info: json!({"task_id": finished.id, "sample_idx": sample_idx}),
                };
                item::write(&mut body, label, sample).map_err(|message| YardError::Rejected {
                    refused: 1,
                    message,
                    url: uid.clone(),
                })?;
                body.push(b'\n');
            }
        }
        Ok((body, group_size))
    }

    fn of_run(&self, call: &str) -> String {
        format!("/api/runs/{}/{call}", self.settings.run)
    }

    /// Until there is an answer, or patience is at an end.
    async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, YardError> {
        let give_up = Instant::now() + self.settings.patience;
        let mut wait = Duration::from_millis(100);
        loop {
            let error = match self.post_once(path, body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let may_pass = match &error {
                YardError::Unreachable { .. } => true,
                YardError::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504 | 507),
                _ => false,
            };
            if !may_pass || Instant::now() + wait >= give_up {
                return Err(error);
            }
            tracing::warn!("{error}; trying again in {:.1} s", wait.as_secs_f64());
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    async fn post_once(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, YardError> {
        let url = format!("{}{path}", self.settings.url.trim_end_matches('/'));
        let unreachable =
            |error: reqwest::Error| YardError::Unreachable { reason: cause(&error), url: url.clone() };
        let kind = if path.ends_with("/rollouts") { "application/x-ndjson" } else { "application/json" };
        let request =
            self.client.post(&url).header(CONTENT_TYPE, kind).timeout(Duration::from_secs(120)).body(body);
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

    fn read<T: for<'de> Deserialize<'de>>(&self, answer: &[u8]) -> Result<T, YardError> {
        let url = || self.settings.url.clone();
        serde_json::from_slice(answer)
            .map_err(|error| YardError::NotAYard { reason: error.to_string(), url: url() })
    }
}

impl Sink for YardSink {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match finished.status {
                Status::Accepted => self.write(finished).await.map_err(|error| error.to_string()),
                Status::Rejected(_) | Status::Failed(_) => Ok(()),
            }
        })
    }
}
