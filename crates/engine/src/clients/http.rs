//! One question to one server over HTTP.
//!
//! Connections are kept and reused, without a proxy in between: engines stand in the same cluster.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Url};
use std::time::Duration;

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
        self.send(Method::POST, url, body, self.timeout).await
    }

    /// A small question that is answered at once, or not at all.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &Url,
        body: &'static str,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        self.send(method, url, body.as_bytes().to_vec(), within.min(self.timeout)).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Bytes, Failure> {
        let mut request = self.client.request(method, url.clone()).timeout(within);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        let answer = request.send().await.map_err(|error| failed(&error, url, within))?;
        let status = answer.status();
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(seconds);
        let bytes = answer.bytes().await.map_err(|error| failed(&error, url, within))?;
        if status.is_success() {
            return Ok(bytes);
        }
        let error = EngineError::Refused {
            status: status.as_u16(),
            message: beginning(&bytes),
            url: url.to_string(),
        };
        Err(Failure { error, retry_after })
    }
}

fn failed(error: &reqwest::Error, url: &Url, within: Duration) -> EngineError {
    let url = url.to_string();
    if error.is_timeout() && !error.is_connect() {
        return EngineError::Timeout { secs: within.as_secs_f64(), url };
    }
    EngineError::Unreachable { reason: cause(error), url }
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
