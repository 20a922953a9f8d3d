//! Tells a completion in chunks.

use super::super::openai::{Envelope, Failure, Taken, Usage};
use super::super::{Tells, wire};
use super::answer::{self, Choice, Logprobs, OBJECT};
use crate::ask::Ask;
use crate::refusal::Refusal;
use crate::tell::{Begun, Ended, Piece, Spoken};

#[derive(Debug)]
pub(in super::super) struct Stream {
    id: String,
    begun: Begun,
    with_usage: bool,
    taken: Taken,
    /// Of each choice, the characters of the tokens until now.
    offsets: Vec<usize>,
}

impl Stream {
    pub(in super::super) fn new(begun: Begun, ask: &Ask) -> Self {
        let (id, with_usage) = (answer::id(&begun.id), ask.usage_in_stream);
        let choices = usize::try_from(ask.choices.get()).unwrap_or_default();
        Self { id, begun, with_usage, taken: Taken::default(), offsets: vec![0; choices] }
    }

    fn chunk(&self, choices: &[Choice<'_>], usage: Option<Usage>, out: &mut Vec<u8>) {
        let Begun { created, model, .. } = &self.begun;
        let usage = self.with_usage.then_some(usage);
        let envelope = Envelope { id: &self.id, object: OBJECT, created: *created, model, choices, usage };
        wire::data(&envelope, out);
    }
}

impl Tells for Stream {
    /// A text begins with its first words.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        let index = spoken.choice;
        let text = |piece: &Piece| match piece {
            Piece::Content(text) => Some(text.clone()),
            // Nobody tells thoughts and calls apart in a plain text.
            Piece::Reasoning(_) | Piece::CallBegun { .. } | Piece::CallArguments { .. } => None,
        };
        let text: String = spoken.pieces.iter().filter_map(text).collect();
        let nth = usize::try_from(index).unwrap_or(usize::MAX);
        let offset = self.offsets.get_mut(nth).filter(|_| !spoken.tokens.is_empty());
        let logprobs = offset.map(|offset| Logprobs::new(&spoken.tokens, offset));
        if !text.is_empty() || logprobs.is_some() {
            self.chunk(&[Choice { index, text: &text, logprobs, finish_reason: None }], None, out);
        }
    }

    fn end(&mut self, ended: &Ended, out: &mut Vec<u8>) {
        self.taken.add(ended);
        let finish_reason = Some(answer::finish_reason(ended.stop));
        let choice = Choice { index: ended.choice, text: "", logprobs: None, finish_reason };
        self.chunk(&[choice], None, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.with_usage {
            self.chunk(&[], Some(self.taken.usage(&self.begun)), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        wire::data(&Failure::from(refusal), out);
    }
}
