//! Rows of a file that is one JSON value: a list of rows, an object with such a list in it, or one row.
//!
//! Rows are found as ranges of the file, so that each can be shown as it stands there. A file that ends in the middle
//! gives the rows before that, and the rest as one that cannot be read.

use std::ops::Range;

/// Names under which writers put their rows.
const LISTS: [&[u8]; 6] =
    [b"\"samples\"", b"\"rollouts\"", b"\"data\"", b"\"items\"", b"\"results\"", b"\"trajectories\""];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    At(Vec<Range<usize>>),
    /// Several values one after the other: it is a file with a row a line, whatever its name says.
    Lines,
}

pub(crate) fn rows(bytes: &[u8]) -> Rows {
    let start = skip_space(bytes, if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 });
    match bytes.get(start) {
        None => Rows::At(Vec::new()),
        Some(b'[') => Rows::At(items(bytes, start)),
        Some(b'{') => object(bytes, start),
        Some(_) => Rows::Lines,
    }
}

fn object(bytes: &[u8], start: usize) -> Rows {
    let Some(end) = value_end(bytes, start) else { return Rows::Lines };
    if skip_space(bytes, end) < bytes.len() {
        return Rows::Lines;
    }
    let mut at = skip_space(bytes, start + 1);
    while let Some(key_end) = value_end(bytes, at) {
        let key = at..key_end;
        let colon = skip_space(bytes, key_end);
        let value = skip_space(bytes, colon + 1);
        let is_list = bytes.get(value) == Some(&b'[');
        if is_list && LISTS.iter().any(|name| bytes.get(key.clone()) == Some(*name)) {
            return Rows::At(items(bytes, value));
        }
        let Some(value_end) = value_end(bytes, value) else { break };
        let comma = skip_space(bytes, value_end);
        if bytes.get(comma) != Some(&b',') {
            break;
        }
        at = skip_space(bytes, comma + 1);
    }
    Rows::At(std::iter::once(start..end).collect())
}

fn items(bytes: &[u8], list: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut at = skip_space(bytes, list + 1);
    while at < bytes.len() && bytes.get(at) != Some(&b']') {
        let end = value_end(bytes, at).unwrap_or(bytes.len());
        // What is no value is passed on as it is, up to where it ends, and refused as a row.
        let end = end.max(at + 1);
        rows.push(at..end);
        let comma = skip_space(bytes, end);
        if bytes.get(comma) != Some(&b',') {
            break;
        }
        at = skip_space(bytes, comma + 1);
    }
    rows
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
}

/// Where the value that begins here ends; none if the file does so first.
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                // Not ours: a bare word or a number ended here.
                if depth == 0 {
                    return (at > start).then_some(at);
                }
                depth -= 1;
                at += 1;
            }
            b',' | b':' if depth == 0 => return (at > start).then_some(at),
            byte if byte.is_ascii_whitespace() && depth == 0 => return Some(at),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn string_end(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_whatever_holds_them() {
        for (text, expected) in [
            ("[]", vec![]),
            (
                " [ {\"a\": [1, {}]} , {\"b\": \"]},\\\"\"}\n]\n",
                vec!["{\"a\": [1, {}]}", "{\"b\": \"]},\\\"\"}"],
            ),
            ("[1, \"x\", null]", vec!["1", "\"x\"", "null"]),
            ("{\"step\": 1, \"samples\": [{\"a\": 1}]}", vec!["{\"a\": 1}"]),
            ("{\n \"messages\": []\n}", vec!["{\n \"messages\": []\n}"]),
            ("[{\"a\": 1}, {\"b\": ", vec!["{\"a\": 1}", "{\"b\": "]),
            ("", vec![]),
        ] {
            let Rows::At(ranges) = rows(text.as_bytes()) else { panic!("lines: {text}") };
            let got: Vec<_> = ranges.into_iter().map(|range| &text[range]).collect();
            assert_eq!(got, expected, "{text}");
        }
        for text in ["{\"a\": 1}\n{\"a\": 2}\n", "x", "{\"half"] {
            assert_eq!(rows(text.as_bytes()), Rows::Lines, "{text}");
        }
    }
}
