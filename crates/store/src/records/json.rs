//! JSON as people write it.
//!
//! Rows come from Python, where `NaN` is a number and half an emoji is a string, and a strict parser refuses them.
//! This one does not, and it is the only one that rows go through: a row has one meaning and so one id, however it
//! was written. A row becomes a flat tape of tokens; long strings are found eight to thirty-two bytes at a time,
//! and only those with escapes are copied. The tape and the copies are used again for the next row.

use serde_json::{Map, Number, Value};

/// Deeper rows are refused: they are no rollouts, and what walks them has a stack.
pub const DEPTH_MAX: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Token {
    Null,
    Bool(bool),
    Int(i64),
    /// What is too large for `Int`.
    UInt(u64),
    /// NaN and infinities too.
    Float(f64),
    /// In the text, or among the copies where it had escapes.
    Str {
        start: u32,
        len: u32,
        copied: bool,
    },
    /// `next` is the token after the last one inside. Keys are `Str`, each before its value.
    List {
        next: u32,
    },
    Object {
        next: u32,
    },
}

/// Reads rows, one after the other.
#[derive(Debug, Default)]
pub struct Reader {
    tape: Vec<Token>,
    copies: String,
    open: Vec<u32>,
}

/// What a row says.
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    text: &'t str,
    reader: &'t Reader,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Said<'t> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Str(&'t str),
    List,
    Object,
}

impl Reader {
    /// The row, or why it is no JSON and at which byte.
    pub fn read<'t>(&'t mut self, text: &'t str) -> Result<Node<'t>, String> {
        if u32::try_from(text.len()).is_err() {
            return Err(format!("the row is {} bytes long", text.len()));
        }
        self.tape.clear();
        self.copies.clear();
        self.open.clear();
        Cursor { text, bytes: text.as_bytes(), at: 0, reader: self }.row()?;
        Ok(Node { text, reader: self, at: 0 })
    }
}

struct Cursor<'t, 'r> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    reader: &'r mut Reader,
}

impl Cursor<'_, '_> {
    fn row(&mut self) -> Result<(), String> {
        loop {
            if !self.value()? {
                continue;
            }
            // A value is complete: so may be what it stands in.
            loop {
                let Some(&open) = self.reader.open.last() else {
                    return match self.peek() {
                        None => Ok(()),
                        Some(_) => Err(format!("text after the end of the row at byte {}", self.at + 1)),
                    };
                };
                let is_object = matches!(self.reader.tape.get(open as usize), Some(Token::Object { .. }));
                match (self.peek(), is_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => self.close(),
                    _ => return Err(self.unexpected()),
                }
            }
        }
    }

