//! Says in our words what the servers said in theirs.

use async_nats::ConnectErrorKind;
use async_nats::jetstream::{Error, ErrorCode};
use std::fmt::Display;
use std::path::PathBuf;

use super::super::error::LogError;
use super::message::{BadMessage, VERSION};
use super::names::Names;

/// What the server answers when a stream is as large as it may get, as far as it says so by a text only.
const FULL: [&str; 3] = ["maximum bytes exceeded", "maximum messages exceeded", "no space left on device"];

pub(super) fn failed(doing: &'static str, stream: &str, cause: impl Display) -> LogError {
    let cause = cause.to_string();
    if FULL.iter().any(|full| cause.contains(full)) {
        return LogError::NoSpace { doing, path: PathBuf::from(format!("stream {stream}")) };
    }
    LogError::Stream { doing, cause, stream: stream.to_owned() }
}

/// A stream that was there a moment ago.
pub(super) fn gone(names: &Names) -> LogError {
    failed("find it", &names.stream, "somebody has removed it")
}

/// What an error code means for whoever wrote.
pub(super) fn refused(doing: &'static str, stream: &str, error: &Error) -> LogError {
    let full = [
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
    ];
    if full.contains(&error.error_code()) {
        return LogError::NoSpace { doing, path: PathBuf::from(format!("stream {stream}")) };
    }
    failed(doing, stream, error)
}

pub(super) fn bad(stream: &str, sequence: u64, bad: BadMessage) -> LogError {
    let path = PathBuf::from(format!("stream {stream}"));
    match bad {
        BadMessage::Version(found) => LogError::Version { found: found.into(), known: VERSION.into(), path },
        BadMessage::Damaged(what) => {
            LogError::Corrupt { what: format!("message {sequence}: {what}"), offset: 0, path }
        }
    }
}

/// Why no connection was made, with what to do about it; and whether it may help to wait.
pub(super) fn unconnected(error: &async_nats::ConnectError) -> (String, bool) {
    match error.kind() {
        ConnectErrorKind::ServerParse => ("this is not an address; write nats://host:4222".to_owned(), false),
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
            "they refuse the credentials; give a user and a password as nats://user:password@host:4222, or a file with \
             --log-credentials"
                .to_owned(),
            false,
        ),
        ConnectErrorKind::Tls => (format!("{error}; tls:// needs a certificate that this machine trusts"), false),
        ConnectErrorKind::Dns | ConnectErrorKind::Io | ConnectErrorKind::TimedOut => {
            (format!("{error}; is the address right, and are they running?"), true)
        }
        ConnectErrorKind::MaxReconnects => (error.to_string(), true),
    }
}
