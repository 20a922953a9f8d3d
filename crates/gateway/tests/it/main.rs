//! The crate as its users call it: one binary, so that it links once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod scripted;
