//! Calls a running server.

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use std::time::Duration;
use ureq::http::StatusCode;

/// Longest wait for an answer; nothing that is asked here takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);

const ANSWER_BYTES_MAX: u64 = 1 << 30;

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
            // Servers are on this machine or in this cluster; a proxy for the outside cannot reach them.
            .proxy(None)
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
        let status = answer.status();
        let text = text(answer).map_err(|error| self.unreachable(&error))?;
        self.agreed(path, status, &text)
    }

    /// The status and the text of an answer, whatever it says; an error if none came.
    pub(crate) fn post(&self, path: &str, body: &str) -> Result<(StatusCode, String), ureq::Error> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let answer = self.authorize(request).content_type("application/json").send(body)?;
        Ok((answer.status(), text(answer)?))
    }

    fn authorize<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn agreed(&self, path: &str, status: StatusCode, text: &str) -> Result<Value> {
        let body: Value = serde_json::from_str(text).map_err(|_| {
            anyhow!("this does not seem to be a rollyard server (status {status}): {}", self.url)
        })?;
        if status == StatusCode::UNAUTHORIZED {
            bail!("the server wants a token; give it with --token or ROLLYARD_TOKEN: {}", self.url);
        }
        if !status.is_success() {
            let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or(text);
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

fn text(mut answer: ureq::http::Response<ureq::Body>) -> Result<String, ureq::Error> {
    answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()
}
