//! JSON text to template values, as Python's `json.loads` reads it.
//!
//! A parser of our own, because two things must survive that serde_json's `Value` drops here: the order of keys,
//! and whole numbers of any size.

use minijinja::Value;
use thiserror::Error;

use super::value::{BigInt, Dict, List};

/// Deeper nesting than this is an attack, not a tool schema.
const MAX_DEPTH: usize = 256;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum JsonError {
    #[error("expected {expected} at byte {at} of the JSON text; correct the text there")]
    Expected { expected: &'static str, at: usize },
    #[error("the JSON text nests deeper than {MAX_DEPTH} levels at byte {at}; flatten it")]
    TooDeep { at: usize },
}

/// Reads one JSON value. `NaN`, `Infinity` and `-Infinity` are taken, as in Python.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.expected("the end")) } else { Ok(value) }
}

/// Converts parsed JSON; whole numbers beyond 64 bits are floats there already.
pub fn from_json(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (_, Some(number)) => Value::from(number),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => List::new(items.iter().map(from_json).collect()).into_value(),
        Json::Object(map) => {
            let pairs = map.iter().map(|(key, value)| (Value::from(key.as_str()), from_json(value)));
            Dict::from_pairs(pairs).into_value()
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError::Expected { expected, at: self.at }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\n', '\t', '\r']).len();
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        self.skip_space();
        match self.rest().as_bytes().first() {
            Some(b'{') => self.nested(Self::dict),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Value::from),
            _ if self.eat("null") => Ok(Value::from(())),
            _ if self.eat("true") => Ok(Value::from(true)),
            _ if self.eat("false") => Ok(Value::from(false)),
            _ if self.eat("NaN") => Ok(Value::from(f64::NAN)),
            _ if self.eat("Infinity") => Ok(Value::from(f64::INFINITY)),
            _ if self.eat("-Infinity") => Ok(Value::from(f64::NEG_INFINITY)),
            _ => self.number(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, JsonError>) -> Result<Value, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::TooDeep { at: self.at });
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn dict(&mut self) -> Result<Value, JsonError> {
        let mut pairs = Vec::new();
        self.skip_space();
        if self.eat("}") {
            return Ok(Dict::default().into_value());
        }
        loop {
            self.skip_space();
            let key = Value::from(self.string()?);
            self.skip_space();
            if !self.eat(":") {
                return Err(self.expected("':'"));
            }
            pairs.push((key, self.value()?));
            self.skip_space();
            if self.eat("}") {
                return Ok(Dict::from_pairs(pairs).into_value());
            }
            if !self.eat(",") {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn list(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.skip_space();
        if self.eat("]") {
            return Ok(List::new(items).into_value());
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.eat("]") {
                return Ok(List::new(items).into_value());
            }
            if !self.eat(",") {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let rest = self.rest();
        if !rest.starts_with('"') {
            return Err(self.expected("a string in double quotes"));
        }
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let quoted =
            end.and_then(|end| rest.get(..end + 2)).ok_or_else(|| self.expected("a closed string"))?;
        // Control characters inside strings, which Python refuses, are refused here too.
        let text = serde_json::from_str(quoted).map_err(|_| self.expected("a valid string"))?;
        self.at += quoted.len();
        Ok(text)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        // Serde knows what JSON calls a number; the size of the result is our affair.
        if serde_json::from_str::<serde_json::Number>(word).is_err() && !is_whole(word) {
            return Err(self.expected("a value"));
        }
        self.at += end;
        if !is_whole(word) {
            return word.parse::<f64>().map(Value::from).map_err(|_| self.expected("a number"));
        }
        Ok(match (word.parse::<i64>(), word.parse::<i128>()) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => Value::from_object(BigInt(word.to_owned())),
        })
    }
}

fn is_whole(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
}
