//! Hears answers where marks stand around thoughts and calls.

use super::form::{End, Form, Marks, Thought, Unread};
use super::json::{self, Scan};
use super::marks::{Next, look};
use super::schema::Tools;
use super::told::Told;

pub(super) struct Marked {
    marks: &'static Marks,
    /// Without them nothing is a call.
    tools: Option<Tools>,
    /// What may interrupt words.
    opens: Vec<(&'static str, Open)>,
    state: State,
    lead: Lead,
}

#[derive(Clone, Copy)]
enum Open {
    Thought,
    Section,
    Call(&'static Form),
}

enum State {
    Words,
    Thought,
    Call { form: &'static Form, body: String, scan: Scan },
}

/// What the words at hand begin with, as far as a bare call may follow.
#[derive(Clone, Copy, PartialEq)]
enum Lead {
    Answer,
    Call,
    Words,
}

enum Step<'t> {
    On(&'t str),
    /// More must come before this can be told.
    Wait(&'t str),
}

impl Marked {
    pub(super) fn new(
        marks: &'static Marks,
        tools: Option<Tools>,
        prompt_end: &str,
        told: &mut Told,
    ) -> Self {
        let mut opens = Vec::new();
        let mut state = State::Words;
        if let Some(thought) = &marks.thought {
            opens.push((thought.open, Open::Thought));
            if prompt_end.trim_end().ends_with(thought.open) {
                told.begin_thought();
                state = State::Thought;
            }
        }
        if tools.is_some() {
            opens.extend(marks.sections.iter().map(|mark| (*mark, Open::Section)));
            opens.extend(marks.forms.iter().map(|form| (form.open, Open::Call(form))));
        }
        Self { marks, tools, opens, state, lead: Lead::Answer }
    }

    /// Returns the end of the text if nothing can be said about it yet.
    pub(super) fn hear<'t>(&mut self, mut text: &'t str, told: &mut Told) -> &'t str {
        while !text.is_empty() {
            let step = match self.state {
                State::Words => self.hear_words(text, told),
                State::Thought => self.hear_thought(text, told),
                State::Call { .. } => self.hear_call(text, told),
            };
            match step {
                Step::On(rest) => text = rest,
                Step::Wait(rest) => return rest,
            }
        }
        text
    }

    pub(super) fn finish(self, held: &str, told: &mut Told) {
        match self.state {
            State::Words => told.content(held),
            State::Thought => told.reasoning(held),
            State::Call { form, body, .. } => {
                let text = [form.open, &body, held].concat();
                match form.end {
                    _ if form.open.is_empty() && !json::names_arguments(&text) => told.content(&text),
                    End::Mark(close) => {
                        told.malformed(&text, format!("the call does not end; close it with {close}"));
                    }
                    _ => told.malformed(&text, "the call does not end: its JSON is cut off".to_owned()),
                }
            }
        }
    }

    fn hear_words<'t>(&mut self, text: &'t str, told: &mut Told) -> Step<'t> {
        let text = match self.marks.bare.filter(|_| self.tools.is_some() && self.lead != Lead::Words) {
            None => text,
            Some(form) => {
                let joins = |c: char| c.is_whitespace() || (c == ';' && self.lead == Lead::Call);
                let rest = text.trim_start_matches(joins);
                let (space, rest) = text.split_at_checked(text.len() - rest.len()).unwrap_or(("", text));
                told.space(space);
                if rest.is_empty() {
                    return Step::Wait("");
                }
                match json::begins_call(rest) {
                    Some(true) => {
                        self.begin_call(form);
                        return Step::On(rest);
                    }
                    Some(false) => self.lead = Lead::Words,
                    None => return Step::Wait(rest),
                }
                rest
            }
        };
        let seen = look(text, &self.opens);
        told.content(seen.before);
        match seen.next {
            Next::Held(rest) => Step::Wait(rest),
            Next::Mark { mark, after } => {
                match mark {
                    Open::Thought => {
                        told.begin_thought();
                        self.state = State::Thought;
                    }
                    Open::Section => {}
                    Open::Call(form) => self.begin_call(form),
                }
                Step::On(after)
            }
        }
    }

    fn hear_thought<'t>(&mut self, text: &'t str, told: &mut Told) -> Step<'t> {
        let Some(Thought { open, close }) = &self.marks.thought else {
            self.state = State::Words;
            return Step::On(text);
        };
        let seen = look(text, &[(close, true), (open, false)]);
        told.reasoning(seen.before);
        match seen.next {
            Next::Held(rest) => Step::Wait(rest),
            Next::Mark { mark: true, after } => {
                told.end_thought();
                self.state = State::Words;
                if !told.has_words() {
                    self.lead = Lead::Answer;
                }
                Step::On(after)
            }
            Next::Mark { mark: false, after } => {
                // Where the prompt opened the thought, some models open it again.
                if !told.thought_is_empty() {
                    told.reasoning(open);
                }
                Step::On(after)
            }
        }
    }

    fn hear_call<'t>(&mut self, text: &'t str, told: &mut Told) -> Step<'t> {
        let State::Call { form, body, scan } = &mut self.state else { return Step::On(text) };
        let after = match form.end {
            End::Mark(close) => {
                let seen = look(text, &[(close, ())]);
                body.push_str(seen.before);
                match seen.next {
                    Next::Held(rest) => return Step::Wait(rest),
                    Next::Mark { after, .. } => after,
                }
            }
            End::Json | End::NamedJson => {
                let end = scan.end(text);
                let (inside, after) = end.and_then(|end| text.split_at_checked(end)).unwrap_or((text, ""));
                body.push_str(inside);
                if end.is_none() {
                    return Step::Wait("");
                }
                after
            }
        };
        self.end_call(told);
        Step::On(after)
    }

    fn begin_call(&mut self, form: &'static Form) {
        let scan = Scan::new(matches!(form.end, End::NamedJson));
        self.state = State::Call { form, body: String::new(), scan };
    }

    fn end_call(&mut self, told: &mut Told) {
        let State::Call { form, body, .. } = std::mem::replace(&mut self.state, State::Words) else { return };
        let Some(tools) = &self.tools else { return };
        let close = if let End::Mark(close) = form.end { close } else { "" };
        let text = || [form.open, &body, close].concat();
        self.lead = Lead::Words;
        match (form.read)(&body, tools) {
            Ok(calls) => {
                calls.into_iter().for_each(|call| told.call(call));
                self.lead = Lead::Call;
            }
            Err(Unread::Malformed(reason)) => told.malformed(&text(), reason),
            Err(Unread::NoCall) => told.content(&text()),
        }
    }
}

impl std::fmt::Debug for Marked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Words => "words",
            State::Thought => "thought",
            State::Call { .. } => "call",
        };
        f.debug_struct("Marked").field("state", &state).finish_non_exhaustive()
    }
}
