//! Calls a running server.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::time::Duration;
use ureq::http::StatusCode;

/// Longest wait for an answer; nothing that is asked here takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(url: &str, token: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_idle_connections_per_host(1)
            .build();
        Self { agent: config.into(), url: url.trim_end_matches('/').to_owned(), token }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What the server answers, which must be a yes.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let answer = self.authorize(request).call().map_err(|error| self.unreachable(&error))?;
        self.read(path, answer)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = self.authorize(request).content_type("application/json");
        let answer = request.send(body.to_string()).map_err(|error| self.unreachable(&error))?;
        self.read(path, answer)
    }

    fn authorize<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn read(&self, path: &str, mut answer: ureq::http::Response<ureq::Body>) -> Result<Value> {
        let text = answer.body_mut().with_config().limit(1 << 30).read_to_string();
        let text = text.with_context(|| format!("the answer broke off: {}{path}", self.url))?;
        let status = answer.status();
        let body: Value = serde_json::from_str(&text).map_err(|_| {
            anyhow!("this does not seem to be a rollyard server (status {status}): {}", self.url)
        })?;
        if status == StatusCode::UNAUTHORIZED {
            bail!("the server wants a token; give it with --token or ROLLYARD_TOKEN: {}", self.url);
        }
        if !status.is_success() {
            let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or(&text);
            bail!("{message} (status {}): {}{path}", status.as_u16(), self.url);
        }
        Ok(body)
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        anyhow!(
            "no answer: {error}; is `rollyard serve` running there? --url names another place: {}",
            self.url
        )
    }
}
