//! Answers found by the marks around them, where nobody but the template can have written the marks.
//!
//! Most templates open an answer with a header that begins with a special token, and close it with another.
//! If no message and no tool mentions either token, every mark in the text is the template's own: the headers
//! are the answers, in order, and an answer ends with the first closing token after its header. This takes
//! three renderings instead of two for each answer; where a condition fails, [`super::spans`] goes the long way.

use std::ops::Range;

use super::is_assistant;
use super::spans::Shorter;
use crate::tokens::Tokenizer;
use crate::tokens::encode::Encoder;
use crate::tokens::template::value::{Dict, List};
use crate::tokens::template::{Message, Render, Value};

/// The marks of one template.
struct Marks<'a> {
    /// The whole generation prompt, and it without an opened block of reasoning.
    prompt: &'a str,
    header: &'a str,
    /// The special token that headers begin with.
    opening: &'a str,
    /// The special token that answers end with.
    closing: &'a str,
}

/// The bytes of every answer, or `None` where the marks do not prove them. `first` is the conversation up to
/// the first answer, and `plain` the same without answer or generation prompt.
pub(super) fn answers(
    tokenizer: &Tokenizer,
    messages: &[Message],
    how: &Render<'_>,
    whole: &str,
    first: &Shorter,
    plain: &str,
) -> Option<Vec<Range<usize>>> {
    let marks = Marks::of(tokenizer.encoder(), first, plain)?;
    let mentions = |value: &Value| mentions(value, &[marks.opening, marks.closing]);
    let given = [how.tools, how.documents].into_iter().flatten();
    let given =
        given.chain(how.kwargs.iter().map(|(_, value)| value)).chain(messages.iter().map(Message::value));
    if given.into_iter().any(mentions) {
        return None;
    }
    let found: Vec<Range<usize>> =
        whole.match_indices(marks.header).map(|(at, _)| marks.answer(whole, at)).collect::<Option<_>>()?;
    let expected = messages.iter().filter(|said| is_assistant(said)).count();
    (found.len() == expected).then_some(found)
}

impl<'a> Marks<'a> {
    fn of(encoder: &'a Encoder, first: &'a Shorter, plain: &str) -> Option<Self> {
        let prompt = first.asked.strip_prefix(plain)?;
        let header = first.asked_ways().last()?.strip_prefix(plain)?;
        let written = first.said.strip_prefix(&first.asked).or_else(|| first.answer_ways().last())?;
        let special = || encoder.added_tokens().iter().filter(|token| token.special);
        let opening = special().find(|token| header.starts_with(&token.content))?;
        let closing = special().find(|token| written.trim_end().ends_with(&token.content))?;
        Some(Self { prompt, header, opening: &opening.content, closing: &closing.content })
    }

    /// The answer whose header begins here, up to and with the space after its closing token.
    fn answer(&self, whole: &str, header: usize) -> Option<Range<usize>> {
        let text = whole.get(header..)?;
        let given = if text.starts_with(self.prompt) { self.prompt } else { self.header };
        let closed = text.find(self.closing)? + self.closing.len();
        let inside = text.get(given.len()..closed)?;
        let after = text.get(closed..)?;
        let space = after.len() - after.trim_start().len();
        let rest = after.get(space..)?;
        let is_apart = rest.is_empty() || rest.starts_with(self.opening);
        (is_apart && !inside.contains(self.opening)).then_some(header + given.len()..header + closed + space)
    }
}

/// Whether a string anywhere in the value has one of the tokens in it.
fn mentions(value: &Value, tokens: &[&str]) -> bool {
    if let Some(text) = value.as_str() {
        return tokens.iter().any(|token| text.contains(token));
    }
    if let Some(dict) = value.downcast_object_ref::<Dict>() {
        return dict.entries().iter().any(|(key, item)| mentions(key, tokens) || mentions(item, tokens));
    }
    value
        .downcast_object_ref::<List>()
        .is_some_and(|list| list.items().iter().any(|item| mentions(item, tokens)))
}
