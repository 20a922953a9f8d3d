//! The servers that tests rely on do what the tests think they do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod proxy;
mod server;
