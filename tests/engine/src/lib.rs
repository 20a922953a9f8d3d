//! An engine without a model, for tests and benches.
//!
//! It speaks as SGLang, vLLM and OpenAI's chat completions do, all on one port. What it samples is a
//! function of what it is given ([`model`]), so a test can say what must come. It fails, hangs, aborts and
//! forgets token ids on command: see [`Settings`] and `POST /control`.
//! Beside it stands [`S3Server`], which is not ours and real.

pub mod model;
mod settings;

mod engine;
mod generate;
mod stream;

mod chat;
mod control;
mod sglang;
mod vllm;

mod http;
mod serve;

mod python;
mod s3;

pub use engine::Counters;
pub use python::interpreter;
pub use s3::S3Server;
pub use serve::TestEngine;
pub use settings::{Dialects, Settings};
