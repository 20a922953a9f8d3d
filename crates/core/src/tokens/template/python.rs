//! What Python's `str` and `repr` make of a value.

use std::fmt::Write as _;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::value::{BigInt, Generator};

/// `str(value)`, with Jinja's rule that an undefined value is empty.
pub(super) fn str(value: &Value) -> String {
    let mut out = String::new();
    write_str(&mut out, value);
    out
}

pub(super) fn write_str(out: &mut String, value: &Value) {
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => write_repr(out, value),
    }
}

/// `repr(value)`.
pub(super) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => write_number(out, value),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Map => write_dict(out, value),
        ValueKind::Seq | ValueKind::Iterable if !is_generator(value) => write_list(out, value),
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn is_generator(value: &Value) -> bool {
    value.downcast_object_ref::<Generator>().is_some()
}

pub(super) fn is_big_int(value: &Value) -> bool {
    value.downcast_object_ref::<BigInt>().is_some()
}

fn write_dict(out: &mut String, value: &Value) {
    out.push('{');
    for (at, (key, item)) in pairs(value).into_iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        write_repr(out, &key);
        out.push_str(": ");
        write_repr(out, &item);
    }
    out.push('}');
}

fn write_list(out: &mut String, value: &Value) {
    let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
    out.push(open);
    let mut count = 0;
    for item in value.try_iter().into_iter().flatten() {
        out.push_str(if count == 0 { "" } else { ", " });
        write_repr(out, &item);
        count += 1;
    }
    if value.is_tuple() && count == 1 {
        out.push(',');
    }
    out.push(close);
}

/// The pairs of a map in order; nothing for anything else.
pub(super) fn pairs(value: &Value) -> Vec<(Value, Value)> {
    if let Some(dict) = value.downcast_object_ref::<super::value::Dict>() {
        return dict.entries().to_vec();
    }
    value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten().collect()
}

/// Numbers as Python writes them.
pub(super) fn write_number(out: &mut String, value: &Value) {
    if value.is_integer() {
        let _ = write!(out, "{value}");
    } else {
        write_float(out, f64::try_from(value.clone()).unwrap_or(f64::NAN));
    }
}

/// `repr(float)`: the shortest digits that read back, with an exponent below 1e-4 and from 1e16.
pub(super) fn write_float(out: &mut String, number: f64) {
    if number.is_nan() {
        return out.push_str("nan");
    }
    if number.is_infinite() {
        return out.push_str(if number < 0.0 { "-inf" } else { "inf" });
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&power) {
        let plain = format!("{number}");
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
    } else {
        let sign = if power < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", power.abs());
    }
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ if is_printable(c) => out.push(c),
            _ => {
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Rust escapes the same categories that Python calls unprintable, but also marks that open a string.
fn is_printable(c: char) -> bool {
    ["a", c.encode_utf8(&mut [0; 4])].concat().escape_debug().nth(1) == Some(c)
}

/// What `str.isspace` holds for a character: Unicode's white space and four separators of old.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
