//! The program as its users run it: one binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod agents;
mod archive;
mod assign_ids;
mod cluster;
mod cluster_direct;
mod cluster_faults;
mod crash;
mod demo;
mod engine;
mod generators;
mod help;
mod ledger;
mod ledger_copy;
mod program;
mod query;
mod replay_crash;
mod run;
mod settings;
mod startup;
mod stats;
mod tiny;
mod tokens;
