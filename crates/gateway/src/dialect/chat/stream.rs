//! Tells a chat completion in chunks.

use serde::Serialize;

use super::super::openai::{Envelope, Failure, Taken, Usage};
use super::super::{Tells, wire};
use super::answer::{self, Logprobs};
use crate::ask::Ask;
use crate::refusal::Refusal;
use crate::tell::{Begun, Ended, Piece, Spoken};

#[derive(Debug)]
pub(in super::super) struct Stream {
    id: String,
    begun: Begun,
    choices: u32,
    with_usage: bool,
    taken: Taken,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Call<'a>; 1]>,
}

#[derive(Serialize)]
struct Call<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl Stream {
    pub(in super::super) fn new(begun: Begun, ask: &Ask) -> Self {
        let (id, choices, with_usage) = (answer::id(&begun.id), ask.choices.get(), ask.usage_in_stream);
        Self { id, begun, choices, with_usage, taken: Taken::default() }
    }

    fn chunk(&self, choices: &[Choice<'_>], usage: Option<Usage>, out: &mut Vec<u8>) {
        let Begun { created, model, .. } = &self.begun;
        let usage = self.with_usage.then_some(usage);
        let object = "chat.completion.chunk";
        wire::data(&Envelope { id: &self.id, object, created: *created, model, choices, usage }, out);
    }
}

impl Tells for Stream {
    fn begin(&mut self, out: &mut Vec<u8>) {
        for index in 0..self.choices {
            let delta = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
            self.chunk(&[Choice { index, delta, logprobs: None, finish_reason: None }], None, out);
        }
    }

    fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        let mut logprobs = (!spoken.tokens.is_empty()).then(|| Logprobs::new(&spoken.tokens));
        for piece in &spoken.pieces {
            // Tokens are told once, with the first thing that they said.
            let (index, delta, logprobs) = (spoken.choice, delta(piece), logprobs.take());
            self.chunk(&[Choice { index, delta, logprobs, finish_reason: None }], None, out);
        }
        if logprobs.is_some() {
            let (index, delta) = (spoken.choice, Delta::default());
            self.chunk(&[Choice { index, delta, logprobs, finish_reason: None }], None, out);
        }
    }

    fn end(&mut self, ended: &Ended, out: &mut Vec<u8>) {
        self.taken.add(ended);
        let finish_reason = Some(answer::finish_reason(ended.stop));
        let (index, delta) = (ended.choice, Delta::default());
        self.chunk(&[Choice { index, delta, logprobs: None, finish_reason }], None, out);
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

fn delta(piece: &Piece) -> Delta<'_> {
    let empty = Delta::default();
    match piece {
        Piece::Reasoning(text) => Delta { reasoning_content: Some(text), ..empty },
        Piece::Content(text) => Delta { content: Some(text), ..empty },
        Piece::CallBegun { index, id, name } => {
            let function = Function { name: Some(name), arguments: "" };
            let call = Call { index: *index, id: Some(id), r#type: Some("function"), function };
            Delta { tool_calls: Some([call]), ..empty }
        }
        Piece::CallArguments { index, json } => {
            let function = Function { name: None, arguments: json };
            Delta { tool_calls: Some([Call { index: *index, id: None, r#type: None, function }]), ..empty }
        }
    }
}
