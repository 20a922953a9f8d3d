//! What a file says by name.

use std::collections::HashMap;

use super::error::Fault;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Whole(i64),
    Float(f64),
    Flag(bool),
    Text(String),
    List(Vec<Value>),
}

#[derive(Debug)]
pub(super) struct Metadata {
    values: HashMap<String, Value>,
}

impl Metadata {
    pub(super) fn new(values: HashMap<String, Value>) -> Self {
        Self { values }
    }

    pub(super) fn maybe_text(&self, key: &str) -> Result<Option<&str>, Fault> {
        self.read(key, "a text", Value::text)
    }

    pub(super) fn text(&self, key: &str) -> Result<&str, Fault> {
        required(key, self.maybe_text(key)?)
    }

    /// At least one.
    pub(super) fn maybe_count(&self, key: &str) -> Result<Option<usize>, Fault> {
        self.read(key, "a whole number above 0", |value| value.whole().filter(|count| *count > 0))
    }

    pub(super) fn count(&self, key: &str) -> Result<usize, Fault> {
        required(key, self.maybe_count(key)?)
    }

    pub(super) fn maybe_id(&self, key: &str) -> Result<Option<usize>, Fault> {
        self.read(key, "the number of a token", Value::whole)
    }

    pub(super) fn maybe_float(&self, key: &str) -> Result<Option<f64>, Fault> {
        self.read(key, "a number above 0", |value| match value {
            Value::Float(float) if *float > 0.0 && float.is_finite() => Some(*float),
            _ => None,
        })
    }

    pub(super) fn float(&self, key: &str) -> Result<f64, Fault> {
        required(key, self.maybe_float(key)?)
    }

    /// False if it is not said.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        let flag = self.read(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })?;
        Ok(flag.unwrap_or_default())
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<&str>, Fault> {
        required(key, self.read(key, "a list of texts", |value| value.list(Value::text))?)
    }

    pub(super) fn maybe_wholes(&self, key: &str) -> Result<Option<Vec<usize>>, Fault> {
        self.read(key, "a list of whole numbers", |value| value.list(Value::whole))
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        want: &str,
        as_wanted: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        let unfit = || Fault::Unfit { key: key.to_owned(), found: value.shown(), want: want.to_owned() };
        as_wanted(value).map(Some).ok_or_else(unfit)
    }
}

impl Value {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn whole(&self) -> Option<usize> {
        match self {
            Self::Whole(whole) => usize::try_from(*whole).ok(),
            _ => None,
        }
    }

    fn list<'a, T>(&'a self, each: impl Fn(&'a Value) -> Option<T>) -> Option<Vec<T>> {
        match self {
            Self::List(list) => list.iter().map(each).collect(),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Whole(whole) => whole.to_string(),
            Self::Float(float) => float.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => format!("{text:?}"),
            Self::List(list) => format!("a list of {}", list.len()),
        }
    }
}

fn required<T>(key: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::Missing { key: key.to_owned() })
}
