//! A generation in messages.
//!
//! A message cannot be continued in its middle: the server applies its template to whole messages. So one
//! that is interrupted is asked for anew, and has one version of the weights.

use serde_json::value::RawValue;
use std::time::Instant;

use super::HttpEngine;
use super::answer::End;
use super::ask::{Call, Names};
use super::openai::{self, Said};
use crate::generate::{EngineError, GenerationConfig, Message, ModelResponse, Segment};

impl HttpEngine {
    pub(super) async fn generate_chat(
        &self,
        mut names: Names,
        messages: &[Message],
        tools: Option<&RawValue>,
        gconfig: &GenerationConfig,
        session: Option<&str>,
    ) -> Result<ModelResponse, EngineError> {
        let began = Instant::now();
        let model = self.model().await?;
        let question = |_: &str| openai::question(&model, messages, tools, gconfig);
        let mut stalls = 0;
        loop {
            let reply = self.line.ask(Call::Chat, &mut names, session, question).await?;
            let Said { message, text, end, version } =
                openai::answer(&reply.bytes).map_err(|flaw| reply.origin.refuse(flaw))?;
            let End::Done(stop_reason) = end else {
                self.wait_out(&mut stalls, &reply.origin).await?;
                continue;
            };
            let latency = began.elapsed();
            return Ok(ModelResponse {
                input_tokens: Vec::new(),
                output_tokens: Vec::new(),
                output_logprobs: Vec::new(),
                segments: vec![Segment { tokens: 0, version: version.unwrap_or(reply.origin.version) }],
                text,
                message: Some(message),
                stop_reason,
                latency,
                ttft: latency,
                is_exact: false,
            });
        }
    }
}
