//! The log under use and under abuse: one binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod archive;
mod conformance;
mod faults;
mod faulty;
mod fixture;
mod model;
mod support;
mod yard;
