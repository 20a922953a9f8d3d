//! Cuts an answer into numbers, letters and signs.
//!
//! LaTeX and plain notation become the same tokens here: `\times`, `×` and `*` are one sign, and what only
//! moves ink (`\left`, `\,`, `$`) is gone. Words behind a number are its unit.

use super::notation::{GREEK, INK, SIGNS, TEXT, UNIT_NAMES, UNITS};
use super::tree::Function;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Digits with at most one point.
    Number(String),
    Letter(char),
    /// Words among the maths.
    Text(String),
    /// `frac`, `sqrt`, `sin`, `begin:pmatrix` and so on.
    Command(String),
    Sign(char),
}

#[derive(Debug)]
pub(super) enum Lexed {
    Maths(Tokens),
    /// Words only, in lower case.
    Words(String),
    /// A character or command that no answer has.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) unit: Option<String>,
}

/// What a comma between digits does outside of brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commas {
    /// 1,000 is a thousand.
    InNumbers,
    /// 1,000 is two items.
    BetweenItems,
}

/// In tokens, braces of sets are not those of groups, and rows of a matrix end in a sign of their own.
pub(super) const SET_OPEN: char = '⦃';
pub(super) const SET_CLOSE: char = '⦄';
pub(super) const ROW: char = '↵';

pub(super) fn lex(text: &str, commas: Commas) -> Lexed {
    let mut lexer = Lexer { rest: text, tokens: Vec::new(), depth: 0, commas, unit: None };
    if lexer.run().is_none() {
        return words(text).map_or(Lexed::Unknown, Lexed::Words);
    }
    let is_prose = lexer.tokens.iter().all(|token| matches!(token, Token::Letter(_) | Token::Text(_)));
    if !is_prose {
        lexer.take_unit();
    }
    let has_text = lexer.tokens.iter().any(|token| matches!(token, Token::Text(_)));
    let is_name =
        lexer.tokens.iter().all(|token| matches!(token, Token::Letter(_))) && lexer.tokens.len() > 2;
    match lexer.tokens.is_empty() || has_text || is_name {
        true => words(text).map_or(Lexed::Unknown, Lexed::Words),
        false => Lexed::Maths(Tokens { tokens: lexer.tokens, unit: lexer.unit }),
    }
}

