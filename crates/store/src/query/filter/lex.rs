//! Words, numbers, quoted texts and signs of a filter, one at a time.
//!
//! The parser pulls tokens instead of getting a list, since what a character means depends on what is expected:
//! in `a / b > 1` the stroke divides, in `data_source == math/train` it is part of the value.

use super::super::Mistake;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name or a keyword.
    Word(String),
    /// A name between backticks, whatever it contains.
    Name(String),
    Number(String),
    Text(String),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

/// The longer before what they begin with.
const SIGNS: [&str; 25] = [
    "==", "=~", "!=", "!~", "<>", "<=", ">=", "&&", "||", "=", "<", ">", "~", "!", "(", ")", "[", "]", ",",
    "+", "-", "*", "/", "%", ";",
];

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    pub(crate) fn peek(&self) -> Result<(Token, Range<usize>), Mistake> {
        self.clone().take()
    }

    pub(crate) fn take(&mut self) -> Result<(Token, Range<usize>), Mistake> {
        self.skip_space();
        let (from, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else { return Ok((Token::End, from..from)) };
        let token = match first {
            '"' | '\'' => Token::Text(self.quoted(first)?),
            '`' => Token::Name(self.quoted(first)?),
            _ if first.is_alphabetic() || first == '_' => {
                Token::Word(self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).to_owned())
            }
            _ if first.is_ascii_digit() || begins_fraction(rest) => Token::Number(self.number().to_owned()),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    Token::Sign(sign)
                }
                None => {
                    return Err(Mistake {
                        message: format!("{first:?} means nothing here; put text into quotes"),
                        at: from..from + first.len_utf8(),
                        expected: Vec::new(),
                    });
                }
            },
        };
        Ok((token, from..self.at))
    }

    /// A value without quotes: everything up to a space, a parenthesis, a comma or a sign that compares.
    pub(crate) fn bare(&self) -> (&'a str, Range<usize>) {
        let mut ahead = self.clone();
        ahead.skip_space();
        let from = ahead.at;
        let word = ahead.run(|c| {
            !c.is_whitespace()
                && !matches!(c, '(' | ')' | '[' | ']' | ',' | '"' | '\'' | '`')
                && !matches!(c, '=' | '<' | '>' | '!' | '&' | '|' | '~')
        });
        (word, from..ahead.at)
    }

    fn run(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let mut before = ' ';
        let len = rest
            .find(|c: char| {
                let signed_exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
                before = c;
                !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || signed_exponent)
            })
            .unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn quoted(&mut self, quote: char) -> Result<String, Mistake> {
        let from = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.at += i + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c)) if c == quote || c == '\\' => text.push(c),
                    // A regex is full of strokes that are its own.
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(Mistake {
            message: format!("the text that begins here has no closing {quote}"),
            at: from..self.text.len(),
            expected: vec![quote.to_string()],
        })
    }
}

fn begins_fraction(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_digit())
}
