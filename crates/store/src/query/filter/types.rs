//! What may be compared with what, and what becomes of literals: `"5"` is a number beside one, and a date in
//! quotes is a time beside one.

use super::tree::{Field, Literal, Sign, Term, Type};
use crate::query::Mistake;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use regex::{Regex, RegexBuilder};
use std::ops::Range;

/// A term with its type and its place in the text.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) term: Term,
    pub(crate) kind: Type,
    pub(crate) at: Range<usize>,
}

/// An operator, for completion and for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

const fn named(name: &'static str, about: &'static str) -> Operator {
    Operator { name, about }
}

const COMPARE: [Operator; 10] = [
    named("==", "is the same"),
    named("!=", "is not the same"),
    named(">", "is more"),
    named(">=", "is more or the same"),
    named("<", "is less"),
    named("<=", "is less or the same"),
    named("in", "is one of a list"),
    named("between", "lies between two values"),
    named("is null", "is not given"),
    named("is not null", "is given"),
];

const TEXT: [Operator; 12] = [
    named("==", "is the same"),
    named("!=", "is not the same"),
    named("contains", "has this text in it"),
    named("startswith", "begins with this text"),
    named("endswith", "ends with this text"),
    named("matches", "has a match of this regular expression"),
    named("like", "fits a pattern of % and _"),
    named("in", "is one of a list"),
    named("is null", "is not given"),
    named("is not null", "is given"),
    named(">", "comes after, by its characters"),
    named("<", "comes before, by its characters"),
];

/// Those that make sense for a type, the likely ones first.
pub(crate) fn operators(kind: Type) -> &'static [Operator] {
    match kind {
        Type::Text | Type::Any => &TEXT,
        _ => &COMPARE,
    }
}

pub(crate) fn mistake(message: impl Into<String>, at: Range<usize>) -> Mistake {
    Mistake { message: message.into(), at, expected: Vec::new() }
}

impl Typed {
    pub(crate) fn literal(literal: Literal, at: Range<usize>) -> Self {
        let kind = match literal {
            Literal::Int(_) => Type::Int,
            Literal::Real(_) => Type::Real,
            Literal::Text(_) => Type::Text,
        };
        Self { term: Term::Literal(literal), kind, at }
    }
}

/// Both sides of a comparison, literals made to fit the other side.
pub(crate) fn agree(left: Typed, right: Typed) -> Result<(Term, Term), Mistake> {
    match (&left.term, &right.term) {
        (_, Term::Literal(_)) => Ok((left.term, fit(right, left.kind)?)),
        (Term::Literal(_), _) => Ok((fit(left, right.kind)?, right.term)),
        _ => {
            let same = left.kind.is_number() == right.kind.is_number();
            if same || left.kind == Type::Any || right.kind == Type::Any {
                return Ok((left.term, right.term));
            }
            let message = format!("{} cannot be compared with {}", left.kind.said(), right.kind.said());
            Err(mistake(message, left.at.start..right.at.end))
        }
    }
}

/// A literal as a value of a type.
fn fit(literal: Typed, kind: Type) -> Result<Term, Mistake> {
    let Term::Literal(value) = literal.term else { return Ok(literal.term) };
    let fitted = match (kind, value) {
        (Type::Any, value) => value,
        (Type::Text, Literal::Int(number)) => Literal::Text(number.to_string()),
        (Type::Text, Literal::Real(number)) => Literal::Text(number.to_string()),
        (Type::Time, Literal::Text(text)) => Literal::Real(seconds(&text, &literal.at)?),
        (Type::Flag, Literal::Text(text)) if text.eq_ignore_ascii_case("true") => Literal::Int(1),
        (Type::Flag, Literal::Text(text)) if text.eq_ignore_ascii_case("false") => Literal::Int(0),
        (Type::Int | Type::Real | Type::Flag, Literal::Text(text)) => {
            let said = kind.said();
            number(text.trim(), &literal.at)
                .map_err(|_| mistake(format!("{text:?} is not {said}"), literal.at.clone()))?
        }
        (_, value) => value,
    };
    Ok(Term::Literal(fitted))
}

