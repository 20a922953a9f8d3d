//! A text that is being sampled.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::generate::Segment;
use std::time::Instant;
use tokio::sync::mpsc;

use super::ask::{Alternative, Answer, Ask, AskError, Ended, Event, Sampled, WhenCut};
use super::desk::Job;
use super::sampling::{Choice, Odds, Picker};
use crate::model::SlotId;

#[derive(Debug)]
pub(super) struct Text {
    pub(super) slot: SlotId,
    pub(super) rid: String,
    pub(super) when_cut: WhenCut,
    /// Whether it takes part in this step.
    pub(super) steps: bool,
    /// What became of it; it leaves after the step.
    pub(super) outcome: Option<Result<Ended, AskError>>,
    /// The prompt, and behind it what was sampled.
    sequence: Vec<i32>,
    prompt_len: usize,
    /// How much of it the model has read.
    read: usize,
    /// Tokens that the answer may have.
    min: usize,
    max: usize,
    choice: Choice,
    noise: ChaCha8Rng,
    tops_len: usize,
    /// Tokens that end it.
    ends: Vec<i32>,
    stop: Vec<String>,
    logprobs: Vec<f32>,
    tops: Vec<Vec<Alternative>>,
    segments: Vec<Segment>,
    /// Interrupted: the next token begins a segment.
    cut: bool,
    streams: bool,
    events: mpsc::Sender<Event>,
    asked: Instant,
    first_token: Option<Instant>,
}

impl Text {
    pub(super) fn new(job: Job, slot: SlotId, eos: &[i32], context: usize) -> Self {
        let Job { ask, streams, events, asked, .. } = job;
        let Ask { rid, prompt, sampling, nth, tops, ignore_eos, when_cut } = ask;
        let mut noise = ChaCha8Rng::seed_from_u64(sampling.seed.unwrap_or_default());
        noise.set_stream(nth);
        // Two words of noise for every token of the text, prompt included: see the head of `engine`.
        noise.set_word_pos(2 * prompt.len() as u128);
        let ends = if ignore_eos { &[] } else { eos };
        let room = context.saturating_sub(prompt.len());
        Self {
            slot,
            rid,
            when_cut,
            steps: false,
            outcome: None,
            prompt_len: prompt.len(),
            sequence: prompt,
            read: 0,
            min: sampling.min_new_tokens as usize,
            max: room.min(sampling.max_new_tokens as usize),
            choice: Choice::new(&sampling),
            noise,
            tops_len: tops,
            ends: [ends, &sampling.stop_token_ids].concat(),
            stop: sampling.stop,
            logprobs: Vec::new(),
            tops: Vec::new(),
            segments: Vec::new(),
            cut: false,
            streams,
            events,
            asked,
            first_token: None,
        }
    }

    /// What the model is to read next.
    pub(super) fn unread(&self) -> &[i32] {
        self.sequence.get(self.read..).unwrap_or_default()
    }

    pub(super) fn sampled(&self) -> usize {
        self.logprobs.len()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    /// What the model has read is gone.
    pub(super) fn forget(&mut self) {
        self.read = 0;
    }

    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    /// The model has read all, and these are its logits: the text is a token longer.
    pub(super) fn grow(&mut self, logits: &[f32], version: i32, picker: &mut Picker, tokenizer: &Tokenizer) {
        self.read = self.sequence.len();
        let before = self.sequence.get(self.prompt_len..).unwrap_or_default();
        let barred = if before.len() < self.min { self.ends.as_slice() } else { &[] };
        // The upper 53 bits are as many as a float has.
        let noise = (self.noise.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let odds = Odds { logits, barred, before, noise, tops: self.tops_len };
        let mut tops = Vec::new();
        let Some(Alternative { token, logprob }) = picker.pick(&self.choice, odds, &mut tops) else {
            let reason = "its logits are not numbers; are its weights?".to_owned();
            self.outcome = Some(Err(AskError::Failed(reason)));
            return;
        };
        self.first_token.get_or_insert_with(Instant::now);
        self.sequence.push(token);
        self.logprobs.push(logprob);
        match self.segments.last_mut() {
            Some(segment) if segment.version == version && !self.cut => segment.tokens += 1,
            _ => self.segments.push(Segment { tokens: 1, version }),
        }
        self.cut = false;
        if self.streams {
            // There is room for as many tokens as the context has; who went away is found out before the next step.
            let _gone =
                self.events.try_send(Event::Token(Sampled { token, logprob, version, tops: tops.clone() }));
        }
        if self.tops_len > 0 {
            self.tops.push(tops);
        }
        self.outcome = self.end(tokenizer).map(Ok);
    }

    /// Why it is complete, if it is.
    pub(super) fn end(&self, tokenizer: &Tokenizer) -> Option<Ended> {
        let output = self.sequence.get(self.prompt_len..).unwrap_or_default();
        if output.len() >= self.min {
            if let Some(last) = output.last().filter(|last| self.ends.contains(last)) {
                return Some(Ended::StopToken(*last));
            }
            if let Some(text) = self.stop.iter().find(|stop| ends_with(tokenizer, output, stop)) {
                return Some(Ended::StopText(text.clone()));
            }
        }
        (output.len() >= self.max).then_some(Ended::Length)
    }

    pub(super) fn finish(mut self) {
        let outcome = self.outcome.take().unwrap_or(Ok(Ended::Cut));
        let now = Instant::now();
        let answer = outcome.map(|ended| Answer {
            tokens: self.sequence.split_off(self.prompt_len),
            logprobs: self.logprobs,
            tops: self.tops,
            segments: self.segments,
            ended,
            ttft: self.first_token.unwrap_or(now).duration_since(self.asked),
            latency: now.duration_since(self.asked),
        });
        // Whoever asked may be gone.
        let _gone = self.events.try_send(Event::Done(Box::new(answer)));
    }
}

/// Whether the text of these tokens has come to `stop` with the last of them.
fn ends_with(tokenizer: &Tokenizer, output: &[i32], stop: &str) -> bool {
    // A token is a byte of text at least, so that more of them cannot matter.
    let tail = output.len().saturating_sub(stop.len() + 1);
    let ids: Vec<u32> =
        output.get(tail..).unwrap_or_default().iter().filter_map(|id| u32::try_from(*id).ok()).collect();
    tokenizer.encoder().decode(&ids, false).is_ok_and(|text| text.contains(stop))
}
