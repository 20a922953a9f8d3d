//! What could be typed at the cursor.
//!
//! The text before the word at the cursor is parsed as it stands, and the parser notes what it was looking for
//! when the text ended. So completion knows the grammar without a second copy of it.

use super::fields::{FUNCTIONS, Fields};
use super::parse::{Parser, Wants};
use super::tree::{Field, Type};
use super::types::operators;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuggestionKind {
    Field,
    Operator,
    Value,
    Keyword,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    pub text: String,
    pub kind: SuggestionKind,
    /// What it is, or how often it occurs.
    pub about: String,
}

/// Suggestions for the bytes `from..to` of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub from: usize,
    pub to: usize,
    pub suggestions: Vec<Suggestion>,
}

/// The place at the cursor: what stands there already, and what would fit.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    pub at: Range<usize>,
    /// What was typed of it, without its quote.
    pub typed: String,
    pub suggestions: Vec<Suggestion>,
    /// Whose values would fit.
    pub values_of: Option<Field>,
}

pub(crate) fn gap(text: &str, cursor: usize, fields: &Fields) -> Gap {
    let mut cursor = cursor.min(text.len());
    while !text.is_char_boundary(cursor) {
        cursor -= 1;
    }
    let before = text.get(..cursor).unwrap_or_default();
    let from = open_quote(before).unwrap_or_else(|| word_start(before));
    let mut parser = Parser::new(before.get(..from).unwrap_or_default(), fields);
    // Whether it is whole or breaks off does not matter; what it looked for at its end does.
    let _ = parser.filter();
    let word = before.get(from..).unwrap_or_default();
    let typed = word.trim_start_matches(['"', '\'']).to_owned();
    let mut gap = Gap { at: from..cursor, typed, suggestions: Vec::new(), values_of: None };
    let quoted = word.starts_with(['"', '\'']);
    for wants in &parser.wants {
        match wants {
            Wants::Value(Some(field)) => gap.value_of(field),
            _ if quoted => {}
            Wants::Term if parser.wants.iter().any(|w| matches!(w, Wants::Value(_))) => {}
            Wants::Term => gap.terms(fields),
            Wants::Operator(kind) => {
                for operator in operators(*kind) {
                    gap.offer(operator.name, SuggestionKind::Operator, operator.about);
                }
            }
            Wants::Null => gap.keywords(&[("null", "not given"), ("not null", "given")]),
            Wants::Joint => gap.keywords(&[("and", "both must hold"), ("or", "one must hold")]),
            Wants::Value(None) => {}
        }
    }
    gap
}

impl Gap {
    fn value_of(&mut self, field: &Field) {
        if field.kind == Type::Flag {
            self.offer("true", SuggestionKind::Value, "");
            self.offer("false", SuggestionKind::Value, "");
        }
        self.values_of = Some(field.clone());
    }

    fn terms(&mut self, fields: &Fields) {
        for field in fields.named() {
            let shown = field.name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
            let name = if shown { field.name.to_owned() } else { format!("`{}`", field.name) };
            self.offer(&name, SuggestionKind::Field, field.about);
        }
        self.keywords(&[("not", "the opposite")]);
        if !self.typed.is_empty() {
            for function in FUNCTIONS {
                self.offer(&format!("{}(", function.name), SuggestionKind::Keyword, function.about);
            }
        }
    }

    fn keywords(&mut self, words: &[(&str, &str)]) {
        for (word, about) in words {
            self.offer(word, SuggestionKind::Keyword, about);
        }
    }

    fn offer(&mut self, text: &str, kind: SuggestionKind, about: &str) {
        let fits = text.to_lowercase().contains(&self.typed.to_lowercase());
        if fits && !self.suggestions.iter().any(|known| known.text == text) {
            self.suggestions.push(Suggestion { text: text.to_owned(), kind, about: about.to_owned() });
        }
    }

    /// The likeliest first: what begins with what was typed, then what has it inside.
    pub(crate) fn finish(mut self, values: Vec<Suggestion>) -> Completion {
        self.suggestions.splice(0..0, values);
        let typed = self.typed.to_lowercase();
        self.suggestions.sort_by_key(|s| !s.text.trim_start_matches('"').to_lowercase().starts_with(&typed));
        Completion { from: self.at.start, to: self.at.end, suggestions: self.suggestions }
    }
}

/// Where the text begins that is not closed yet.
fn open_quote(before: &str) -> Option<usize> {
    let mut open: Option<(usize, char)> = None;
    let mut chars = before.char_indices();
    while let Some((i, c)) = chars.next() {
        match open {
            Some((_, quote)) if c == quote => open = None,
            Some(_) if c == '\\' => {
                chars.next();
            }
            None if matches!(c, '"' | '\'') => open = Some((i, c)),
            _ => {}
        }
    }
    open.map(|(i, _)| i)
}

fn word_start(before: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | ':');
    let len_of = |part: &dyn Fn(char) -> bool| before.len() - before.trim_end_matches(part).len();
    before.len() - len_of(&word)
}