pub(crate) fn number(digits: &str, at: &Range<usize>) -> Result<Literal, Mistake> {
    let plain = digits.replace('_', "");
    if let Ok(whole) = plain.parse::<i64>() {
        return Ok(Literal::Int(whole));
    }
    match plain.parse::<f64>() {
        Ok(real) if real.is_finite() && !plain.is_empty() => Ok(Literal::Real(real)),
        _ => Err(mistake(format!("{digits} is not a number; put text into quotes"), at.clone())),
    }
}

/// Dates and times; without a zone they are in UTC, as the catalog takes them.
fn seconds(text: &str, at: &Range<usize>) -> Result<f64, Mistake> {
    let text = text.trim();
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let civil = || {
        text.parse::<DateTime>()
            .ok()
            .or_else(|| text.parse::<Date>().ok().map(|d| d.to_datetime(Default::default())))
    };
    let stamp = zoned.or_else(|| Some(civil()?.to_zoned(TimeZone::UTC).ok()?.timestamp()));
    if let Some(stamp) = stamp {
        return Ok(stamp.as_duration().as_secs_f64());
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
        mistake(
            format!("{text:?} is not a time; write it as \"2026-01-16\" or \"2026-01-16T11:33\""),
            at.clone(),
        )
    })
}

pub(crate) fn sum(sign: Sign, left: Typed, right: Typed) -> Result<Typed, Mistake> {
    for side in [&left, &right] {
        if side.kind == Type::Text {
            return Err(mistake("text cannot be added, multiplied or divided", side.at.clone()));
        }
    }
    let kind = if sign == Sign::Rest { Type::Int } else { Type::Real };
    let at = left.at.start..right.at.end;
    let term = Term::Sum { sign, left: Box::new(left.term), right: Box::new(right.term) };
    Ok(Typed { term, kind, at })
}

pub(crate) fn minus(inner: Typed, from: usize) -> Result<Typed, Mistake> {
    let at = from..inner.at.end;
    match inner.term {
        Term::Literal(Literal::Int(number)) => Ok(Typed::literal(Literal::Int(number.saturating_neg()), at)),
        Term::Literal(Literal::Real(number)) => Ok(Typed::literal(Literal::Real(-number), at)),
        _ => sum(Sign::Minus, Typed::literal(Literal::Int(0), from..from), inner),
    }
}

/// Limits keep a pattern of some bytes from becoming a machine of gigabytes.
pub(crate) fn regex(pattern: &str, at: &Range<usize>) -> Result<Regex, Mistake> {
    RegexBuilder::new(pattern).size_limit(4 << 20).dfa_size_limit(8 << 20).nest_limit(64).build().map_err(
        |error| {
            let cause = match &error {
                regex::Error::CompiledTooBig(_) => {
                    "it becomes too large; use fewer or smaller repetitions".to_owned()
                }
                other => other
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ")
                    .to_owned(),
            };
            mistake(format!("not a regular expression: {cause}"), at.clone())
        },
    )
}

impl Field {
    /// As the catalog's view gives it.
    pub(crate) fn sql(&self) -> (String, Option<String>) {
        use super::tree::Source;
        match &self.source {
            Source::Column(name) => (format!("\"{name}\""), None),
            Source::Extra(name) => {
                // A key is a JSON string in a path, whatever it contains.
                (
                    "json_extract(extra, ?)".to_owned(),
                    Some(format!("$.{}", serde_json::Value::from(name.as_str()))),
                )
            }
            Source::Id => ("id".to_owned(), None),
            Source::File => ("source_file".to_owned(), None),
            Source::Extras => ("extra".to_owned(), None),
        }
    }
}
