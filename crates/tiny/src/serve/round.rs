//! The questions of one request, answered together: all at once, or told as they come about.

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use futures_util::stream::{self, BoxStream, Stream, StreamExt, select_all};
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;

use super::asks::Asks;
use crate::engine::{Answer, AskError, Event, Flow, Sampled, TinyEngine};

/// All answers, in order. If one fails, the others are cancelled.
pub(super) async fn answers(engine: &TinyEngine, asks: Asks) -> Result<Vec<Answer>, AskError> {
    try_join_all(asks.into_iter().map(|ask| engine.ask(ask))).await
}

/// Tells what is heard of answers, in the words of a dialect.
pub(super) trait Narrator: Send + 'static {
    fn heard(&mut self, nth: usize, event: Event) -> Vec<Value>;

    /// When all is said.
    fn closing(&mut self) -> Vec<Value>;
}

/// Server-sent events as tokens are sampled. When the client goes away, what it asked for is cancelled.
pub(super) async fn tell(
    engine: &TinyEngine,
    asks: Asks,
    narrator: impl Narrator,
) -> Result<Response, AskError> {
    let flows = try_join_all(asks.into_iter().map(|ask| engine.stream(ask))).await?;
    Ok(Sse::new(lines(flows, narrator)).keep_alive(KeepAlive::default()).into_response())
}

struct Telling<N> {
    heard: stream::SelectAll<BoxStream<'static, (usize, Event)>>,
    narrator: N,
    lines: VecDeque<String>,
    closed: bool,
}

fn lines(
    flows: Vec<Flow>,
    narrator: impl Narrator,
) -> impl Stream<Item = Result<sse::Event, Infallible>> + Send + 'static {
    let heard = select_all(flows.into_iter().enumerate().map(|(nth, flow)| events(nth, flow)));
    let telling = Telling { heard, narrator, lines: VecDeque::new(), closed: false };
    stream::unfold(telling, |mut telling| async move {
        loop {
            if let Some(line) = telling.lines.pop_front() {
                return Some((Ok(sse::Event::default().data(line)), telling));
            }
            if telling.closed {
                return None;
            }
            let values = match telling.heard.next().await {
                Some((nth, event)) => telling.narrator.heard(nth, event),
                None => {
                    telling.closed = true;
                    telling.narrator.closing()
                }
            };
            telling.lines.extend(values.iter().map(Value::to_string));
            if telling.closed {
                telling.lines.push_back("[DONE]".to_owned());
            }
        }
    })
}

/// Until its end, which it has even if the engine is gone.
fn events(nth: usize, flow: Flow) -> BoxStream<'static, (usize, Event)> {
    let next = move |flow: Option<Flow>| async move {
        let mut flow = flow?;
        match flow.next().await {
            Some(event @ Event::Token(_)) => Some(((nth, event), Some(flow))),
            Some(event @ Event::Done(_)) => Some(((nth, event), None)),
            None => Some(((nth, Event::Done(Box::new(Err(AskError::Closed)))), None)),
        }
    };
    stream::unfold(Some(flow), next).boxed()
}

/// The tokens of an answer, each with what is known of it.
pub(super) fn sampled(answer: &Answer) -> Vec<Sampled> {
    let versions = answer.segments.iter().flat_map(|part| std::iter::repeat_n(part.version, part.tokens));
    let tops = answer.tops.iter().cloned().chain(std::iter::repeat(Vec::new()));
    let tokens = answer.tokens.iter().zip(&answer.logprobs).zip(versions).zip(tops);
    tokens
        .map(|(((token, logprob), version), tops)| Sampled {
            token: *token,
            logprob: *logprob,
            version,
            tops,
        })
        .collect()
}
