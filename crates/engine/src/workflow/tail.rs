//! What stands between a sampled answer and the next one, in tokens.
//!
//! The next prompt is the real tokens so far and then what the template writes behind the answer: its end, the
//! new messages and the generation prompt. The answer itself is never made into tokens again. That is only
//! true to the template if the template, asked for the longer conversation, leaves everything before as it was,
//! which is proven here by rendering: what the model was asked with is a prefix of the longer rendering, and
//! behind it stands the answer as it was sampled, or as the template wrote it while it was the last.
//!
//! Where there is no proof, the conversation is cut and goes on in a sequence of its own.

use super::opening::message;
use super::render::Renderer;
use crate::episode::EpisodeError;
use serde_json::value::RawValue;

/// Stands for any answer; never sent.
const ANY: &str = "ANY ANSWER";

/// Where a conversation stands when an answer has come.
#[derive(Debug)]
pub struct Place<'a> {
    pub renderer: &'a Renderer,
    /// The messages before the answer, as they were rendered.
    pub before: &'a [&'a RawValue],
    /// Their rendering with the generation prompt.
    pub asked: &'a str,
    /// The tokens of the answer, and their text without the special ones at its end.
    pub sampled: &'a [i32],
    pub text: &'a str,
    /// What comes next.
    pub new: &'a [&'a RawValue],
}

/// How the conversation goes on from the tokens that there are.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    pub tokens: Vec<i32>,
    /// The longer conversation as the template writes it.
    pub asked: String,
}

impl Place<'_> {
    /// With the answer in this form, or the reason why it cannot be proven.
    pub fn tail(&self, answer: &RawValue) -> Result<Result<Tail, &'static str>, EpisodeError> {
        let Some(closing) = self.closing() else {
            return Ok(Err("the template does not begin an answer as it asks for one"));
        };
        if !self.renderer.begins_apart(&closing) {
            return Ok(Err("the template ends an answer without a token of its own"));
        }
        let longer: Vec<&RawValue> = self.with(answer).into_iter().chain(self.new.iter().copied()).collect();
        let Ok(asked) = self.renderer.asked(&longer) else {
            return Ok(Err("the template refuses the longer conversation"));
        };
        let Some(behind) = self.behind_answer(&asked, answer, &closing) else {
            return Ok(Err("the template rewrites what was said before"));
        };
        let (whole, end) =
            (self.renderer.encode_after(ANY, behind)?, self.renderer.encode_after(ANY, &closing)?);
        let (Some(whole), Some(end)) = (whole, end) else {
            return Ok(Err("a token reaches over the end of the answer"));
        };
        // What of the end was sampled already: mostly its first token.
        let is_sampled = |count: &usize| whole.get(..*count).is_some_and(|head| self.sampled.ends_with(head));
        let sampled = (0..=end.len()).rev().find(is_sampled).unwrap_or(0);
        if sampled == 0 && self.sampled.last().is_some_and(|last| self.renderer.is_special(*last)) {
            return Ok(Err("the answer ends in a token that the template does not end it with"));
        }
        Ok(Ok(Tail { tokens: whole.into_iter().skip(sampled).collect(), asked }))
    }

    /// What the template writes behind the text of an answer that is the last message.
    fn closing(&self) -> Option<String> {
        let said = self.renderer.said(&self.with(&message("assistant", ANY))).ok()?;
        let (_, closing) = said.strip_prefix(self.asked)?.split_once(ANY)?;
        Some(closing.to_owned())
    }

    /// The rest of the longer rendering, from the end of the answer on.
    fn behind_answer<'b>(&self, longer: &'b str, answer: &RawValue, closing: &str) -> Option<&'b str> {
        let rest = longer.strip_prefix(self.asked)?;
        let as_sampled = rest.strip_prefix(self.text).filter(|behind| behind.starts_with(closing));
        as_sampled.or_else(|| {
            let said = self.renderer.said(&self.with(answer)).ok()?;
            let body = said.strip_prefix(self.asked)?.strip_suffix(closing)?;
            rest.strip_prefix(body).filter(|behind| behind.starts_with(closing))
        })
    }

    fn with<'b>(&'b self, answer: &'b RawValue) -> Vec<&'b RawValue> {
        self.before.iter().copied().chain([answer]).collect()
    }
}
