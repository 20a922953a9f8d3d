//! `/v1/chat/completions`: messages in, a message out, with the tools that it calls.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rollyard_engine::tool::{ToolCall, ToolSyntax};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::super::body::{self, Body};
use super::super::refusal::{Form, Refusal};
use super::super::round::{self, Narrator, sampled};
use super::super::words::Words;
use super::super::{App, add, round::answers};
use super::asked::{Asked, Question};
use super::voice::{Piece, Voice};
use super::{Failure, OpenAi, messages};
use crate::engine::{Answer, AskError, Ended, Event, TinyEngine};

const CHUNK: &str = "chat.completion.chunk";

pub(super) async fn answer(State(app): State<Arc<App>>, body: Body) -> Result<Response, Failure> {
    let asked: Asked = body::read(body)?;
    let mut question = question(&app, asked)?;
    let asks = std::mem::take(&mut question.asks);
    let teller = Teller { words: Words::new(app.engine.tokenizer()), question, engine: app.engine.clone() };
    if teller.question.stream {
        let voices = Voice::all(&teller.question, asks.len(), app.engine.tokenizer());
        return Ok(round::tell(&app.engine, asks, Narration { teller, voices }).await?);
    }
    let answers = answers(&app.engine, asks).await?;
    Ok(Json(teller.whole(&answers)).into_response())
}

fn question(app: &App, asked: Asked) -> Result<Question, Refusal> {
    let tools = messages::tools(asked.tools.as_deref(), asked.tool_choice.as_ref())?;
    let prompt = messages::tokens(asked.messages.as_deref(), tools, app.engine.tokenizer())?;
    let calls = tools.is_some();
    // All that the context has room for.
    let answer_tokens = u32::try_from(app.engine.context()).unwrap_or(u32::MAX);
    asked.question(app, ("messages", vec![prompt]), answer_tokens, calls)
}

#[derive(Debug)]
struct Teller {
    question: Question,
    words: Words,
    engine: TinyEngine,
}

/// What an answer comes down to.
struct Said {
    content: String,
    calls: Vec<Value>,
    finish_reason: &'static str,
}

impl Teller {
    fn whole(&self, answers: &[Answer]) -> Value {
        let choices: Vec<Value> =
            answers.iter().enumerate().map(|(nth, answer)| self.choice(nth, answer)).collect();
        let mut whole = self.question.envelope("chat.completion", &choices);
        add(&mut whole, "usage", self.question.usage(answers.iter().map(|answer| answer.tokens.len()).sum()));
        add(&mut whole, "metadata", version(&self.engine, answers.first()));
        if self.question.token_ids {
            add(&mut whole, "prompt_token_ids", json!(self.question.prompt(0)));
        }
        whole
    }

    fn choice(&self, nth: usize, answer: &Answer) -> Value {
        let Said { content, calls, finish_reason } = self.said(nth, answer);
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !calls.is_empty() {
            add(&mut message, "content", if content.is_empty() { Value::Null } else { content.into() });
            add(&mut message, "tool_calls", calls.into());
        }
        let logprobs = self.question.tops.map(|tops| self.words.chat(&sampled(answer), tops));
        let mut choice =
            json!({"index": nth, "message": message, "logprobs": logprobs, "finish_reason": finish_reason});
        if self.question.token_ids {
            add(&mut choice, "token_ids", json!(answer.tokens));
        }
        choice
    }

    fn said(&self, nth: usize, answer: &Answer) -> Said {
        let content = self.engine.text_of(answer);
        let finish_reason = finish_reason(&answer.ended);
        let plain = |content| Said { content, calls: Vec::new(), finish_reason };
        // What was interrupted will be asked for again as a whole.
        if !self.question.calls || answer.ended == Ended::Cut {
            return plain(content);
        }
        let found = ToolSyntax::Hermes.find(&content);
        let calls: Result<Vec<ToolCall>, _> = found.calls.into_iter().collect();
        match calls {
            Ok(calls) if !calls.is_empty() => Said {
                calls: calls.iter().enumerate().map(|(at, call)| self.call(nth, at, call)).collect(),
                content: found.content,
                finish_reason: "tool_calls",
            },
            // A call that nobody understands stays the text that it is.
            _ => plain(content),
        }
    }

