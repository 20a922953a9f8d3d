//! `/generate`: what was sampled, to the token, with the version of the weights.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

use super::super::body::{self, Body};
use super::super::refusal::Form;
use super::super::round::{self, Narrator, sampled};
use super::super::speech::Speech;
use super::super::words::Words;
use super::super::{App, add};
use super::asked::{Asked, Question};
use super::{Failure, Sglang};
use crate::engine::{Answer, Ask, Ended, Event, Sampled, TinyEngine};

pub(super) async fn answer(State(app): State<Arc<App>>, body: Body) -> Result<Response, Failure> {
    let began = Instant::now();
    let asked: Asked = body::read(body)?;
    let Question { asks, tops, texts_in_logprobs, stops, is_list, stream } = asked.question(&app)?;
    let heads = asks.iter().map(Head::of).collect();
    let words = Words::new(app.engine.tokenizer());
    let teller = Teller { engine: app.engine.clone(), words, heads, tops, texts_in_logprobs, is_list, began };
    if stream {
        let speech = |_: &Ask| Speech::new(Arc::clone(app.engine.tokenizer()), stops.clone(), false);
        let speeches = asks.iter().map(|ask| (speech(ask), Vec::new())).collect();
        return Ok(round::tell(&app.engine, asks, Narration { teller, speeches }).await?);
    }
    let answers = round::answers(&app.engine, asks).await?;
    let told = |(nth, answer): (usize, &Answer)| {
        teller.told(nth, &app.engine.text_of(answer), &sampled(answer), Some(answer))
    };
    let mut told: Vec<Value> = answers.iter().enumerate().map(told).collect();
    let told = if is_list { told.into() } else { told.pop().unwrap_or_default() };
    Ok(Json(told).into_response())
}

/// What an answer repeats of its question.
#[derive(Debug)]
struct Head {
    rid: String,
    prompt_tokens: usize,
}

impl Head {
    fn of(ask: &Ask) -> Self {
        Self { rid: ask.rid.clone(), prompt_tokens: ask.prompt.len() }
    }
}

#[derive(Debug)]
struct Teller {
    engine: TinyEngine,
    words: Words,
    heads: Vec<Head>,
    tops: Option<usize>,
    texts_in_logprobs: bool,
    is_list: bool,
    began: Instant,
}

impl Teller {
    /// All there is so far; complete with the answer.
    fn told(&self, nth: usize, text: &str, tokens: &[Sampled], answer: Option<&Answer>) -> Value {
        let (rid, prompt_tokens) =
            self.heads.get(nth).map_or(("", 0), |head| (head.rid.as_str(), head.prompt_tokens));
        let version = tokens.last().map_or_else(|| self.engine.stats().version, |last| last.version);
        let latency = answer.map_or_else(|| self.began.elapsed(), |answer| answer.latency);
        let mut meta = json!({
            "id": rid,
            "finish_reason": answer.map(|answer| finish_reason(&answer.ended, tokens.len())),
            "prompt_tokens": prompt_tokens,
            "completion_tokens": tokens.len(),
            "weight_version": version.to_string(),
            "e2e_latency": latency.as_secs_f64(),
        });
        if let Some(tops) = self.tops {
            let triples = tokens.iter().map(|sampled| self.triple(sampled.token, sampled.logprob));
            add(&mut meta, "output_token_logprobs", triples.collect());
            if tops > 0 {
                let likeliest = |sampled: &Sampled| -> Value {
                    sampled.tops.iter().map(|top| self.triple(top.token, top.logprob)).collect()
                };
                add(&mut meta, "output_top_logprobs", tokens.iter().map(likeliest).collect());
            }
        }
        let ids: Vec<i32> = tokens.iter().map(|sampled| sampled.token).collect();
        json!({"text": text, "output_ids": ids, "meta_info": meta})
    }

    fn triple(&self, token: i32, logprob: f32) -> Value {
        let word = self.texts_in_logprobs.then(|| self.words.word(token));
        json!([logprob, token, word])
    }
}

fn finish_reason(ended: &Ended, tokens: usize) -> Value {
    match ended {
        Ended::StopToken(token) => json!({"type": "stop", "matched": token}),
        Ended::StopText(text) => json!({"type": "stop", "matched": text}),
        Ended::Length => json!({"type": "length", "length": tokens}),
        Ended::Cut => json!({"type": "abort", "message": "interrupted; ask for the rest"}),
    }
}

/// Tells it again and again, each time longer, as SGLang does.
#[derive(Debug)]
struct Narration {
    teller: Teller,
    /// Of each answer what can be told of its text, and its tokens.
    speeches: Vec<(Speech, Vec<Sampled>)>,
}

impl Narrator for Narration {
    fn heard(&mut self, nth: usize, event: Event) -> Vec<Value> {
        let Some((speech, tokens)) = self.speeches.get_mut(nth) else { return Vec::new() };
        let mut told = match event {
            Event::Token(token) => {
                speech.push(token.token);
                tokens.push(token);
                self.teller.told(nth, speech.told(), tokens, None)
            }
            Event::Done(outcome) => match *outcome {
                Ok(answer) => {
                    let text = self.teller.engine.text_of(&answer);
                    self.teller.told(nth, &text, &sampled(&answer), Some(&answer))
                }
                Err(error) => Sglang::body(&error.into()),
            },
        };
        if self.teller.is_list {
            add(&mut told, "index", nth.into());
        }
        vec![told]
    }

    fn closing(&mut self) -> Vec<Value> {
        Vec::new()
    }
}
