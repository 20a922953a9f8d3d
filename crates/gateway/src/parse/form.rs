//! What a family's marks and calls look like: the columns of the table of grammars.

use super::schema::Tools;
use super::told::Written;

/// The marks of a family.
pub(super) struct Marks {
    pub(super) thought: Option<Thought>,
    pub(super) forms: &'static [Form],
    /// How a call looks that no mark opens: it begins the answer, or follows another call.
    pub(super) bare: Option<&'static Form>,
    /// Marks around all calls, which say nothing that the calls do not.
    pub(super) sections: &'static [&'static str],
}

pub(super) struct Thought {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
}

pub(super) struct Form {
    pub(super) open: &'static str,
    pub(super) end: End,
    pub(super) read: Reader,
}

pub(super) enum End {
    Mark(&'static str),
    /// The call is a JSON value.
    Json,
    /// A JSON value again, maybe with a name before it.
    NamedJson,
}

/// Reads what stands between the marks: at least one call.
pub(super) type Reader = fn(&str, &Tools) -> Result<Vec<Written>, Unread>;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It was meant to be a call.
    Malformed(String),
    /// It is something else.
    NoCall,
}
