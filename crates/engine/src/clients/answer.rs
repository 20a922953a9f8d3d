//! What every dialect's answer comes down to, and what can be wrong with it.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

use crate::generate::{EngineError, StopReason};

/// What was sampled in one go.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// `None` if the engine gave no ids, or none of the log-probs that belong to them.
    pub tokens: Option<Tokens>,
    pub text: Option<String>,
    pub end: End,
    /// As the engine says, if it is a number.
    pub version: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tokens {
    pub ids: Vec<i32>,
    /// One for each.
    pub logprobs: Vec<f32>,
}

impl Tokens {
    pub(super) fn paired(ids: Vec<i32>, logprobs: Vec<f32>) -> Result<Self, Flaw> {
        if ids.len() != logprobs.len() {
            return Err(Flaw::Bad(format!("{} token ids, but {} log-probs", ids.len(), logprobs.len())));
        }
        Ok(Self { ids, logprobs })
    }
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done(StopReason),
    /// Interrupted: there is more to come.
    Cut,
}

impl End {
    pub(super) fn named(name: Option<&str>) -> Result<Self, Flaw> {
        Ok(match name {
            // A filter or a guard against repetition ends an answer for good, as a stop token does.
            Some("stop" | "eos" | "content_filter" | "repetition") => Self::Done(StopReason::Stop),
            Some("length") => Self::Done(StopReason::Length),
            Some("tool_calls" | "function_call") => Self::Done(StopReason::ToolCalls),
            Some("abort") => Self::Cut,
            Some(other) => return Err(Flaw::Bad(format!("the finish reason {other:?} is not known"))),
            None => return Err(Flaw::Bad("no finish reason".into())),
        })
    }
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    Bad(String),
    NotExact {
        what: &'static str,
        hint: &'static str,
    },
    /// The engine says that it failed, or that the request is at fault.
    Refused {
        status: u16,
        message: String,
    },
}

impl Flaw {
    pub(super) fn at(self, url: &str) -> EngineError {
        let url = url.to_owned();
        match self {
            Self::Bad(reason) => EngineError::BadAnswer { reason, url },
            Self::NotExact { what, hint } => EngineError::NotExact { what, hint, url },
            Self::Refused { status, message } => EngineError::Refused { status, message, url },
        }
    }
}

impl From<serde_json::Error> for Flaw {
    fn from(error: serde_json::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// The weights' version as engines write it: a number, a number in a string, or a name that is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version(pub(super) Option<i32>);

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyVersion)
    }
}

struct AnyVersion;

impl<'de> Visitor<'de> for AnyVersion {
    type Value = Version;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a version")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Version, E> {
        Ok(Version(i32::try_from(value).ok()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Version, E> {
        Ok(Version(i32::try_from(value).ok()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Version, E> {
        Ok(Version(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Version, E> {
        Ok(Version(None))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
        Ok(Version(text.trim().parse().ok()))
    }

    fn visit_unit<E: Error>(self) -> Result<Version, E> {
        Ok(Version(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Version, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Version(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Version, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Version(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_form() {
        for (json, version) in [
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("\"12\"", Some(12)),
            ("\"default\"", None),
            ("null", None),
            ("1.5", None),
            ("99999999999", None),
            ("[1, {}]", None),
            ("{\"step\": 3}", None),
        ] {
            assert_eq!(serde_json::from_str::<Version>(json).unwrap(), Version(version), "{json}");
        }
    }
}