    /// Whether the value is complete; a list or an object that has something inside is not.
    fn value(&mut self) -> Result<bool, String> {
        let Some(byte) = self.peek() else { return Err(self.unexpected()) };
        let token = match byte {
            b'"' => self.string()?,
            b'{' | b'[' => return self.container(byte),
            b't' => self.word("true", Token::Bool(true))?,
            b'f' => self.word("false", Token::Bool(false))?,
            b'n' => self.word("null", Token::Null)?,
            b'N' => self.word("NaN", Token::Float(f64::NAN))?,
            b'I' => self.word("Infinity", Token::Float(f64::INFINITY))?,
            b'-' if self.bytes.get(self.at + 1) == Some(&b'I') => {
                self.word("-Infinity", Token::Float(f64::NEG_INFINITY))?
            }
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.unexpected()),
        };
        self.reader.tape.push(token);
        Ok(true)
    }

    fn container(&mut self, byte: u8) -> Result<bool, String> {
        let is_object = byte == b'{';
        if self.reader.open.len() == DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX} at byte {}", self.at + 1));
        }
        self.at += 1;
        self.reader.open.push(self.reader.tape.len() as u32);
        self.reader.tape.push(if is_object { Token::Object { next: 0 } } else { Token::List { next: 0 } });
        match self.peek() {
            Some(b'}') if is_object => self.close(),
            Some(b']') if !is_object => self.close(),
            _ if is_object => {
                self.key()?;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn close(&mut self) {
        self.at += 1;
        let end = self.reader.tape.len() as u32;
        let open = self.reader.open.pop().and_then(|open| self.reader.tape.get_mut(open as usize));
        if let Some(Token::List { next } | Token::Object { next }) = open {
            *next = end;
        }
    }

    fn key(&mut self) -> Result<(), String> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        self.reader.tape.push(key);
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn unexpected(&self) -> String {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("{found:?} is not expected at byte {}", self.at + 1),
            None => format!("the row ends in the middle, after byte {}", self.bytes.len()),
        }
    }

    fn word(&mut self, word: &str, token: Token) -> Result<Token, String> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            return Ok(token);
        }
        Err(self.unexpected())
    }

    fn number(&mut self) -> Result<Token, String> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let digits = rest.get(..len).unwrap_or_default();
        self.at += len;
        let (is_negative, plain) = match digits.split_first() {
            Some((b'-', plain)) => (true, plain),
            _ => (false, digits),
        };
        if plain.len() <= 18 && !plain.is_empty() && plain.iter().all(u8::is_ascii_digit) {
            let size = plain.iter().fold(0, |sum: i64, digit| sum * 10 + i64::from(digit - b'0'));
            return Ok(Token::Int(if is_negative { -size } else { size }));
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if let Ok(int) = text.parse() {
            return Ok(Token::Int(int));
        }
        if let Ok(uint) = text.parse() {
            return Ok(Token::UInt(uint));
        }
        text.parse().map(Token::Float).map_err(|_| format!("{text:?} is no number, at byte {}", start + 1))
    }

    fn string(&mut self) -> Result<Token, String> {
        self.at += 1;
        let start = self.at;
        match self.until_quote_or_escape()? {
            b'"' => {
                let len = self.at - start;
                self.at += 1;
                Ok(Token::Str { start: start as u32, len: len as u32, copied: false })
            }
            _ => self.string_with_escapes(start),
        }
    }

    fn until_quote_or_escape(&mut self) -> Result<u8, String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(skip) => {
                self.at += skip;
                Ok(rest.get(skip).copied().unwrap_or_default())
            }
            None => {
                self.at = self.bytes.len();
                Err(format!("a string is not closed; the row ends after byte {}", self.bytes.len()))
            }
        }
    }

    fn string_with_escapes(&mut self, mut plain_from: usize) -> Result<Token, String> {
        let start = self.reader.copies.len();
        loop {
            // `at` is at a quote or a backslash.
            self.reader.copies.push_str(self.text.get(plain_from..self.at).unwrap_or_default());
            if self.bytes.get(self.at) == Some(&b'"') {
                self.at += 1;
                let len = self.reader.copies.len() - start;
                return Ok(Token::Str { start: start as u32, len: len as u32, copied: true });
            }
            let decoded = match self.bytes.get(self.at + 1) {
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(&same @ (b'"' | b'\\' | b'/')) => char::from(same),
                Some(b'u') => self.unicode()?,
                _ => return Err(format!("unknown escape at byte {}", self.at + 1)),
            };
            self.reader.copies.push(decoded);
            self.at += 2;
            plain_from = self.at;
            self.until_quote_or_escape()?;
        }
    }

    /// Leaves `at` two bytes before the end of the escape. Half a pair of surrogates is no character.
    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex(self.at + 2)?;
        self.at += 4;
        if let Some(char) = char::from_u32(high) {
            return Ok(char);
        }
        let follows = self.bytes.get(self.at + 2..self.at + 4) == Some(b"\\u");
        if high < 0xdc00 && follows {
            let low = self.hex(self.at + 4)?;
            if (0xdc00..0xe000).contains(&low) {
                self.at += 6;
                let char = char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                return Ok(char.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&self, at: usize) -> Result<u32, String> {
        let digits = self.bytes.get(at..at + 4).unwrap_or_default();
        let code =
            digits.iter().try_fold(0, |code, &digit| Some(code * 16 + char::from(digit).to_digit(16)?));
        code.filter(|_| digits.len() == 4)
            .ok_or_else(|| format!("an escape without its four digits at byte {}", at - 1))
    }
}

impl<'t> Node<'t> {
    pub fn said(self) -> Said<'t> {
        match self.reader.tape.get(self.at) {
            None | Some(Token::Null) => Said::Null,
            Some(&Token::Bool(bool)) => Said::Bool(bool),
            Some(&Token::Int(int)) => Said::Int(int),
            Some(&Token::UInt(uint)) => Said::UInt(uint),
            Some(&Token::Float(float)) => Said::Float(float),
            Some(&Token::Str { start, len, copied }) => {
                let from = if copied { self.reader.copies.as_str() } else { self.text };
                Said::Str(from.get(start as usize..start as usize + len as usize).unwrap_or_default())
            }
            Some(Token::List { .. }) => Said::List,
            Some(Token::Object { .. }) => Said::Object,
        }
    }

    fn next(self) -> usize {
        match self.reader.tape.get(self.at) {
            Some(&(Token::List { next } | Token::Object { next })) => next as usize,
            _ => self.at + 1,
        }
    }

    pub fn is_object(self) -> bool {
        matches!(self.said(), Said::Object)
    }

    pub fn is_null(self) -> bool {
        matches!(self.said(), Said::Null)
    }

    pub fn str(self) -> Option<&'t str> {
        match self.said() {
            Said::Str(str) => Some(str),
            _ => None,
        }
    }

    /// What is in a list; of anything else, nothing.
    pub fn items(self) -> Items<'t> {
        let end = if matches!(self.said(), Said::List) { self.next() } else { 0 };
        Items { node: Node { at: self.at + 1, ..self }, end }
    }

    /// What is in an object; of anything else, nothing.
    pub fn entries(self) -> Entries<'t> {
        let end = if self.is_object() { self.next() } else { 0 };
        Entries { node: Node { at: self.at + 1, ..self }, end }
    }

    /// Of a key that is there twice, the last counts, as in Python.
    pub fn get(self, key: &str) -> Option<Node<'t>> {
        self.entries().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// As others know JSON; numbers that are none become their names.
    pub fn to_value(self) -> Value {
        match self.said() {
            Said::Null => Value::Null,
            Said::Bool(bool) => Value::Bool(bool),
            Said::Int(int) => Value::Number(int.into()),
            Said::UInt(uint) => Value::Number(uint.into()),
            Said::Float(float) => match Number::from_f64(float) {
                Some(number) => Value::Number(number),
                None => Value::String(name_of(float).to_owned()),
            },
            Said::Str(str) => Value::String(str.to_owned()),
            Said::List => Value::Array(self.items().map(Node::to_value).collect()),
            Said::Object => Value::Object(self.to_map()),
        }
    }

    pub fn to_map(self) -> Map<String, Value> {
        self.entries().map(|(key, value)| (key.to_owned(), value.to_value())).collect()
    }
}

