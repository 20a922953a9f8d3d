//! `/v1/completions`: a text or token ids in, what comes next out.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;

use super::super::body::{self, Body};
use super::super::prompts::Prompts;
use super::super::refusal::{Form, Refusal};
use super::super::round::{self, Narrator, sampled};
use super::super::words::Words;
use super::super::{App, add};
use super::asked::{Asked, Question};
use super::chat::{finish_reason, version};
use super::voice::{Piece, Voice};
use super::{Failure, OpenAi};
use crate::engine::{Answer, Event, TinyEngine};

const OBJECT: &str = "text_completion";
/// Where nobody says how many, as OpenAI has it.
const ANSWER_TOKENS: u32 = 16;

pub(super) async fn answer(State(app): State<Arc<App>>, body: Body) -> Result<Response, Failure> {
    let asked: Asked = body::read(body)?;
    let mut question = question(&app, asked)?;
    let asks = std::mem::take(&mut question.asks);
    let teller = Teller { words: Words::new(app.engine.tokenizer()), question, engine: app.engine.clone() };
    if teller.question.stream {
        let voices = Voice::all(&teller.question, asks.len(), app.engine.tokenizer());
        return Ok(round::tell(&app.engine, asks, Narration { teller, voices }).await?);
    }
    let answers = round::answers(&app.engine, asks).await?;
    Ok(Json(teller.whole(&answers)).into_response())
}

fn question(app: &App, asked: Asked) -> Result<Question, Refusal> {
    let raw = asked.prompt.as_deref().ok_or_else(|| Refusal::missing("prompt", "a text or token ids"))?;
    let prompts = Prompts::parse("prompt", raw)?.tokens("prompt", app.engine.tokenizer())?;
    asked.question(app, ("prompt", prompts), ANSWER_TOKENS, false)
}

#[derive(Debug)]
struct Teller {
    question: Question,
    words: Words,
    engine: TinyEngine,
}

impl Teller {
    fn whole(&self, answers: &[Answer]) -> Value {
        let choice = |(nth, answer): (usize, &Answer)| {
            let piece = Piece { text: self.engine.text_of(answer), tokens: sampled(answer) };
            self.choice(nth, &piece, Some(finish_reason(&answer.ended)), &mut 0, true)
        };
        let choices: Vec<Value> = answers.iter().enumerate().map(choice).collect();
        let mut whole = self.question.envelope(OBJECT, &choices);
        add(&mut whole, "usage", self.question.usage(answers.iter().map(|answer| answer.tokens.len()).sum()));
        add(&mut whole, "metadata", version(&self.engine, answers.first()));
        whole
    }

    fn choice(
        &self,
        nth: usize,
        Piece { text, tokens }: &Piece,
        finish_reason: Option<&str>,
        offset: &mut usize,
        is_first: bool,
    ) -> Value {
        let question = &self.question;
        let logprobs = question.tops.map(|tops| self.words.completion(tokens, tops, offset));
        let mut choice =
            json!({"index": nth, "text": text, "logprobs": logprobs, "finish_reason": finish_reason});
        if question.token_ids {
            add(&mut choice, "token_ids", tokens.iter().map(|sampled| sampled.token).collect());
            if is_first {
                add(&mut choice, "prompt_token_ids", json!(question.prompt(nth)));
            }
        }
        choice
    }
}

/// Tells it in chunks.
#[derive(Debug)]
struct Narration {
    teller: Teller,
    voices: Vec<Voice>,
}

impl Narration {
    fn chunk(&mut self, nth: usize, piece: &Piece, finish_reason: Option<&str>) -> Option<Value> {
        let voice = self.voices.get_mut(nth)?;
        let is_first = !std::mem::replace(&mut voice.begun, true);
        let choice = self.teller.choice(nth, piece, finish_reason, &mut voice.offset, is_first);
        Some(self.teller.question.chunk(OBJECT, choice))
    }

    fn end(&mut self, nth: usize, answer: &Answer) -> Option<Value> {
        let text = self.teller.engine.text_of(answer);
        let piece = self.voices.get_mut(nth)?.rest(&text);
        let mut chunk = self.chunk(nth, &piece, Some(finish_reason(&answer.ended)))?;
        add(&mut chunk, "metadata", version(&self.teller.engine, Some(answer)));
        Some(chunk)
    }
}

impl Narrator for Narration {
    fn heard(&mut self, nth: usize, event: Event) -> Vec<Value> {
        let told = match event {
            Event::Token(token) => {
                let piece = self.voices.get_mut(nth).and_then(|voice| voice.heard(token));
                piece.and_then(|piece| self.chunk(nth, &piece, None))
            }
            Event::Done(outcome) => match *outcome {
                Ok(answer) => self.end(nth, &answer),
                Err(error) => Some(OpenAi::body(&error.into())),
            },
        };
        told.into_iter().collect()
    }

    fn closing(&mut self) -> Vec<Value> {
        let sampled = self.voices.iter().map(|voice| voice.sampled).sum();
        self.teller.question.last_chunk(OBJECT, sampled).into_iter().collect()
    }
}
