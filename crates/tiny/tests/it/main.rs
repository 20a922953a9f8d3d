//! The model over HTTP, as its clients ask it: one binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod calls;
mod completions;
mod engine;
mod gone;
mod nonsense;
mod refusals;
mod server;
mod sglang;
mod streams;
mod updates;
