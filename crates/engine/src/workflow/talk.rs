//! A conversation while it goes on: its messages, its tokens, and the parts it was cut into.

use futures_util::future::join_all;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::ask::Asker;
use super::multi_turn::MultiTurn;
use super::opening::{Opening, content};
use super::record::Record;
use super::render::Renderer;
use super::said::{Said, call_id};
use super::tail::{Place, Tail};
use crate::episode::{Context, Data, EpisodeError, PromptAndCompletion, Sample, Trajectory};
use crate::generate::{Message, Prompt, SharedEngine, StopReason};
use crate::reward::Judged;
use serde_json::value::RawValue;

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
    asked: String,
    part: Part,
    done: Vec<Part>,
    calls: usize,
    call_errors: usize,
}

/// One sequence of tokens.
#[derive(Debug, Default)]
struct Part {
    /// `None` where the engine only speaks text.
    record: Option<Record>,
    messages: Vec<Message>,
    prompt: String,
    /// Where the last answer begins.
    answer_at: usize,
    is_truncated: bool,
    /// Why the conversation could not go on in it.
    cut: Option<&'static str>,
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
        let mut talk = Self {
            workflow,
            asker: Asker { engine, context, gconfig: &workflow.gconfig },
            data,
            renderer,
            tools,
            rendered: opening.messages.clone(),
            messages: opening.messages,
            asked: String::new(),
            part: Part::default(),
            done: Vec::new(),
            calls: 0,
            call_errors: 0,
        };
        talk.begin_part()?;
        Ok(talk)
    }

    /// A sequence that begins with the conversation so far, as the template writes it.
    fn begin_part(&mut self) -> Result<(), EpisodeError> {
        let record = match &self.renderer {
            Some(renderer) => {
                self.asked = renderer.asked(&self.rendered)?;
                Some(Record::new(renderer.encode(&self.asked)?))
            }
            None => {
                let texts: Vec<String> = self.messages.iter().map(|said| content(said)).collect();
                self.asked = texts.join("\n\n");
                None
            }
        };
        self.part = Part { record, prompt: self.asked.clone(), ..Part::default() };
        Ok(())
    }

    pub(super) async fn ask(&mut self, turn: u32) -> Result<Said, EpisodeError> {
        let room = self.room();
        if room == 0 {
            let most = self.workflow.max_tokens.unwrap_or_default();
            return Err(EpisodeError::BadData(format!(
                "the prompt is {} tokens long, but the conversation may have {most}",
                self.part.record.as_ref().map_or(0, |record| record.tokens().len())
            )));
        }
        let prompt = match &self.part.record {
            Some(record) => Prompt::Tokens(record.tokens().to_vec()),
            None => Prompt::Chat { messages: self.messages.clone(), tools: self.tools.clone() },
        };
        let response = self.asker.ask(turn, prompt, room).await?;
        let syntax = (!self.workflow.tools.is_empty()).then_some(self.workflow.syntax);
        let said = Said::read(self.renderer.as_ref(), &response, syntax, self.calls)?;
        if let Some(record) = &mut self.part.record {
            self.part.answer_at = record.tokens().len();
            record.answer(&response)?;
        }
        self.part.is_truncated = response.stop_reason == StopReason::Length;
        self.messages.push(said.message.clone());
        Ok(said)
    }

    /// How many tokens the next answer may have.
    fn room(&self) -> u32 {
        let most = self.workflow.gconfig.max_new_tokens;
        let (Some(all), Some(record)) = (self.workflow.max_tokens, &self.part.record) else { return most };
        let left = all.saturating_sub(record.tokens().len());
        most.min(u32::try_from(left).unwrap_or(u32::MAX))
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.part.is_truncated
    }

    /// The conversation is not over, but ends here.
    pub(super) fn truncate(&mut self) {
        self.part.is_truncated = true;
        if let Some(record) = &mut self.part.record {
            record.truncate();
        }
    }

    /// Runs what the answer calls, all at once, and returns the results in their order.
    pub(super) async fn call(&mut self, said: &Said) -> Vec<Message> {
        let context = self.asker.context;
        let results = join_all(said.calls.iter().map(|call| self.workflow.tools.call(call, context))).await;
        let mut told = Vec::with_capacity(results.len());
        for (call, result) in said.calls.iter().zip(results) {
            let made_up = call_id(self.calls);
            let id = call.as_ref().ok().and_then(|call| call.id.clone()).unwrap_or(made_up);
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
        let tokens = self.part.record.as_ref().map(Record::tokens).unwrap_or_default();
        let (prompt_ids, completion_ids) =
            tokens.split_at_checked(self.part.answer_at).unwrap_or((tokens, &[]));
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

    /// Adds new messages behind the answer; false if there is no room left for another answer.
    pub(super) fn go_on(&mut self, said: &Said, new: Vec<Message>) -> Result<bool, EpisodeError> {
        let Some(renderer) = &self.renderer else {
            self.messages.extend(new);
            self.asked = self.messages.iter().map(|said| content(said)).collect::<Vec<_>>().join("\n\n");
            return Ok(true);
        };
        let tokens = self.part.record.as_ref().map(Record::tokens).unwrap_or_default();
        let place = Place {
            renderer,
            before: &self.rendered,
            asked: &self.asked,
            sampled: tokens.get(self.part.answer_at..).unwrap_or_default(),
            text: &said.text,
            new: &new,
        };
        let mut form = &said.message;
        let mut found = place.tail(form)?;
        if found.is_err()
            && let Ok(tail) = place.tail(&said.plain_message)?
        {
            (form, found) = (&said.plain_message, Ok(tail));
        }
        self.rendered.push(form.clone());
        self.rendered.extend(new.iter().cloned());
        match found {
            Ok(Tail { tokens, asked }) => {
                let len = self.part.record.as_ref().map_or(0, |record| record.tokens().len()) + tokens.len();
                if self.workflow.max_tokens.is_some_and(|most| len >= most) {
                    self.truncate();
                    return Ok(false);
                }
                self.messages.extend(new);
                self.asked = asked;
                if let Some(record) = &mut self.part.record {
                    record.give(&tokens);
                }
            }
            Err(reason) => {
                self.part.cut = Some(reason);
                self.part.messages = self.messages.clone();
                self.messages.extend(new);
                let cut = std::mem::take(&mut self.part);
                self.done.push(cut);
                self.begin_part()?;
                if self.room() == 0 {
                    // Nothing was sampled in the new part, which is therefore none.
                    let last = self.done.pop().unwrap_or_default();
                    self.messages.clone_from(&last.messages);
                    self.part = Part { cut: None, ..last };
                    self.truncate();
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    pub(super) fn finish(mut self, reward: f64) -> Result<Trajectory, EpisodeError> {
        self.part.messages = self.messages;
        self.done.push(self.part);
        let count = self.done.len();
        let mut samples = Vec::with_capacity(count);
        for (index, part) in self.done.into_iter().enumerate() {
            let mut extra = Map::new();
            if count > 1 {
                extra.extend([("part".to_owned(), index.into()), ("parts".to_owned(), count.into())]);
            }
            if let Some(reason) = part.cut {
                extra.insert("cut".to_owned(), reason.into());
            }
            if self.calls > 0 {
                extra.insert("tool_calls".to_owned(), self.calls.into());
            }
            if self.call_errors > 0 {
                extra.insert("tool_errors".to_owned(), self.call_errors.into());
            }
            let completion = match (&self.renderer, &part.record) {
                (Some(renderer), Some(record)) => renderer.decode(record.response_tokens())?,
                _ => part.messages.last().map(|said| content(said)).unwrap_or_default(),
            };
            let segments = part.record.as_ref().map(|record| record.segments().to_vec()).unwrap_or_default();
            let rollout = part
                .record
                .map(|record| record.finish(reward, &self.workflow.gconfig, self.data, self.asker.context));
            samples.push(Sample {
                rollout: rollout.transpose()?,
                reward,
                messages: part.messages,
                text: Some(PromptAndCompletion { prompt: part.prompt, completion }),
                segments,
                extra,
            });
        }
        Ok(Trajectory { samples, tensors: None })
    }
}
