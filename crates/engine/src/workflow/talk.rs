//! A conversation while it goes on: its messages, its tokens, and the parts it was cut into.

use futures_util::future::join_all;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::mem;

use super::ask::Asker;
use super::multi_turn::MultiTurn;
use super::opening::{Opening, content};
use super::part::{Part, Whole};
use super::record::Record;
use super::render::{Renderer, refs};
use super::said::{Said, call_id};
use super::tail::{Place, Tail};
use crate::episode::{Context, Data, EpisodeError, Trajectory};
use crate::generate::{Message, Prompt, SharedEngine, StopReason};
use crate::reward::Judged;

pub(super) struct Talk<'a> {
    workflow: &'a MultiTurn,
    asker: Asker<'a>,
    data: &'a Data,
    renderer: Option<Renderer>,
    tools: Option<Box<RawValue>>,
    /// As people see it.
    messages: Vec<Message>,
    /// As the template was given it: an answer in the form that was proven.
    rendered: Vec<Message>,
    /// The rendering that the last answer was asked with.
    asked: String,
    part: Part,
    done: Vec<Part>,
    calls: usize,
    call_errors: usize,
}

impl<'a> Talk<'a> {
    pub(super) fn begin(
        workflow: &'a MultiTurn,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
        opening: Opening,
    ) -> Result<Self, EpisodeError> {
        let tools = workflow.tools.schemas().or(opening.tools);
        let make = |tokenizer| Renderer::new(tokenizer, tools.as_deref(), &workflow.template_kwargs);
        let renderer = workflow.tokenizer.as_ref().map(make).transpose()?;
        let (asked, record) = match &renderer {
            Some(renderer) => {
                let (asked, tokens) = fresh(renderer, &opening.messages)?;
                (asked, Some(Record::new(tokens)))
            }
            None => (texts(&opening.messages), None),
        };
        let part = Part { record, prompt: asked.clone(), ..Part::default() };
        let talk = Self {
            workflow,
            asker: Asker { engine, context, gconfig: &workflow.gconfig },
            data,
            renderer,
            tools,
            rendered: opening.messages.clone(),
            messages: opening.messages,
            asked,
            part,
            done: Vec::new(),
            calls: 0,
            call_errors: 0,
        };
        let len = talk.part.tokens().len();
        match workflow.max_tokens {
            Some(most) if len >= most => Err(EpisodeError::BadData(format!(
                "the prompt is {len} tokens long, but the conversation may have {most}"
            ))),
            _ => Ok(talk),
        }
    }

    pub(super) async fn ask(&mut self, turn: u32) -> Result<Said, EpisodeError> {
        let prompt = match &self.part.record {
            Some(record) => Prompt::Tokens(record.tokens().to_vec()),
            None => Prompt::Chat { messages: self.messages.clone(), tools: self.tools.clone() },
        };
        let response = self.asker.ask(turn, prompt, self.room()).await?;
        let syntax = (!self.workflow.tools.is_empty()).then_some(self.workflow.syntax);
        let said = Said::read(self.renderer.as_ref(), &response, syntax, self.calls)?;
        self.part.answer_at = self.part.tokens().len();
        if let Some(record) = &mut self.part.record {
            record.answer(&response)?;
        }
        self.part.is_truncated = response.stop_reason == StopReason::Length;
        self.messages.push(said.message.clone());
        Ok(said)
    }

    /// How many tokens the next answer may have.
    fn room(&self) -> u32 {
        let most = self.workflow.gconfig.max_new_tokens;
        let left = self.workflow.max_tokens.map(|all| all.saturating_sub(self.part.tokens().len()));
        left.map_or(most, |left| most.min(u32::try_from(left).unwrap_or(u32::MAX)))
    }

    fn is_full_with(&self, len: usize) -> bool {
        self.workflow.max_tokens.is_some_and(|most| len >= most)
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.part.is_truncated
    }

    /// The conversation is not over, but ends here.
    pub(super) fn truncate(&mut self) {
        self.part.truncate();
    }

    /// Runs what the answer calls, all at once, and returns the results in their order.
    pub(super) async fn call(&mut self, said: &Said) -> Vec<Message> {
        let context = self.asker.context;
        let results = join_all(said.calls.iter().map(|call| self.workflow.tools.call(call, context))).await;
        let mut told = Vec::with_capacity(results.len());
        for (call, result) in said.calls.iter().zip(results) {
            let id = call.as_ref().ok().and_then(|call| call.id.clone());
            let id = id.unwrap_or_else(|| call_id(self.calls));
            let mut message = json!({ "role": "tool", "tool_call_id": id, "content": result.content });
            if let (Ok(call), Some(fields)) = (call, message.as_object_mut()) {
                fields.insert("name".to_owned(), Value::from(call.name.as_str()));
            }
            told.push(to_raw_value(&message).expect("texts are JSON"));
            self.calls += 1;
            self.call_errors += usize::from(result.is_error);
        }
        told
    }

