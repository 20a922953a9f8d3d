//! Hears answers that are messages on channels: Harmony, which gpt-oss writes.
//!
//! `<|start|>assistant<|channel|>analysis<|message|>…<|end|>` is a thought, the channels `final` and `commentary` are
//! words, and a message with `to=functions.name` in its header is a call. The prompt ends with `<|start|>assistant`.

use super::form::Unread;
use super::marks::{Next, look};
use super::schema::Tools;
use super::told::{Told, Written};

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";

/// What ends a message. The next may begin without the mark that ends this one.
const ENDS: [(&str, Mark); 5] = [
    (START, Mark::Header(START)),
    (CHANNEL, Mark::Header(CHANNEL)),
    ("<|end|>", Mark::End("<|end|>")),
    ("<|call|>", Mark::End("<|call|>")),
    ("<|return|>", Mark::End("<|return|>")),
];

/// A header is a few words; what is longer is text that lost its marks.
const HEADER_BYTES_MAX: usize = 256;

#[derive(Clone, Copy)]
enum Mark {
    Header(&'static str),
    End(&'static str),
}

#[derive(Debug)]
pub(super) struct Channels {
    tools: Option<Tools>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Between messages; what is said there is words.
    Words,
    Header(Header),
    Thought,
    Call {
        header: String,
        name: String,
        body: String,
    },
}

#[derive(Debug, Default)]
struct Header {
    text: String,
    /// Bytes that the prompt wrote.
    given: usize,
}

impl Channels {
    pub(super) fn new(tools: Option<Tools>, prompt_end: &str) -> Self {
        let mut channels = Self { tools, state: State::Words };
        // The prompt began a message that the answer goes on with: its marks are heard, and its words are not told.
        if let Some((_, begun)) = prompt_end.rsplit_once(START) {
            channels.state = State::Header(Header { text: START.to_owned(), given: 0 });
            channels.hear(begun, &mut Told::new(0));
            if let State::Header(header) = &mut channels.state {
                header.given = header.text.len();
            }
        }
        channels
    }

    /// Returns the end of the text if nothing can be said about it yet.
    pub(super) fn hear<'t>(&mut self, mut text: &'t str, told: &mut Told) -> &'t str {
        while !text.is_empty() {
            let heard = match &self.state {
                State::Header(_) => self.hear_header(text, told),
                _ => self.hear_body(text, told),
            };
            match heard {
                Ok(rest) => text = rest,
                Err(held) => return held,
            }
        }
        text
    }

    pub(super) fn finish(mut self, held: &str, told: &mut Told) {
        match &mut self.state {
            State::Words => told.content(held),
            State::Thought => told.reasoning(held),
            State::Header(header) => {
                header.text.push_str(held);
                match recipient(header.written()) {
                    Some(_) => told.malformed(header.written(), format!("the call has no {MESSAGE}")),
                    None => told.content(header.written()),
                }
            }
            State::Call { header, body, .. } if body.is_empty() => {
                let reason = "the call does not end: its JSON is cut off".to_owned();
                told.malformed(&[header.as_str(), MESSAGE, held].concat(), reason);
            }
            State::Call { body, .. } => {
                body.push_str(held);
                // The mark that ends a call also ends the answer, and most engines leave it out.
                self.end_message(told, "");
            }
        }
    }

    fn hear_header<'t>(&mut self, text: &'t str, told: &mut Told) -> Result<&'t str, &'t str> {
        let State::Header(header) = &mut self.state else { return Ok(text) };
        let seen = look(text, &[(MESSAGE, ())]);
        let room = HEADER_BYTES_MAX.saturating_sub(header.text.len());
        if seen.before.len() > room {
            let fits = (0..=room).rev().find_map(|at| text.split_at_checked(at));
            let (fits, rest) = fits.unwrap_or(("", text));
            header.text.push_str(fits);
            told.content(header.written());
            self.state = State::Words;
            return Ok(rest);
        }
        header.text.push_str(seen.before);
        match seen.next {
            Next::Held(rest) => Err(rest),
            Next::Mark { after, .. } => {
                self.begin_message(told);
                Ok(after)
            }
        }
    }

    fn hear_body<'t>(&mut self, text: &'t str, told: &mut Told) -> Result<&'t str, &'t str> {
        let seen = look(text, &ENDS);
        match &mut self.state {
            State::Thought => told.reasoning(seen.before),
            State::Call { body, .. } => body.push_str(seen.before),
            State::Words | State::Header(_) => told.content(seen.before),
        }
        match seen.next {
            Next::Held(rest) => Err(rest),
            Next::Mark { mark: Mark::End(mark), after } => {
                self.end_message(told, mark);
                Ok(after)
            }
            Next::Mark { mark: Mark::Header(mark), after } => {
                self.end_message(told, "");
                self.state = State::Header(Header { text: mark.to_owned(), given: 0 });
                Ok(after)
            }
        }
    }

    fn begin_message(&mut self, told: &mut Told) {
        let State::Header(header) = std::mem::replace(&mut self.state, State::Words) else { return };
        match recipient(&header.text) {
            Some(name) if self.tools.is_some() => {
                let (name, header) = (name.to_owned(), header.written().to_owned());
                self.state = State::Call { header, name, body: String::new() };
            }
            Some(_) => told.content(&[header.written(), MESSAGE].concat()),
            None if word_behind(&header.text, CHANNEL) == Some("analysis") => {
                told.begin_thought();
                self.state = State::Thought;
            }
            None if told.has_words() => told.space("\n"),
            None => {}
        }
    }

    fn end_message(&mut self, told: &mut Told, mark: &str) {
        match std::mem::replace(&mut self.state, State::Words) {
            State::Words | State::Header(_) => {}
            State::Thought => told.end_thought(),
            State::Call { header, name, body } => match Written::new(&name, &body) {
                Ok(call) => told.call(call),
                Err(Unread::Malformed(reason)) => {
                    told.malformed(&[&header, MESSAGE, &body, mark].concat(), reason);
                }
                Err(Unread::NoCall) => told.content(&[&header, MESSAGE, &body, mark].concat()),
            },
        }
    }
}

impl Header {
    /// What the model wrote of it.
    fn written(&self) -> &str {
        self.text.get(self.given..).unwrap_or_default()
    }
}

/// Whom a message is for. Functions of the request are in a namespace, and tools of OpenAI's own are not.
fn recipient(header: &str) -> Option<&str> {
    let name = word_behind(header, "to=")?;
    Some(name.strip_prefix("functions.").unwrap_or(name))
}

fn word_behind<'a>(header: &'a str, mark: &str) -> Option<&'a str> {
    let (_, behind) = header.split_once(mark)?;
    behind.split(|c: char| c.is_whitespace() || c == '<').next()
}
