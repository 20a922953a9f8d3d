//! A filter that was understood: every name is a field, every literal has the type of what it is compared with.
//!
//! Conditions are true, false or unknown, as in SQL: a comparison with NULL is unknown, and rows are chosen only
//! where the whole is true. Sums are of floating numbers, `%` is of whole ones, and `x / 0` is NULL.

use regex::Regex;

/// Of a value, as far as it is known before a row is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    Real,
    Text,
    Flag,
    /// Seconds since 1970; a date in quotes becomes them.
    Time,
    /// An extra: a number in one row, a text in the next.
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// Of `catalog::columns`.
    Column(&'static str),
    /// A key of `extra`.
    Extra(String),
    /// The rollout's id in hexadecimal digits.
    Id,
    File,
    /// The whole JSON of the extras, for `json_extract`.
    Extras,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) source: Source,
    pub(crate) kind: Type,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Int(i64),
    Real(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
    Times,
    Over,
    Rest,
}

#[derive(Clone, Debug)]
pub(crate) enum How {
    Contains(String),
    Starts(String),
    Ends(String),
    /// `%` and `_` as in SQL; ASCII letters match in either case.
    Like(String),
    Matches(Regex),
}

/// A function of SQL that a filter may call.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: &'static str,
    pub args: std::ops::RangeInclusive<usize>,
    /// `None` for that of its first argument.
    pub gives: Option<Type>,
    pub about: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum Term {
    Field(Field),
    Literal(Literal),
    Call { function: &'static Function, args: Vec<Term> },
    Sum { sign: Sign, left: Box<Term>, right: Box<Term> },
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Compare { op: Op, left: Term, right: Term },
    Text { how: How, term: Term },
    OneOf { term: Term, values: Vec<Literal> },
    IsNull(Term),
}

impl Op {
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }

    /// The same with its sides exchanged.
    pub(crate) fn turned(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }

    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}

impl Type {
    pub fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Real | Self::Flag | Self::Time)
    }

    /// In a message: "reward is …".
    pub fn said(self) -> &'static str {
        match self {
            Self::Int | Self::Real => "a number",
            Self::Text => "text",
            Self::Flag => "true or false",
            Self::Time => "a time",
            Self::Any => "a number or text",
        }
    }
}

impl How {
    /// Whether a text is what is wanted.
    pub(crate) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Starts(part) => text.starts_with(part.as_str()),
            Self::Ends(part) => text.ends_with(part.as_str()),
            Self::Like(pattern) => super::like::like(pattern, text),
            Self::Matches(regex) => regex.is_match(text),
        }
    }
}
