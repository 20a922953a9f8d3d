//! One line of a data set: whether it has an `instance_id`, and where one could be put.

use anyhow::{Result, bail};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Blank,
    Has(String),
    Lacks(Gap),
}

/// The bytes of a line that an id takes the place of.
#[derive(Debug, PartialEq)]
pub(super) struct Gap {
    range: Range<usize>,
    before: &'static str,
}

impl Line {
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        if line.trim_ascii().is_empty() {
            return Ok(Self::Blank);
        }
        let text = std::str::from_utf8(line)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = json.deserialize_map(FindId)?;
        json.end()?;
        let Some(raw) = fields.id else {
            // Behind all other fields: before the brace that ends the line.
            let end = text.trim_ascii_end().len() - 1;
            let before = if fields.is_empty { "\"instance_id\": " } else { ", \"instance_id\": " };
            return Ok(Self::Lacks(Gap { range: end..end, before }));
        };
        if raw.get() == "null" {
            let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
            return Ok(Self::Lacks(Gap { range: start..start + raw.get().len(), before: "" }));
        }
        match serde_json::from_str(raw.get()) {
            Ok(serde_json::Value::String(id)) if !id.is_empty() => Ok(Self::Has(id)),
            Ok(serde_json::Value::Number(id)) if !id.is_f64() => Ok(Self::Has(id.to_string())),
            _ => bail!("instance_id is {}, but must be a non-empty text or a whole number", raw.get()),
        }
    }
}

impl Gap {
    pub(super) fn fill(&self, line: &[u8], id: &str, out: &mut impl Write) -> io::Result<()> {
        let (head, rest) = line.split_at_checked(self.range.start).unwrap_or((line, &[]));
        out.write_all(head)?;
        write!(out, "{}{}", self.before, serde_json::Value::from(id))?;
        out.write_all(rest.get(self.range.len()..).unwrap_or_default())
    }
}

/// Goes through the fields of an object and keeps the one that matters.
struct FindId;

struct Fields<'a> {
    id: Option<&'a RawValue>,
    is_empty: bool,
}

impl<'de> Visitor<'de> for FindId {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields { id: None, is_empty: true };
        while let Some(key) = map.next_key::<String>()? {
            fields.is_empty = false;
            if key != "instance_id" {
                map.next_value::<IgnoredAny>()?;
            } else if fields.id.replace(map.next_value()?).is_some() {
                return Err(serde::de::Error::duplicate_field("instance_id"));
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_put_in_and_nothing_else_is_touched() {
        for (line, expected) in [
            (r#"{"prompt": "a"}"#, Some(r#"{"prompt": "a", "instance_id": "m_7"}"#)),
            ("{\"prompt\":\"a\"}\r\n", Some("{\"prompt\":\"a\", \"instance_id\": \"m_7\"}\r\n")),
            ("  { \"p\" : 1.50e0 }  \n", Some("  { \"p\" : 1.50e0 , \"instance_id\": \"m_7\"}  \n")),
            ("{}\n", Some("{\"instance_id\": \"m_7\"}\n")),
            (r#"{"instance_id": null, "é": "\u00e9"}"#, Some(r#"{"instance_id": "m_7", "é": "\u00e9"}"#)),
            (
                r#"{"meta": {"instance_id": "x"}}"#,
                Some(r#"{"meta": {"instance_id": "x"}, "instance_id": "m_7"}"#),
            ),
            (r#"{"instance_id": "x"}"#, None),
            (r#"{"instance_id": 12}"#, None),
            ("\n", None),
        ] {
            let filled = match Line::parse(line.as_bytes()).unwrap() {
                Line::Lacks(gap) => {
                    let mut out = Vec::new();
                    gap.fill(line.as_bytes(), "m_7", &mut out).unwrap();
                    Some(String::from_utf8(out).unwrap())
                }
                Line::Blank | Line::Has(_) => None,
            };
            assert_eq!(filled.as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_trusted_is_refused() {
        for (line, part) in [
            ("[1]", "JSON object"),
            ("{\"a\": 1", "EOF"),
            ("{\"a\": NaN}", "column"),
            ("{} {}", "trailing"),
            (r#"{"instance_id": ""}"#, "non-empty"),
            (r#"{"instance_id": 1.5}"#, "whole number"),
            (r#"{"instance_id": ["x"]}"#, "[\"x\"]"),
            (r#"{"instance_id": 1, "instance_id": 2}"#, "duplicate"),
        ] {
            let error = Line::parse(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        assert!(Line::parse(b"{\"a\": \"\xff\"}").is_err());
    }
}
