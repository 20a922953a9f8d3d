//! The crate as its users call it: one binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod engines;
