//! The embedded policy: a small real language model that can be sampled and trained on a CPU.
//!
//! Read in this order. [`model`] is the network: its [`model::Weights`], how it goes on with a text
//! ([`model::Policy`]) and what its gradients are ([`model::Tape`]). [`tokenizer`] says what its tokens are, [`train`] has
//! the losses that it learns by, and [`task`] what there is to learn. An [`engine`] samples from it for many callers at
//! once, [`serve`] has it answer over HTTP, and to [`learn`] is all of it together. Behind the feature `gguf` the engine
//! samples from models of others too.

pub mod model;
pub mod tokenizer;

pub mod engine;
pub mod serve;

#[cfg(feature = "gguf")]
pub mod gguf;

pub mod train;

pub mod task;

pub mod learn;