fn name_of(float: f64) -> &'static str {
    match float {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

#[derive(Clone, Debug)]
pub struct Items<'t> {
    node: Node<'t>,
    end: usize,
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        if self.node.at >= self.end {
            return None;
        }
        let item = self.node;
        self.node.at = item.next();
        Some(item)
    }
}

#[derive(Clone, Debug)]
pub struct Entries<'t> {
    node: Node<'t>,
    end: usize,
}

impl<'t> Iterator for Entries<'t> {
    type Item = (&'t str, Node<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.node.at >= self.end {
            return None;
        }
        let key = self.node.str().unwrap_or_default();
        let value = Node { at: self.node.at + 1, ..self.node };
        self.node.at = value.next();
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let mut reader = Reader::default();
        let got = match reader.read(text) {
            Ok(node) => node.to_value().to_string(),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn what_python_writes_is_read_and_what_is_broken_is_told_with_its_place() {
        for (text, expected) in [
            (r#" {"a": [1, -2.5, true, null], "b": {}} "#, r#"{"a":[1,-2.5,true,null],"b":{}}"#),
            (r"[NaN, Infinity, -Infinity]", r#"["NaN","Infinity","-Infinity"]"#),
            (r#""\u00e9\n\"\\\/\ud83d\ude00""#, "\"é\\n\\\"\\\\/😀\""),
            (r#"["\ud83d", "\ude00x", "\ud83d\u0041"]"#, "[\"\u{fffd}\",\"\u{fffd}x\",\"\u{fffd}A\"]"),
            (r#"{"a": 1, "a": 2}"#, r#"{"a":2}"#),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1e400", "\"Infinity\""),
            ("[]", "[]"),
            (r#"{"a": "unclo"#, "! a string is not closed; the row ends after byte 12"),
            (r#"{"a": 1"#, "! the row ends in the middle, after byte 7"),
            (r#"{"a" 1}"#, "! '1' is not expected at byte 6"),
            (r#"[1,]"#, "! ']' is not expected at byte 4"),
            (r#"[1}"#, "! '}' is not expected at byte 3"),
            ("{} x", "! text after the end of the row at byte 4"),
            ("1.2.3", "! \"1.2.3\" is no number, at byte 1"),
            (r#""\q""#, "! unknown escape at byte 2"),
            (r#""\u12""#, "! an escape without its four digits at byte 3"),
            ("", "! the row ends in the middle, after byte 0"),
            ("nul", "! 'n' is not expected at byte 1"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn depth_is_refused_before_the_stack_ends() {
        let deep = "[".repeat(1_000_000);
        check(&deep, "! nested deeper than 512 at byte 513");
        let mut reader = Reader::default();
        let most = format!("{}1{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        assert!(reader.read(&most).is_ok());
    }

    proptest! {
        #[test]
        fn what_serde_reads_is_read_the_same(strings in prop::collection::vec(".*", 0..4), int: i64, float: f64) {
            let value = serde_json::json!({"s": strings, "i": int, "f": [float, {"n": null}], "": false});
            let text = value.to_string();
            let again: Value = serde_json::from_str(&text).unwrap();
            let mut reader = Reader::default();
            prop_assert_eq!(reader.read(&text).unwrap().to_value(), again);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}\",:0-9a-fu\\\\ntNI. -]{0,60}") {
            let mut reader = Reader::default();
            let ours = reader.read(&text).map(|node| node.to_value());
            // Ours takes more, never less.
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(ours.unwrap(), value);
            }
        }
    }
}
