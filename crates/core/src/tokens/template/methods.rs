//! Methods of dicts and lists, and slices of everything, as Python has them.

use minijinja::value::{Kwargs, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::value::{Dict, List};
use super::{python, source, strings};

/// Answers a method call that the engine itself does not know.
pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if method == source::SLICE {
        return slice(value, args);
    }
    match value.kind() {
        ValueKind::String => strings::call(value.as_str().unwrap_or_default(), method, &Args::new(args)?),
        ValueKind::Map => dict_method(state, value, method, &Args::new(args)?),
        ValueKind::Seq | ValueKind::Iterable => list_method(value, method, &Args::new(args)?),
        _ => Err(unknown(method)),
    }
}

pub(super) fn unknown(method: &str) -> Error {
    Error::new(ErrorKind::UnknownMethod, format!("object has no method {method}"))
}

pub(super) fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

/// The arguments of a call: by place, or by name.
pub(super) struct Args<'a> {
    pub(super) positional: &'a [Value],
    pub(super) named: Option<Kwargs>,
}

impl<'a> Args<'a> {
    fn new(args: &'a [Value]) -> Result<Self, Error> {
        match args.split_last() {
            Some((last, positional)) if last.is_kwargs() => {
                Ok(Self { positional, named: Some(Kwargs::try_from(last.clone())?) })
            }
            _ => Ok(Self { positional: args, named: None }),
        }
    }

    pub(super) fn get(&self, at: usize, name: &str) -> Option<Value> {
        let named = || self.named.as_ref().and_then(|named| named.get::<Value>(name).ok());
        self.positional.get(at).cloned().or_else(named)
    }

    /// An argument that may be left out or None.
    pub(super) fn text(&self, at: usize, name: &str) -> Result<Option<String>, Error> {
        match self.get(at, name) {
            None => Ok(None),
            Some(value) if value.is_none() => Ok(None),
            Some(value) => match value.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(invalid(format!("{name} must be str or None, not {}", value.kind()))),
            },
        }
    }

    pub(super) fn need_text(&self, at: usize, name: &str) -> Result<String, Error> {
        self.text(at, name)?.ok_or_else(|| invalid(format!("missing argument {name}")))
    }

    pub(super) fn int(&self, at: usize, name: &str) -> Result<Option<i64>, Error> {
        self.get(at, name).filter(|value| !value.is_none()).map(i64::try_from).transpose()
    }
}

fn dict_method(state: &mut State, value: &Value, method: &str, args: &Args) -> Result<Value, Error> {
    let pairs = || python::pairs(value).into_iter();
    Ok(match method {
        "get" => {
            let key = args.get(0, "key").ok_or_else(|| invalid("get expected at least 1 argument, got 0"))?;
            let found = value.as_object().and_then(|object| object.get_value(&key));
            found.or_else(|| args.get(1, "default")).unwrap_or(Value::from(()))
        }
        "items" => list(pairs().map(|(key, item)| Value::from(Tuple::from([key, item])))),
        "keys" => list(pairs().map(|(key, _)| key)),
        "values" => list(pairs().map(|(_, item)| item)),
        "copy" => Dict::from_pairs(pairs()).into_value(),
        _ => {
            // A macro or function kept in a dict or namespace.
            let member = value.as_object().and_then(|object| object.get_value_by_str(method));
            let Some(member) = member else { return Err(unknown(method)) };
            return member.call(state, args.positional);
        }
    })
}

fn list_method(value: &Value, method: &str, args: &Args) -> Result<Value, Error> {
    let wanted = || args.get(0, "value").ok_or_else(|| invalid(format!("{method} takes one argument")));
    Ok(match method {
        "count" => {
            let wanted = wanted()?;
            Value::from(value.try_iter()?.filter(|item| *item == wanted).count())
        }
        "index" => {
            let wanted = wanted()?;
            let at = value.try_iter()?.position(|item| item == wanted);
            Value::from(at.ok_or_else(|| invalid("value is not in list"))?)
        }
        "copy" => list(value.try_iter()?),
        _ => return Err(unknown(method)),
    })
}

pub(super) fn list(items: impl IntoIterator<Item = Value>) -> Value {
    List::new(items.into_iter().collect()).into_value()
}

/// `value[start:stop:step]`.
fn slice(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let bound = |at: usize| -> Result<Option<i64>, Error> {
        args.get(at).filter(|bound| !bound.is_none()).map(|bound| i64::try_from(bound.clone())).transpose()
    };
    let (start, stop, step) = (bound(0)?, bound(1)?, bound(2)?.unwrap_or(1));
    if step == 0 {
        return Err(invalid("slice step cannot be zero"));
    }
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            if let (None, None, 1) = (start, stop, step) {
                return Ok(value.clone());
            }
            let chars: Vec<char> = text.chars().collect();
            let taken = indices(start, stop, step, chars.len()).filter_map(|at| chars.get(at));
            Ok(Value::from(taken.collect::<String>()))
        }
        ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let taken: Vec<Value> =
                indices(start, stop, step, items.len()).filter_map(|at| items.get(at).cloned()).collect();
            Ok(if value.is_tuple() { Value::from(Tuple::from(taken)) } else { List::new(taken).into_value() })
        }
        // Jinja finds nothing where Python would refuse to slice.
        _ => Ok(Value::UNDEFINED),
    }
}

/// The places a slice takes, after Python's rules for bounds that are missing, negative or too far.
fn indices(start: Option<i64>, stop: Option<i64>, step: i64, len: usize) -> impl Iterator<Item = usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let (lowest, highest) = if step < 0 { (-1, len - 1) } else { (0, len) };
    let clamp = |bound: i64| {
        let from_start = if bound < 0 { bound.saturating_add(len) } else { bound };
        from_start.clamp(lowest, highest)
    };
    let first = start.map_or(if step < 0 { highest } else { lowest }, clamp);
    let end = stop.map_or(if step < 0 { lowest } else { highest }, clamp);
    let inside = move |at: &i64| if step < 0 { *at > end } else { *at < end };
    std::iter::successors(Some(first), move |at| at.checked_add(step))
        .take_while(inside)
        .filter_map(|at| usize::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_take_what_python_takes() {
        let take = |start, stop, step| indices(start, stop, step, 4).collect::<Vec<_>>();
        assert_eq!(take(None, None, -1), [3, 2, 1, 0]);
        assert_eq!(take(Some(1), None, 1), [1, 2, 3]);
        assert_eq!(take(None, Some(-1), 1), [0, 1, 2]);
        assert_eq!(take(Some(-3), Some(9), 2), [1, 3]);
        assert_eq!(take(Some(9), Some(0), -2), [3, 1]);
        assert_eq!(take(Some(0), Some(2), -1), [0usize; 0]);
        assert_eq!(indices(None, None, -1, 0).count(), 0);
    }
}
