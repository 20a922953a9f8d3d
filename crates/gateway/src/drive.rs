//! Makes one answer: asks the engine, tells whoever listens, and puts the turn in its session.
//!
//! The end is told only when the turn is in the journal.

use rollyard_engine::generate::{
    Delta, EngineError, GenerationConfig, ModelRequest, ModelResponse, Prompt, Segment, SharedEngine,
    StopReason,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::flight::{Flight, Told};
use crate::gateway::{Gateway, now_ms};
use crate::live::{Called, Live};
use crate::look::{News, Said, UnderWay, turn_view};
use crate::parse::{Heard, Listener};
use crate::refusal::{Kind, Refusal};
use crate::session::event::{Event, Turned};
use crate::session::memory::{Known, made};
use crate::session::prepare::Prepared;
use crate::session::turn::{Ending, Facts, Turn, TurnNo};
use crate::tell::{Ended, Piece, Spelled, Spoken};
use crate::words::Words;

/// One answer to be made.
pub(crate) struct Drive {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) live: Arc<Live>,
    pub(crate) called: Arc<Called>,
    pub(crate) flight: Arc<Flight>,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) question: u128,
    pub(crate) gconfig: GenerationConfig,
    pub(crate) logprobs: bool,
    /// The agent wants to hear it as it comes.
    pub(crate) streams: bool,
    /// A call was demanded.
    pub(crate) needs_call: bool,
}

/// What was sampled, while it comes.
struct Draft {
    words: Words,
    listener: Listener,
    tokens: Vec<i32>,
    logprobs: Vec<f32>,
    segments: Vec<Segment>,
    reasoning_tokens: u32,
    first: Option<Duration>,
}

impl Drive {
    pub(crate) async fn run(self, listener: Listener) {
        let began = Instant::now();
        let began_ms = now_ms();
        let Self { gateway, live, flight, prepared, gconfig, .. } = &self;
        let mut draft = Draft {
            words: Words::new(Arc::clone(&gateway.model.tokenizer), gconfig.stop.clone()),
            listener,
            tokens: Vec::new(),
            logprobs: Vec::new(),
            segments: Vec::new(),
            reasoning_tokens: 0,
            first: None,
        };
        live.say(|| News::Began(Box::new(UnderWay::of(flight))));
        let request = ModelRequest {
            rid: String::new(),
            prompt: Prompt::Tokens(prepared.prompt.clone()),
            gconfig: gconfig.clone(),
            session: Some(live.id.to_string()),
            metadata: Map::new(),
        };
        let outcome = self.ask(&gateway.engine, request, &mut draft, began).await;
        let ending = match outcome {
            Ok(StopReason::Stop | StopReason::ToolCalls) => Ending::Stop,
            Ok(StopReason::Length) => Ending::Length,
            Ok(StopReason::Abort) => Ending::Abort,
            Err(refusal) => return self.fail(refusal),
        };
        let facts = Facts {
            stop: ending,
            began_ms,
            first_ms: millis(draft.first.unwrap_or_default()),
            temperature: if gconfig.greedy { 0.0 } else { gconfig.temperature },
            top_k: gconfig.top_k,
            keeps_thoughts: prepared.keeps_thoughts,
            ..Facts::default()
        };
        self.finish(draft, facts, began).await;
    }

