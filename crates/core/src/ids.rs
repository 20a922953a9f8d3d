//! The names that the ledger calls things by.
//!
//! Numbers are given out by the ledger in order and never reused, so they also say which came first.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The n-th group opened in its run; a group is one round of one instance.
    GroupNo
}
number! {
    /// The n-th lease granted in its run.
    LeaseNo
}
number! {
    /// Where the log keeps a payload. Only the log that gave it out can read it.
    Place
}
number! {
    /// Milliseconds since the Unix epoch, as told by the caller: the core has no clock.
    Time
}

impl Time {
    /// This time, `secs` later; an endless wait stays in range.
    #[must_use]
    pub fn after_secs(self, secs: f64) -> Self {
        // A float to integer cast saturates, so an infinite timeout becomes the far future.
        Self(self.0.saturating_add((secs.max(0.0) * 1000.0) as u64))
    }

    /// Seconds from `earlier` until this time, never negative.
    #[must_use]
    pub fn secs_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1000.0
    }
}

/// The name of a run: it becomes a folder and a part of URLs, so its letters are limited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RunName(String);

#[derive(Debug, thiserror::Error)]
#[error("run name {0:?} must be 1 to 100 letters, digits, '-', '_' or '.', and not begin with '.'")]
pub struct BadRunName(String);

impl RunName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for RunName {
    type Error = BadRunName;

    fn try_from(name: &str) -> Result<Self, BadRunName> {
        let fits = (1..=100).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if fits { Ok(Self(name.to_owned())) } else { Err(BadRunName(name.chars().take(120).collect())) }
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_names_cannot_leave_their_folder() {
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "ä", &"x".repeat(101)] {
            assert!(RunName::try_from(bad).is_err(), "{bad:?} was taken");
        }
        for good in ["default", "grpo-7b_v1.2", &"x".repeat(100)] {
            assert_eq!(RunName::try_from(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn an_endless_timeout_does_not_wrap() {
        assert_eq!(Time(5).after_secs(f64::INFINITY), Time(u64::MAX));
        assert_eq!(Time(5).after_secs(-1.0), Time(5));
    }
}
