//! The language of filters: `reward > 0.5 AND data_source contains "coding"`.
//!
//! [`parse`](Filter::parse) makes a tree of the text or says where it stops being one; `sql` turns the tree into
//! SQL with bound parameters, and `columns` (next door) runs it over columns in memory. [`Fields`] has the names.
//! [`complete`] says what could be typed next, by parsing what stands before the cursor.

mod complete;
mod fields;
pub(crate) mod functions;
mod lex;
mod like;
mod parse;
mod sql;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod types;

pub(crate) use complete::gap;
pub use complete::{Completion, Suggestion, SuggestionKind};
pub use fields::{FUNCTIONS, Fields, Named};
pub use sql::Sql;
pub use tree::{Function, Type};
pub(crate) use types::regex;

use super::Mistake;
use parse::Parser;
use tree::Node;

/// A filter that was understood.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Option<Node>,
}

impl Filter {
    /// The empty text lets everything through.
    pub fn parse(text: &str, fields: &Fields) -> Result<Self, Mistake> {
        Ok(Self { root: Parser::new(text, fields).filter()? })
    }

    pub fn sql(&self) -> Sql {
        Sql::of(self.root.as_ref())
    }

    pub(crate) fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }
}