    fn call(&self, nth: usize, at: usize, call: &ToolCall) -> Value {
        let id = format!("call-{}-{nth}-{at}", self.question.id);
        json!({"id": id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments.get()}})
    }
}

/// Tells it in chunks.
#[derive(Debug)]
struct Narration {
    teller: Teller,
    voices: Vec<Voice>,
}

impl Narration {
    fn chunk(&self, nth: usize, delta: Value, finish_reason: Option<&str>, piece: Option<&Piece>) -> Value {
        let Teller { question, words, .. } = &self.teller;
        let tokens = piece.map(|piece| piece.tokens.as_slice()).filter(|tokens| !tokens.is_empty());
        let logprobs = question.tops.zip(tokens).map(|(tops, tokens)| words.chat(tokens, tops));
        let mut choice =
            json!({"index": nth, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason});
        if let Some(tokens) = tokens.filter(|_| question.token_ids) {
            add(&mut choice, "token_ids", tokens.iter().map(|sampled| sampled.token).collect());
        }
        question.chunk(CHUNK, choice)
    }

    /// The first chunk of an answer says who speaks.
    fn begin(&mut self, nth: usize) -> Option<Value> {
        let voice = self.voices.get_mut(nth).filter(|voice| !voice.begun)?;
        voice.begun = true;
        let mut chunk = self.chunk(nth, json!({"role": "assistant", "content": ""}), None, None);
        if self.teller.question.token_ids {
            add(&mut chunk, "prompt_token_ids", json!(self.teller.question.prompt(nth)));
        }
        Some(chunk)
    }

    fn end(&mut self, nth: usize, outcome: Result<Answer, AskError>) -> Vec<Value> {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => return vec![OpenAi::body(&error.into())],
        };
        let Said { content, calls, finish_reason } = self.teller.said(nth, &answer);
        let Some(piece) = self.voices.get_mut(nth).map(|voice| voice.rest(&content)) else {
            return Vec::new();
        };
        let mut delta = Map::new();
        if !piece.text.is_empty() {
            delta.insert("content".to_owned(), json!(piece.text));
        }
        if !calls.is_empty() {
            let numbered = calls.into_iter().enumerate().map(|(at, mut call)| {
                add(&mut call, "index", at.into());
                call
            });
            delta.insert("tool_calls".to_owned(), numbered.collect());
        }
        let mut chunks = Vec::new();
        if !delta.is_empty() || !piece.tokens.is_empty() {
            chunks.push(self.chunk(nth, delta.into(), None, Some(&piece)));
        }
        let mut last = self.chunk(nth, json!({}), Some(finish_reason), None);
        add(&mut last, "metadata", version(&self.teller.engine, Some(&answer)));
        chunks.push(last);
        chunks
    }
}

impl Narrator for Narration {
    fn heard(&mut self, nth: usize, event: Event) -> Vec<Value> {
        let mut chunks: Vec<Value> = self.begin(nth).into_iter().collect();
        match event {
            Event::Token(token) => {
                let piece = self.voices.get_mut(nth).and_then(|voice| voice.heard(token));
                let told =
                    piece.map(|piece| self.chunk(nth, json!({"content": piece.text}), None, Some(&piece)));
                chunks.extend(told);
            }
            Event::Done(outcome) => chunks.extend(self.end(nth, *outcome)),
        }
        chunks
    }

    fn closing(&mut self) -> Vec<Value> {
        let sampled = self.voices.iter().map(|voice| voice.sampled).sum();
        self.teller.question.last_chunk(CHUNK, sampled).into_iter().collect()
    }
}

pub(super) fn finish_reason(ended: &Ended) -> &'static str {
    match ended {
        Ended::StopToken(_) | Ended::StopText(_) => "stop",
        Ended::Length => "length",
        Ended::Cut => "abort",
    }
}

/// Of the weights, where SGLang tells it.
pub(super) fn version(engine: &TinyEngine, answer: Option<&Answer>) -> Value {
    let version = answer.and_then(Answer::version).unwrap_or_else(|| engine.stats().version);
    json!({"weight_version": version.to_string()})
}
