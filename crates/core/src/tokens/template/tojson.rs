//! The `tojson` filter as transformers defines it: Python's `json.dumps` without HTML escapes.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python;

pub(super) fn tojson(value: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    // Positional options stand in the order of transformers' signature.
    let option = |at: usize, name: &str| -> Result<Option<Value>, Error> {
        let named = kwargs.get::<Option<Value>>(name)?;
        Ok(named.or_else(|| rest.get(at).cloned()).filter(|value| !value.is_none()))
    };
    let ensure_ascii = option(0, "ensure_ascii")?.is_some_and(|flag| flag.is_true());
    let indent = match option(1, "indent")? {
        None => None,
        Some(text) if text.as_str().is_some() => Some(python::str(&text)),
        Some(width) => Some(" ".repeat(usize::try_from(i64::try_from(width)?).unwrap_or(0))),
    };
    let separators = option(2, "separators")?;
    let sort_keys = option(3, "sort_keys")?.is_some_and(|flag| flag.is_true());
    kwargs.assert_all_used()?;
    let (item, key) = match separators {
        Some(pair) => (python::str(&pair.get_item_by_index(0)?), python::str(&pair.get_item_by_index(1)?)),
        None if indent.is_some() => (",".into(), ": ".into()),
        None => (", ".into(), ": ".into()),
    };
    let mut writer = Writer { out: String::new(), ensure_ascii, indent, item, key, sort_keys, level: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
    level: usize,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Map => return self.dict(value),
            ValueKind::Seq => return self.list(value),
            ValueKind::Iterable if value.len().is_some() => return self.list(value),
            _ if python::is_big_int(value) => self.out.push_str(&value.to_string()),
            kind => {
                let detail = format!("Object of type {kind} is not JSON serializable");
                return Err(Error::new(ErrorKind::InvalidOperation, detail));
            }
        }
        Ok(())
    }

    fn dict(&mut self, value: &Value) -> Result<(), Error> {
        let mut pairs = Vec::new();
        for (key, item) in python::pairs(value) {
            pairs.push((self.key_text(&key)?, item));
        }
        if self.sort_keys {
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        self.out.push('{');
        self.level += 1;
        let empty = pairs.is_empty();
        for (at, (key, item)) in pairs.into_iter().enumerate() {
            self.before_item(at);
            self.string(&key);
            let separator = std::mem::take(&mut self.key);
            self.out.push_str(&separator);
            self.key = separator;
            self.value(&item)?;
        }
        self.close('}', empty);
        Ok(())
    }

    fn list(&mut self, value: &Value) -> Result<(), Error> {
        self.out.push('[');
        self.level += 1;
        let mut empty = true;
        for (at, item) in value.try_iter()?.enumerate() {
            empty = false;
            self.before_item(at);
            self.value(&item)?;
        }
        self.close(']', empty);
        Ok(())
    }

    fn before_item(&mut self, at: usize) {
        if at > 0 {
            self.out.push_str(&self.item);
        }
        self.new_line();
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.level -= 1;
        if !empty {
            self.new_line();
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..self.level {
                self.out.push_str(indent);
            }
        }
    }

    fn key_text(&self, key: &Value) -> Result<String, Error> {
        match key.kind() {
            ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
            ValueKind::None => Ok("null".into()),
            ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
            ValueKind::Number => Ok(python::str(key)),
            kind => {
                let detail = format!("keys must be str, int, float, bool or None, not {kind}");
                Err(Error::new(ErrorKind::InvalidOperation, detail))
            }
        }
    }

    fn number(&mut self, value: &Value) {
        match f64::try_from(value.clone()) {
            Ok(number) if !value.is_integer() && number.is_nan() => self.out.push_str("NaN"),
            Ok(number) if !value.is_integer() && number.is_infinite() => {
                self.out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
            }
            _ => python::write_number(&mut self.out, value),
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut plain = 0;
        for (at, c) in text.char_indices() {
            let as_is = c >= ' ' && c != '"' && c != '\\' && (c.is_ascii() || !self.ensure_ascii);
            if as_is {
                continue;
            }
            self.out.push_str(text.get(plain..at).unwrap_or_default());
            plain = at + c.len_utf8();
            self.escape(c);
        }
        self.out.push_str(text.get(plain..).unwrap_or_default());
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        match c {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\x08' => self.out.push_str("\\b"),
            '\x0c' => self.out.push_str("\\f"),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.out, "\\u{unit:04x}");
                }
            }
        }
    }
}