    /// Asks the engine until it is done, nobody listens any more, or the session is over.
    async fn ask(
        &self,
        engine: &SharedEngine,
        request: ModelRequest,
        draft: &mut Draft,
        began: Instant,
    ) -> Result<StopReason, Refusal> {
        let grace = self.gateway.settings.hang_up_grace;
        let flight = &self.flight;
        let abandoned = async {
            loop {
                flight.unheard().await;
                tokio::select! {
                    () = tokio::time::sleep(grace) => return,
                    () = flight.heard() => {}
                }
            }
        };
        let mut listen = |delta: Delta<'_>| {
            draft.first.get_or_insert_with(|| began.elapsed());
            if let Some(spoken) = draft.hear(delta, self) {
                // Told first: who begins to watch in between finds it in the whole.
                let before = flight.tell(Told::Spoken(spoken));
                self.live.say(|| News::Said(Said::since(flight, before)));
            }
        };
        tokio::select! {
            answer = self.generate(engine, request, &mut listen) => {
                let response = answer.map_err(Refusal::from)?;
                if !response.is_exact {
                    let message = "the engine gives no token ids; the gateway needs one that speaks sglang or vllm";
                    return Err(Refusal::new(Kind::Engine, message));
                }
                Ok(response.stop_reason)
            }
            () = abandoned => Ok(StopReason::Abort),
            () = self.live.over.cancelled() => Err(Refusal::new(Kind::Conflict, "the session was closed")),
        }
    }

    /// Token by token where anybody wants to hear it so: a stream costs engine and gateway a message for every token.
    async fn generate(
        &self,
        engine: &SharedEngine,
        request: ModelRequest,
        listen: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<ModelResponse, EngineError> {
        if self.streams || self.live.is_watched() {
            return engine.generate_told(request, listen).await;
        }
        let response = engine.generate(request).await?;
        response.tell(listen);
        Ok(response)
    }

    async fn finish(&self, draft: Draft, mut facts: Facts, began: Instant) {
        let Draft { words, mut listener, tokens, logprobs, segments, reasoning_tokens, .. } = draft;
        let (rest, stop_text) = words.finish();
        let mut pieces = listener.push(&rest);
        let (last, heard) = listener.finish();
        pieces.extend(last);
        if !pieces.is_empty() {
            let tokens = Vec::new();
            self.flight.tell(Told::Spoken(Spoken { choice: self.flight.choice, pieces, tokens }));
        }
        if facts.stop == Ending::Stop && !heard.calls.is_empty() {
            facts.stop = Ending::ToolCalls;
        }
        facts.lacks_call = self.needs_call && heard.calls.is_empty();
        facts.malformed.clone_from(&heard.malformed);
        facts.reasoning_tokens = reasoning_tokens;
        facts.is_unheard = !self.flight.is_heard();
        facts.took_ms = millis(began.elapsed());
        let ended = Ended {
            choice: self.flight.choice,
            stop: facts.stop.into(),
            stop_text,
            completion_tokens: tokens.len(),
            reasoning_tokens: reasoning_tokens as usize,
        };
        let answer = message(&heard);
        let prepared = &self.prepared;
        let turn = Turn {
            id: self.flight.id,
            follows: prepared.follows,
            cut: prepared.cut,
            prefix: prepared.prefix,
            given: prepared.given.as_slice().into(),
            sampled: tokens.into(),
            logprobs: logprobs.into(),
            segments: segments.into(),
            messages: prepared.messages.clone(),
            standing: prepared.standing.after(&answer),
            answer,
            question: self.question,
            facts,
        };
        match self.record(turn).await {
            Ok(no) => {
                self.flight.tell(Told::Ended(ended, no));
            }
            Err(refusal) => self.fail(refusal),
        }
    }

    /// Puts the turn in the session, and waits until it is safe.
    async fn record(&self, turn: Turn) -> Result<TurnNo, Refusal> {
        let (no, receipt) = {
            let mut inner = self.live.inner();
            if let Some(closed) = &inner.state.closed {
                let message = format!("the session was closed meanwhile: {}", closed.reason);
                return Err(Refusal::new(Kind::Conflict, message));
            }
            let event = Event::Turned(Box::new(Turned::of(&turn, |raw| !inner.written.insert(raw))));
            let receipt = self.gateway.journal(&self.live.id, &event);
            let no = inner.state.push(turn);
            if let Some(turn) = inner.state.tree.get(no) {
                let view = || News::Ended(Box::new(turn_view(&inner, no, turn, true)));
                self.live.say(view);
            }
            (no, receipt)
        };
        receipt.await.map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?;
        self.live.end_one();
        Ok(no)
    }

    fn fail(&self, refusal: Refusal) {
        self.called.fail();
        self.live.end_one();
        {
            let mut inner = self.live.inner();
            inner.failures += 1;
            inner.last_error = Some(refusal.message.clone());
        }
        self.live.say(|| News::Failed { turn: self.flight.id, message: refusal.message.clone() });
        tracing::debug!(session = %self.live.id, turn = self.flight.id, %refusal, "an answer failed");
        self.flight.tell(Told::Failed(refusal));
    }
}

impl Draft {
    /// What can be told of it.
    fn hear(&mut self, delta: Delta<'_>, drive: &Drive) -> Option<Spoken> {
        self.tokens.extend_from_slice(delta.tokens);
        self.logprobs.extend_from_slice(delta.logprobs);
        match self.segments.last_mut() {
            Some(last) if last.version == delta.version => last.tokens += delta.tokens.len(),
            _ => self.segments.push(Segment { tokens: delta.tokens.len(), version: delta.version }),
        }
        let pieces = self.listener.push(&self.words.push(delta.tokens));
        // To within the tokens of one delta: where a thought ends inside of it.
        if !pieces.is_empty() && pieces.iter().all(|piece| matches!(piece, Piece::Reasoning(_))) {
            self.reasoning_tokens += u32::try_from(delta.tokens.len()).unwrap_or(u32::MAX);
        }
        let tokens =
            if drive.logprobs { drive.gateway.spelled(delta.tokens, delta.logprobs) } else { Vec::new() };
        let choice = drive.flight.choice;
        (!pieces.is_empty() || !tokens.is_empty()).then_some(Spoken { choice, pieces, tokens })
    }
}

impl Gateway {
    pub(crate) fn spelled(&self, tokens: &[i32], logprobs: &[f32]) -> Vec<Spelled> {
        let ids: Vec<u32> = tokens.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
        let texts = self.model.tokenizer.encoder().texts(&ids).unwrap_or_default();
        let each = tokens.iter().zip(texts).zip(logprobs);
        each.map(|((id, text), logprob)| Spelled { id: *id, text, logprob: *logprob }).collect()
    }
}

/// The answer in OpenAI's form, with its thoughts, and the arguments of calls as objects.
fn message(heard: &Heard) -> Arc<Known> {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "assistant".into());
    fields.insert("content".to_owned(), Value::from(heard.content.as_str()));
    if let Some(reasoning) = &heard.reasoning {
        fields.insert("reasoning_content".to_owned(), Value::from(reasoning.as_str()));
    }
    if !heard.calls.is_empty() {
        let call = |call: &crate::tell::Call| {
            json!({"id": call.id, "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        };
        fields.insert("tool_calls".to_owned(), heard.calls.iter().map(call).collect());
    }
    made(&Value::Object(fields))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
