//! An engine without a model, for tests and benches.
//!
//! It speaks as SGLang, vLLM and OpenAI's chat completions do, all on one port. What it samples is a
//! function of what it is given ([`model`]), so a test can say what must come. It fails, hangs, aborts and
//! forgets token ids on command: see [`Settings`] and `POST /control`.

pub mod model;
mod settings;

mod engine;
mod generate;

mod chat;
mod control;
mod sglang;
mod vllm;

mod http;
mod serve;

mod python;

pub use engine::Counters;
pub use python::interpreter;
pub use serve::TestEngine;
pub use settings::{Dialects, Settings};
