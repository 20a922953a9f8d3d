//! What every HTTP client of ours has in common.
//!
//! Engines, rewards and yards stand in the same cluster: there is no proxy in between.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder};
use std::error::Error;

/// An error page can be long; its beginning tells what is wrong.
const MESSAGE_CHARS: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("it has characters that HTTP cannot carry")]
    Key,
    #[error("no HTTP client can be made: {0}")]
    Client(String),
}

/// A client that keeps its connections and sends `key`, if there is one, as a bearer token.
pub fn client(
    key: Option<&str>,
    settings: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, HttpError> {
    // Whoever came first has chosen, and that is as good.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| HttpError::Key)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let builder = Client::builder().http1_only().no_proxy().tcp_nodelay(true).default_headers(headers);
    settings(builder).build().map_err(|error| HttpError::Client(cause(&error)))
}

/// The innermost cause says it: "Connection refused", not "error sending request".
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The beginning of what a server said.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    if text.is_empty() {
        return "no message".into();
    }
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_error_page_the_beginning_is_told() {
        assert_eq!(beginning(b"  overloaded\n"), "overloaded");
        assert_eq!(beginning(b""), "no message");
        assert_eq!(beginning("ä".repeat(1000).as_bytes()), format!("{}…", "ä".repeat(MESSAGE_CHARS)));
    }
}
