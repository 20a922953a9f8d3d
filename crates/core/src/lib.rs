//! The pure heart of Rollyard: no files, no sockets, no clock, no global randomness.
//!
//! Read the modules in this order, which is the way a rollout travels:
//! [`wire`] turns outside JSON into valid values, [`ledger`] decides what becomes of them,
//! [`pipeline`] says when a group is worth training on and what the trainer sees of it.
//! [`rollout`] is one of them to the token, [`replay`] picks the fresh ones to train on, [`tokens`] makes tokens and masks of text, and [`batch`] lays
//! many rollouts out as the tensors a trainer reads.
//! [`run_config`] holds every knob once; [`ids`] the names everything else is called by.

pub mod ids;
pub mod run_config;
pub mod wire;

pub mod ledger;
pub mod pipeline;

pub mod rollout;

pub mod replay;

pub mod tokens;

pub mod batch;
