//! One question to one server over HTTP.
//!
//! Connections are kept and reused, without a proxy in between: engines stand in the same cluster.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url};
use std::time::Duration;
use tokio::time::timeout;

use super::config::EngineConfig;
use crate::generate::EngineError;
use crate::http::{self, beginning, cause};

/// No server knows what will be in a day.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(600);

#[derive(Clone, Debug)]
pub(super) struct Http {
    client: Client,
    timeout: Duration,
}

/// How an answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// At once, in time.
    Whole,
    /// As it comes about: it may take as long as it likes, but each part of it comes in time.
    Stream,
}

/// An answer that has begun.
#[derive(Debug)]
pub(super) struct Answer {
    response: Response,
    url: Url,
    within: Duration,
}

/// An error, and when the server said that it will be well again.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: EngineError,
    pub(super) retry_after: Option<Duration>,
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self { error, retry_after: None }
    }
}

impl Http {
    pub(super) fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let key = config.api_key.as_deref();
        let client = http::client(key, |builder| {
            builder.connect_timeout(config.connect_timeout()).pool_idle_timeout(Duration::from_secs(60))
        });
        let client = client.map_err(|error| EngineError::BadRequest(format!("`api_key`: {error}")))?;
        Ok(Self { client, timeout: config.request_timeout() })
    }

    pub(super) async fn post(&self, url: &Url, body: Vec<u8>) -> Result<Bytes, Failure> {
        Ok(self.open(Method::POST, url, body, Wire::Whole).await?.whole().await?)
    }

    /// Sends it and waits until an answer begins.
    pub(super) async fn open(
        &self,
        method: Method,
        url: &Url,
        body: Vec<u8>,
        wire: Wire,
    ) -> Result<Answer, Failure> {
        self.send(method, url, body, self.timeout, wire).await
    }

    /// A small question that is answered at once, or not at all.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &Url,
        body: &'static str,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        let body = body.as_bytes().to_vec();
        let answer = self.send(method, url, body, within.min(self.timeout), Wire::Whole).await?;
        Ok(answer.whole().await?)
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Vec<u8>,
        within: Duration,
        wire: Wire,
    ) -> Result<Answer, Failure> {
        let mut request = self.client.request(method, url.clone());
        if wire == Wire::Whole {
            request = request.timeout(within);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        let sent = request.send();
        let sent = match wire {
            Wire::Whole => sent.await,
            Wire::Stream => timeout(within, sent).await.map_err(|_| timed_out(url, within))?,
        };
        let response = sent.map_err(|error| failed(&error, url, within))?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
        let answer = Answer { response, url: url.clone(), within };
        if status.is_success() {
            return Ok(answer);
        }
        let bytes = answer.whole().await?;
        let error = EngineError::Refused {
            status: status.as_u16(),
            message: beginning(&bytes),
            url: url.to_string(),
        };
        Err(Failure { error, retry_after })
    }
}

impl Answer {
    /// Comes event by event.
    pub(super) fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }

    pub(super) async fn whole(self) -> Result<Bytes, EngineError> {
        let Self { response, url, within } = self;
        let bytes = timeout(within, response.bytes()).await.map_err(|_| timed_out(&url, within))?;
        bytes.map_err(|error| failed(&error, &url, within))
    }

    /// What comes next; `None` behind the last.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let bytes = timeout(self.within, self.response.chunk()).await;
        let bytes = bytes.map_err(|_| timed_out(&self.url, self.within))?;
        bytes.map_err(|error| failed(&error, &self.url, self.within))
    }
}

fn timed_out(url: &Url, within: Duration) -> EngineError {
    EngineError::Timeout { secs: within.as_secs_f64(), url: url.to_string() }
}

fn failed(error: &reqwest::Error, url: &Url, within: Duration) -> EngineError {
    if error.is_timeout() && !error.is_connect() {
        return timed_out(url, within);
    }
    EngineError::Unreachable { reason: cause(error), url: url.to_string() }
}

/// The form in seconds. The form with a date is not used by engines.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    let told = Duration::try_from_secs_f64(value.to_str().ok()?.trim().parse().ok()?).ok()?;
    Some(told.min(RETRY_AFTER_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_seconds_and_bounded() {
        for (written, secs) in [
            ("0", Some(0.0)),
            (" 2.5 ", Some(2.5)),
            ("1e300", None),
            ("99999999999", Some(600.0)),
            ("-1", None),
            ("NaN", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let told = seconds(&HeaderValue::from_static(written));
            assert_eq!(told, secs.map(Duration::from_secs_f64), "{written}");
        }
    }
}
