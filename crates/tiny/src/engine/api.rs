//! The engine as every workflow knows engines.

use futures_util::future::{BoxFuture, FutureExt};
use rollyard_core::tokens::Tokenizer;
use rollyard_core::tokens::template::{Message as Said, Render, json};
use rollyard_engine::generate::{
    Capabilities, Delta, Engine, EngineError, Listener, Message, ModelRequest, ModelResponse, Prompt,
    StopReason,
};
use rollyard_engine::workflow::local_time;
use serde_json::value::RawValue;
use std::fmt::Display;

use super::TinyEngine;
use super::ask::{Answer, Ask, Ended, Event, Sampled, WhenCut};

impl Engine for TinyEngine {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>> {
        async move {
            let ask = self.ask_of(request)?;
            let prompt = ask.prompt.clone();
            let answer = self.ask(ask).await?;
            Ok(self.response(prompt, answer))
        }
        .boxed()
    }

    fn generate_told<'a>(
        &'a self,
        request: ModelRequest,
        listener: Listener<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, EngineError>> {
        async move {
            let ask = self.ask_of(request)?;
            let prompt = ask.prompt.clone();
            let mut flow = self.stream(ask).await?;
            while let Some(event) = flow.next().await {
                match event {
                    Event::Token(Sampled { token, logprob, version, .. }) => {
                        listener(Delta { tokens: &[token], logprobs: &[logprob], version });
                    }
                    Event::Done(answer) => return Ok(self.response(prompt, (*answer)?)),
                }
            }
            Err(EngineError::Closed)
        }
        .boxed()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { token_ids: true, logprobs: true, versions: true }
    }

    fn version(&self) -> i32 {
        self.stats().version
    }

    /// The version belongs to the weights, which [`TinyEngine::update`] brings; nothing else changes it.
    fn set_version(&self, version: i32) {
        let has = self.version();
        if has != version {
            tracing::warn!(
                has,
                asked = version,
                "the version was left as it is: it changes with the weights"
            );
        }
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move { Ok(self.hold().await?) }.boxed()
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move { Ok(self.go_on().await?) }.boxed()
    }
}

impl TinyEngine {
    fn ask_of(&self, request: ModelRequest) -> Result<Ask, EngineError> {
        let ModelRequest { rid, prompt, gconfig, .. } = request;
        let prompt = match prompt {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Chat { messages, tools } => {
                chat_tokens(self.tokenizer(), &messages, tools.as_deref()).map_err(EngineError::BadRequest)?
            }
        };
        Ok(Ask { rid, prompt, sampling: gconfig, when_cut: WhenCut::GoOn, ..Ask::default() })
    }

    fn response(&self, prompt: Vec<i32>, answer: Answer) -> ModelResponse {
        let text = self.text_of(&answer);
        let stop_reason = match answer.ended {
            Ended::StopToken(_) | Ended::StopText(_) => StopReason::Stop,
            Ended::Length => StopReason::Length,
            Ended::Cut => StopReason::Abort,
        };
        ModelResponse {
            input_tokens: prompt,
            output_tokens: answer.tokens,
            output_logprobs: answer.logprobs,
            segments: answer.segments,
            text: Some(text),
            message: None,
            stop_reason,
            latency: answer.latency,
            ttft: answer.ttft,
            is_exact: true,
        }
    }

    /// What a reader is shown: without special tokens, and without the stop that ended it.
    pub fn text_of(&self, answer: &Answer) -> String {
        let tokens = answer.tokens.as_slice();
        match (&answer.ended, tokens.split_last()) {
            (Ended::StopToken(stop), Some((last, before))) if stop == last => self.plain(before),
            (Ended::StopText(stop), Some((_, before))) => {
                // The last token completed it, so that it begins no earlier than its own length before that.
                let mut text = self.plain(tokens);
                let from = self.plain(before).len().saturating_sub(stop.len());
                let from = (0..=from).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
                if let Some(at) = text.get(from..).and_then(|tail| tail.find(stop.as_str())) {
                    text.truncate(from + at);
                }
                text
            }
            _ => self.plain(tokens),
        }
    }

    /// Without special tokens.
    pub(crate) fn plain(&self, tokens: &[i32]) -> String {
        let ids: Vec<u32> = tokens.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
        self.tokenizer().encoder().decode(&ids, true).unwrap_or_default()
    }
}

/// The conversation as the model's own template writes it, up to where the model is to speak.
pub(crate) fn chat_tokens(
    tokenizer: &Tokenizer,
    messages: &[Message],
    tools: Option<&RawValue>,
) -> Result<Vec<i32>, String> {
    let read = |(index, message): (usize, &Message)| {
        Said::from_value(index, &json::parse(message.get()).map_err(said)?).map_err(said)
    };
    let messages: Vec<Said> = messages.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let tools = tools.map(|tools| json::parse(tools.get())).transpose().map_err(said)?;
    let how = Render {
        tools: tools.as_ref(),
        add_generation_prompt: true,
        now: Some(local_time()),
        ..Render::default()
    };
    let rendered = tokenizer.render(&messages, &how).map_err(said)?;
    let ids = tokenizer.encoder().encode(&rendered.text).map_err(said)?;
    Ok(ids.into_iter().filter_map(|id| i32::try_from(id).ok()).collect())
}

fn said(error: impl Display) -> String {
    error.to_string()
}