/// The text of an answer that is words: commands and braces around them are gone.
fn words(text: &str) -> Option<String> {
    let mut bare = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let command = rest.strip_prefix('\\').and_then(|after| {
            let len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            TEXT.contains(&after.get(..len)?).then(|| after.get(len..)).flatten()
        });
        if let Some(after) = command {
            rest = after;
            continue;
        }
        if !matches!(c, '{' | '}' | '$') {
            bare.extend(c.to_lowercase());
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    let bare = bare.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = bare.trim_matches(|c: char| matches!(c, '.' | ',' | '"' | '\'' | '“' | '”' | '!' | '(' | ')'));
    bare.contains(char::is_alphabetic).then(|| bare.to_owned())
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// Of round and square brackets and sets.
    depth: usize,
    commas: Commas,
    unit: Option<String>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Option<()> {
        while let Some(c) = self.rest.chars().next() {
            if c.is_ascii_digit() || c == '.' {
                self.number()?;
            } else if c.is_ascii_alphabetic() {
                self.word();
            } else {
                self.advance(c.len_utf8());
                if c == '\\' { self.command()? } else { self.sign(c)? }
            }
        }
        Some(())
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes as long as the characters are so.
    fn take_while(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        self.advance(self.rest.find(|c: char| !is(c)).unwrap_or(self.rest.len()))
    }

    fn number(&mut self) -> Option<()> {
        let mut digits = self.take_while(|c| c.is_ascii_digit()).to_owned();
        if (1..=3).contains(&digits.len()) {
            while let Some(len) = self.thousands() {
                self.advance(len);
                digits.push_str(self.advance(3));
            }
        }
        if self.rest.starts_with('.') {
            self.advance(1);
            let part = self.take_while(|c| c.is_ascii_digit());
            // An ellipsis is no number, and neither is a point by itself.
            if part.is_empty() && digits.is_empty() || self.rest.starts_with('.') {
                return None;
            }
            if !part.is_empty() || self.rest.starts_with("\\overline") {
                digits = [&digits, ".", part].concat();
            }
        }
        self.tokens.push(Token::Number(digits));
        Some(())
    }

    /// How long the separator is, if one stands here with exactly three digits behind it.
    fn thousands(&self) -> Option<usize> {
        let separators = ["{,}", "\\,", "\\!", ",\\!", ","];
        let separator = separators.iter().find(|separator| self.rest.starts_with(**separator))?;
        let is_open = self.depth == 0 && self.commas == Commas::InNumbers;
        let after = self.rest.get(separator.len()..)?;
        let count = after.chars().take(4).take_while(char::is_ascii_digit).count();
        (count == 3 && (is_open || *separator != ",")).then_some(separator.len())
    }

    fn word(&mut self) {
        let is_behind_number = matches!(self.tokens.last(), Some(Token::Number(_)));
        let word = self.take_while(|c| c.is_ascii_alphabetic());
        match word {
            "and" | "or" => self.tokens.push(Token::Sign(',')),
            "no" | "No" | "NO" => self.tokens.push(Token::Text(word.to_owned())),
            "pi" => self.tokens.push(Token::Sign('π')),
            "inf" | "infinity" | "oo" => self.tokens.push(Token::Sign('∞')),
            "sqrt" | "log" => self.tokens.push(Token::Command(word.to_owned())),
            _ if Function::named(word).is_some() => self.tokens.push(Token::Command(word.to_owned())),
            _ if word.len() > 3 || is_behind_number && UNITS.contains(&word) => {
                self.tokens.push(Token::Text(word.to_owned()));
            }
            _ => self.tokens.extend(word.chars().map(Token::Letter)),
        }
    }

    /// What follows a backslash.
    fn command(&mut self) -> Option<()> {
        let name = self.take_while(|c| c.is_ascii_alphabetic());
        let name = if name.is_empty() {
            let c = self.rest.chars().next()?;
            self.advance(c.len_utf8())
        } else {
            name
        };
        if INK.contains(&name) || matches!(name, "," | "!" | ";" | ":" | " " | "(" | ")" | "[" | "]" | "|") {
            // `\left.` stands for no bracket at all.
            if matches!(name, "left" | "right") && self.rest.starts_with('.') {
                self.advance(1);
            }
            return (name != "|").then_some(());
        }
        if let Some((_, sign)) = SIGNS.iter().find(|(known, _)| *known == name) {
            self.push_sign(*sign);
            return Some(());
        }
        if let Some((_, letter)) = GREEK.iter().find(|(known, _)| *known == name) {
            self.tokens.push(Token::Letter(*letter));
            return Some(());
        }
        match name {
            "$" => self.unit = Some("dollar".to_owned()),
            "frac" | "dfrac" | "tfrac" | "cfrac" => self.tokens.push(Token::Command("frac".to_owned())),
            "binom" | "dbinom" | "tbinom" => self.tokens.push(Token::Command("binom".to_owned())),
            "emptyset" | "varnothing" => self.empty_set(),
            "sqrt" | "log" | "overline" | "lfloor" | "rfloor" | "lceil" | "rceil" => {
                self.tokens.push(Token::Command(name.to_owned()));
            }
            "begin" | "end" => {
                let kind = self.group()?;
                if kind == "array" && name == "begin" {
                    self.group()?;
                }
                self.tokens.push(Token::Command([name, ":", kind].concat()));
            }
            _ if TEXT.contains(&name) => self.text()?,
            _ if Function::named(name).is_some() => self.tokens.push(Token::Command(name.to_owned())),
            _ => return None,
        }
        Some(())
    }

    /// The content of the braces that stand here.
    fn group(&mut self) -> Option<&'a str> {
        let inside = self.rest.trim_start().strip_prefix('{')?;
        let (content, rest) = inside.split_once('}')?;
        self.rest = rest;
        Some(content)
    }

    fn text(&mut self) -> Option<()> {
        let content = self.group()?.trim();
        let mut chars = content.chars();
        match (chars.next(), chars.next()) {
            (None, _) => {}
            // Behind a value it is a unit, such as metres.
            (Some(c), None) if c.is_ascii_alphabetic() && !self.is_behind_value() => {
                self.tokens.push(Token::Letter(c));
            }
            (Some('('), Some(c)) if content.len() == 3 && content.ends_with(')') => {
                self.tokens.push(Token::Letter(c));
            }
            _ if matches!(content, "and" | "or") => self.tokens.push(Token::Sign(',')),
            _ if content.chars().all(|c| c.is_ascii_digit()) => {
                self.tokens.push(Token::Number(content.to_owned()));
            }
            _ => self.tokens.push(Token::Text(content.to_owned())),
        }
        Some(())
    }

    fn is_behind_value(&self) -> bool {
        matches!(self.tokens.last(), Some(Token::Number(_) | Token::Sign('}' | ')' | 'π')))
    }

    fn sign(&mut self, c: char) -> Option<()> {
        let c = match c {
            '$' | '~' => return Some(()),
            _ if c.is_whitespace() => return Some(()),
            '−' | '–' => '-',
            '×' | '⋅' | '·' | '∗' => '*',
            '÷' => '/',
            '²' | '³' => {
                let digit = if c == '²' { "2" } else { "3" };
                self.tokens.extend([Token::Sign('^'), Token::Number(digit.to_owned())]);
                return Some(());
            }
            '√' => {
                self.tokens.push(Token::Command("sqrt".to_owned()));
                return Some(());
            }
            '½' | '¼' | '¾' => {
                let (top, bottom) = if c == '½' {
                    ("1", "2")
                } else if c == '¼' {
                    ("1", "4")
                } else {
                    ("3", "4")
                };
                let number = |digits: &str| Token::Number(digits.to_owned());
                self.tokens.extend([Token::Command("frac".to_owned()), number(top), number(bottom)]);
                return Some(());
            }
            '∅' => {
                self.empty_set();
                return Some(());
            }
            '€' | '£' | '¥' => {
                self.unit = Some(c.to_string());
                return Some(());
            }
            'α'..='ω' if c != 'π' => {
                self.tokens.push(Token::Letter(c));
                return Some(());
            }
            '<' | '>' if self.rest.starts_with('=') => {
                self.advance(1);
                if c == '<' { '≤' } else { '≥' }
            }
            '*' if self.rest.starts_with('*') => {
                self.advance(1);
                '^'
            }
            '+' | '-' | '*' | '/' | '^' | '_' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '!' | '=' | '<'
            | '>' | '%' | '°' | '&' | ',' | ';' | '±' | '∓' | '≤' | '≥' | '≠' | '∪' | '∈' | '∞' | 'π' => {
                c
            }
            _ => return None,
        };
        self.push_sign(c);
        Some(())
    }

    fn empty_set(&mut self) {
        self.tokens.extend([Token::Sign(SET_OPEN), Token::Sign(SET_CLOSE)]);
    }

    fn push_sign(&mut self, sign: char) {
        match sign {
            '(' | '[' | SET_OPEN => self.depth += 1,
            ')' | ']' | SET_CLOSE => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.tokens.push(Token::Sign(sign));
    }

    /// Words at the end, with their powers, are the unit of what stands before them.
    fn take_unit(&mut self) {
        let mut unit = String::new();
        loop {
            let taken = match self.tokens.as_slice() {
                [_, .., Token::Text(word)] if is_unit(word) => {
                    unit.insert_str(0, word);
                    1
                }
                [_, .., Token::Text(word), Token::Sign('^'), Token::Number(power)] => {
                    unit.insert_str(0, &[word.as_str(), "^", power].concat());
                    3
                }
                [
                    _,
                    ..,
                    Token::Text(word),
                    Token::Sign('^'),
                    Token::Sign('{'),
                    Token::Number(power),
                    Token::Sign('}'),
                ] => {
                    unit.insert_str(0, &[word.as_str(), "^", power].concat());
                    5
                }
                _ => break,
            };
            self.tokens.truncate(self.tokens.len() - taken);
        }
        if !unit.is_empty() {
            self.unit = Some(unit_name(&unit));
        }
    }
}

/// Whether words say what is counted, and not another answer.
fn is_unit(words: &str) -> bool {
    let is_hedge = |word: &str| matches!(word.to_lowercase().as_str(), "or" | "and" | "not" | "no");
    words.chars().all(|c| !c.is_numeric() && !matches!(c, '\\' | '$' | '=' | '(' | ','))
        && !words.split_whitespace().any(is_hedge)
}

/// One name for a unit: no space, no case, no plural, no long form.
fn unit_name(unit: &str) -> String {
    let bare: String = unit.to_lowercase().chars().filter(|c| !c.is_whitespace() && *c != '.').collect();
    let bare = bare.strip_suffix('s').filter(|one| one.len() > 1).unwrap_or(&bare);
    let short = UNIT_NAMES.iter().find(|(long, _)| *long == bare);
    short.map_or_else(|| bare.to_owned(), |(_, short)| (*short).to_owned())
}