    pub(super) async fn score(&self, said: &Said) -> Result<f64, EpisodeError> {
        let (prompt_ids, completion_ids) = self.part.last_answer();
        let judged = Judged {
            data: self.data,
            context: self.asker.context,
            prompt: &self.asked,
            completion: &said.plain,
            prompt_ids,
            completion_ids,
            messages: &self.messages,
        };
        Ok(self.workflow.reward.score(judged).await?)
    }

    /// Adds new messages behind the answer; false if there is no room left for another answer, and then nothing
    /// is added.
    pub(super) fn go_on(&mut self, said: &Said, new: Vec<Message>) -> Result<bool, EpisodeError> {
        let Some(renderer) = &self.renderer else {
            self.messages.extend(new);
            self.asked = texts(&self.messages);
            return Ok(true);
        };
        let (form, found) = self.find_tail(renderer, said, &new)?;
        let rendered: Vec<Message> = self.rendered.iter().chain([form]).chain(&new).cloned().collect();
        match found {
            Ok(Tail { tokens, asked }) => {
                if self.is_full_with(self.part.tokens().len() + tokens.len()) {
                    self.part.truncate();
                    return Ok(false);
                }
                self.asked = asked;
                if let Some(record) = &mut self.part.record {
                    record.give(&tokens);
                }
            }
            Err(reason) => {
                let (asked, tokens) = fresh(renderer, &rendered)?;
                if self.is_full_with(tokens.len()) {
                    self.part.truncate();
                    return Ok(false);
                }
                let next =
                    Part { record: Some(Record::new(tokens)), prompt: asked.clone(), ..Part::default() };
                let done = mem::replace(&mut self.part, next);
                self.done.push(Part { cut: Some(reason), messages: self.messages.clone(), ..done });
                self.asked = asked;
            }
        }
        self.rendered = rendered;
        self.messages.extend(new);
        Ok(true)
    }

    /// The tail behind the answer, and the form of the answer that it was found with.
    fn find_tail<'b>(
        &self,
        renderer: &Renderer,
        said: &'b Said,
        new: &[Message],
    ) -> Result<(&'b Message, Result<Tail, &'static str>), EpisodeError> {
        let (_, sampled) = self.part.last_answer();
        let (before, new) = (refs(&self.rendered), refs(new));
        let place =
            Place { renderer, before: &before, asked: &self.asked, sampled, text: &said.text, new: &new };
        let found = place.tail(&said.message)?;
        if found.is_err()
            && let Ok(tail) = place.tail(&said.plain_message)?
        {
            return Ok((&said.plain_message, Ok(tail)));
        }
        Ok((&said.message, found))
    }

    pub(super) fn finish(mut self, reward: f64) -> Result<Trajectory, EpisodeError> {
        self.part.messages = self.messages;
        self.done.push(self.part);
        let count = self.done.len();
        let numbers = [("tool_calls", self.calls), ("tool_errors", self.call_errors)];
        let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
        let mut whole = Whole {
            reward,
            gconfig: &self.workflow.gconfig,
            data: self.data,
            context: self.asker.context,
            extra: numbers.map(|(name, number)| (name.to_owned(), number.into())).collect::<Map<_, _>>(),
        };
        let mut samples = Vec::with_capacity(count);
        for (index, part) in self.done.into_iter().enumerate() {
            if count > 1 {
                whole.extra.insert("part".to_owned(), index.into());
                whole.extra.insert("parts".to_owned(), count.into());
            }
            samples.push(part.finish(self.renderer.as_ref(), &whole)?);
        }
        Ok(Trajectory { samples, tensors: None })
    }
}

/// The conversation as the template writes it, and its tokens.
fn fresh(renderer: &Renderer, messages: &[Message]) -> Result<(String, Vec<i32>), EpisodeError> {
    let asked = renderer.asked(&refs(messages))?;
    let tokens = renderer.encode(&asked)?;
    Ok((asked, tokens))
}

/// What is said in all of the messages.
fn texts(messages: &[Message]) -> String {
    messages.iter().map(|said| content(said)).collect::<Vec<_>>().join("\n\n")
}
