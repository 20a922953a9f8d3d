//! From what was typed to a tree, with the place of every mistake.
//!
//! `or`, `and`, `not`, comparison, sum, product, in this order of strength. Parentheses may hold a condition or
//! a term, and nobody knows which before their end; so both are parsed by the same functions and told apart
//! where they are used.

use super::fields::{Fields, function_of};
use super::lex::{Lexer, Token};
use super::tree::{Field, How, Literal, Node, Op, Sign, Source, Term, Type};
use super::types::{self, Typed, mistake};
use crate::query::Mistake;
use std::ops::Range;

/// Longer filters are written by programs, and those have SQL.
const TEXT_BYTES_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 50;
/// SQLite refuses expressions that are nested a thousand deep, and it nests what stands side by side.
const PARTS_MAX: usize = 400;
const LIST_MAX: usize = 10_000;

/// What could be typed at the end of the text, for completion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wants {
    /// A field, a function, `not`.
    Term,
    /// After a term of this type.
    Operator(Type),
    /// To compare with; of this field, if it is one.
    Value(Option<Field>),
    Null,
    /// `and`, `or`.
    Joint,
}

/// A condition, or something that one can be made of.
enum Thing {
    Condition(Node, Range<usize>),
    Term(Typed),
}

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    fields: &'a Fields,
    depth: usize,
    parts: usize,
    /// In the order in which they were looked for.
    pub(crate) wants: Vec<Wants>,
}

type Parsed<T> = Result<T, Mistake>;

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, fields: &'a Fields) -> Self {
        Self { lexer: Lexer::new(text), fields, depth: 0, parts: 0, wants: Vec::new() }
    }

    /// The whole text as a condition; `None` where there is none.
    pub(crate) fn filter(&mut self) -> Parsed<Option<Node>> {
        if self.lexer.text.len() > TEXT_BYTES_MAX {
            let message = format!("the filter is longer than {TEXT_BYTES_MAX} bytes; use SQL");
            return Err(mistake(message, 0..self.lexer.text.len()));
        }
        self.note(Wants::Term);
        if self.lexer.peek()?.0 == Token::End {
            return Ok(None);
        }
        let thing = self.either()?;
        let node = self.condition(thing)?;
        match self.lexer.peek()? {
            (Token::End, _) => Ok(Some(node)),
            (_, at) => {
                let what = self.lexer.text.get(at.clone()).unwrap_or_default();
                let mut error =
                    mistake(format!("{what} is not expected here; join conditions by AND or OR"), at);
                error.expected = ["AND", "OR"].map(str::to_owned).to_vec();
                Err(error)
            }
        }
    }

    fn either(&mut self) -> Parsed<Thing> {
        self.joined(&["or"], "||", Self::both, Node::Any)
    }

    fn both(&mut self) -> Parsed<Thing> {
        self.joined(&["and"], "&&", Self::negation, Node::All)
    }

    fn joined(
        &mut self,
        words: &[&str],
        sign: &str,
        part: fn(&mut Self) -> Parsed<Thing>,
        join: fn(Vec<Node>) -> Node,
    ) -> Parsed<Thing> {
        let first = part(self)?;
        if !self.next_is(words, sign)? {
            return Ok(first);
        }
        let from = first.at().start;
        let mut nodes = vec![self.condition(first)?];
        let mut to = from;
        while self.next_is(words, sign)? {
            self.lexer.take()?;
            let next = part(self)?;
            to = next.at().end;
            nodes.push(self.condition(next)?);
        }
        Ok(Thing::Condition(join(nodes), from..to))
    }

    fn next_is(&mut self, words: &[&str], sign: &str) -> Parsed<bool> {
        self.note(Wants::Joint);
        Ok(match self.lexer.peek()?.0 {
            Token::Word(word) => words.iter().any(|known| word.eq_ignore_ascii_case(known)),
            Token::Sign(found) => found == sign,
            _ => false,
        })
    }

    fn negation(&mut self) -> Parsed<Thing> {
        self.note(Wants::Term);
        let (token, at) = self.lexer.peek()?;
        let negated = match &token {
            Token::Word(word) => word.eq_ignore_ascii_case("not"),
            token => *token == Token::Sign("!"),
        };
        if !negated {
            return self.comparison();
        }
        self.lexer.take()?;
        let inner = self.deeper(Self::negation)?;
        let to = inner.at().end;
        Ok(Thing::Condition(Node::Not(Box::new(self.condition(inner)?)), at.start..to))
    }

    fn comparison(&mut self) -> Parsed<Thing> {
        let left = match self.sum()? {
            Thing::Term(term) => term,
            condition => return Ok(condition),
        };
        self.note(Wants::Operator(left.kind));
        let (token, at) = self.lexer.peek()?;
        let from = left.at.start;
        let node = match token {
            Token::Sign("~" | "=~" | "!~") => {
                self.lexer.take()?;
                self.text_operator(left, "matches", token == Token::Sign("!~"))?
            }
            Token::Sign(sign) => match operator(sign) {
                None => return Ok(Thing::Term(left)),
                Some(op) => {
                    self.lexer.take()?;
                    self.compared(left, op)?
                }
            },
            Token::Word(word) => match word.to_ascii_lowercase().as_str() {
                "is" => {
                    self.lexer.take()?;
                    self.is_null(left)?
                }
                "not" => {
                    self.lexer.take()?;
                    self.note(Wants::Operator(left.kind));
                    let (Token::Word(word), at) = self.lexer.take()? else {
                        return Err(mistake(
                            "NOT must be followed by IN, BETWEEN, CONTAINS, LIKE or MATCHES",
                            at,
                        ));
                    };
                    self.word_operator(left, &word.to_ascii_lowercase(), true, at)?
                }
                lower if is_operator(lower) => {
                    self.lexer.take()?;
                    self.word_operator(left, lower, false, at)?
                }
                _ => return Ok(Thing::Term(left)),
            },
            _ => return Ok(Thing::Term(left)),
        };
        if let (Token::Sign(sign), at) = self.lexer.peek()?
            && operator(sign).is_some()
        {
            return Err(mistake(
                "comparisons do not chain; write `x between a and b`, or join two by AND",
                at,
            ));
        }
        self.part(from..self.lexer.at)?;
        Ok(Thing::Condition(node, from..self.lexer.at))
    }

    fn word_operator(&mut self, left: Typed, word: &str, negated: bool, at: Range<usize>) -> Parsed<Node> {
        let node = match word {
            "in" => self.one_of(left)?,
            "between" => self.between(left)?,
            _ if is_operator(word) && word != "is" => return self.text_operator(left, word, negated),
            _ => {
                let mut error = mistake(format!("{word} is no operator"), at);
                error.expected = types::operators(left.kind).iter().map(|o| o.name.to_owned()).collect();
                return Err(error);
            }
        };
        Ok(negate(node, negated))
    }

    fn compared(&mut self, left: Typed, op: Op) -> Parsed<Node> {
        if self.takes_null()? {
            return Ok(match op {
                Op::Eq => Node::IsNull(left.term),
                Op::Ne => negate(Node::IsNull(left.term), true),
                _ => return Err(mistake("NULL is neither more nor less; write IS NULL", left.at)),
            });
        }
        let right = self.value(&left)?;
        let (left, right) = types::agree(left, right)?;
        Ok(Node::Compare { op, left, right })
    }

    fn takes_null(&mut self) -> Parsed<bool> {
        let is_null = matches!(self.lexer.peek()?.0, Token::Word(word) if is_null_word(&word));
        if is_null {
            self.lexer.take()?;
        }
        Ok(is_null)
    }

    fn is_null(&mut self, left: Typed) -> Parsed<Node> {
        self.note(Wants::Null);
        let negated = matches!(self.lexer.peek()?.0, Token::Word(word) if word.eq_ignore_ascii_case("not"));
        if negated {
            self.lexer.take()?;
            self.note(Wants::Null);
        }
        if self.takes_null()? {
            return Ok(negate(Node::IsNull(left.term), negated));
        }
        let (token, at) = self.lexer.take()?;
        match token {
            Token::Word(word) if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") => {
                let wanted = Typed::literal(Literal::Int(i64::from(word.eq_ignore_ascii_case("true"))), at);
                let (left, right) = types::agree(left, wanted)?;
                Ok(negate(Node::Compare { op: Op::Eq, left, right }, negated))
            }
            _ => {
                let mut error = mistake("IS must be followed by NULL or NOT NULL", at);
                error.expected = ["NULL", "NOT NULL", "TRUE", "FALSE"].map(str::to_owned).to_vec();
                Err(error)
            }
        }
    }

    fn text_operator(&mut self, left: Typed, word: &str, negated: bool) -> Parsed<Node> {
        if !matches!(left.kind, Type::Text | Type::Any) {
            let name = self.lexer.text.get(left.at.clone()).unwrap_or_default();
            let message = format!("{word} is for text, and {name} is {}", left.kind.said());
            return Err(mistake(message, left.at));
        }
        let right = self.value(&left)?;
        let Term::Literal(literal) = right.term else {
            return Err(mistake(format!("{word} must be followed by a text in quotes"), right.at));
        };
        let text = match literal {
            Literal::Text(text) => text,
            _ => self.lexer.text.get(right.at.clone()).unwrap_or_default().to_owned(),
        };
        let how = match word {
            "contains" => How::Contains(text),
            "startswith" => How::Starts(text),
            "endswith" => How::Ends(text),
            "like" => How::Like(text),
            _ => How::Matches(types::regex(&text, &right.at)?),
        };
        Ok(negate(Node::Text { how, term: left.term }, negated))
    }

    fn one_of(&mut self, left: Typed) -> Parsed<Node> {
        let (open, at) = self.lexer.take()?;
        let close = match open {
            Token::Sign("(") => ")",
            Token::Sign("[") => "]",
            _ => {
                let mut error = mistake("IN must be followed by values in parentheses, as in (1, 2)", at);
                error.expected = vec!["(".to_owned()];
                return Err(error);
            }
        };
        let mut values = Vec::new();
        loop {
            let right = self.value(&left)?;
            let at = right.at.clone();
            match types::agree(left.clone(), right)?.1 {
                Term::Literal(value) if values.len() < LIST_MAX => values.push(value),
                Term::Literal(_) => return Err(mistake(format!("more than {LIST_MAX} values"), at)),
                _ => return Err(mistake("IN takes values, not fields", at)),
            }
            match self.lexer.take()? {
                (Token::Sign(","), _) => {}
                (Token::Sign(sign), _) if sign == close => break,
                (_, at) => {
                    let mut error = mistake(format!("expected a comma or {close}"), at);
                    error.expected = vec![",".to_owned(), close.to_owned()];
                    return Err(error);
                }
            }
        }
        Ok(Node::OneOf { term: left.term, values })
    }

    fn between(&mut self, left: Typed) -> Parsed<Node> {
        let low = self.value(&left)?;
        match self.lexer.take()? {
            (Token::Word(word), _) if word.eq_ignore_ascii_case("and") => {}
            (_, at) => {
                let mut error = mistake("BETWEEN needs two values, as in BETWEEN 1 AND 2", at);
                error.expected = vec!["AND".to_owned()];
                return Err(error);
            }
        }
        let high = self.value(&left)?;
        let (least, low) = types::agree(left.clone(), low)?;
        let (most, high) = types::agree(left, high)?;
        self.part(self.lexer.at..self.lexer.at)?;
        Ok(Node::All(vec![
            Node::Compare { op: Op::Ge, left: least, right: low },
            Node::Compare { op: Op::Le, left: most, right: high },
        ]))
    }

    /// The right side of a comparison: what is no field and has no quotes may be a text or a date all the same.
    fn value(&mut self, left: &Typed) -> Parsed<Typed> {
        let field = match &left.term {
            Term::Field(field) => Some(field.clone()),
            _ => None,
        };
        self.note(Wants::Value(field));
        let (word, at) = self.lexer.bare();
        let called = self.lexer.text.get(at.end..).unwrap_or_default().trim_start().starts_with('(');
        let first = word.chars().next();
        let letters = first.is_some_and(|c| c.is_alphabetic() || c == '_');
        let known = self.fields.find(word).is_ok_and(|found| match &found.source {
            Source::Extra(name) => self.fields.extras().any(|extra| extra == name),
            _ => true,
        });
        let is_text = match left.kind {
            _ if called || known => false,
            Type::Text => first.is_some(),
            Type::Any => letters && !is_flag_word(word),
            Type::Time => first.is_some_and(|c| c.is_ascii_digit()) && word.contains('-'),
            _ => false,
        };
        if is_text {
            self.lexer.at = at.end;
            return Ok(Typed::literal(Literal::Text(word.to_owned()), at));
        }
        match self.sum()? {
            Thing::Term(term) => Ok(term),
            Thing::Condition(_, at) => Err(mistake("expected a value, found a condition", at)),
        }
    }

    fn sum(&mut self) -> Parsed<Thing> {
        self.chained(&[("+", Sign::Plus), ("-", Sign::Minus)], Self::product)
    }

    fn product(&mut self) -> Parsed<Thing> {
        self.chained(&[("*", Sign::Times), ("/", Sign::Over), ("%", Sign::Rest)], Self::atom)
    }

    fn chained(&mut self, signs: &[(&str, Sign)], part: fn(&mut Self) -> Parsed<Thing>) -> Parsed<Thing> {
        let mut left = part(self)?;
        loop {
            let Token::Sign(found) = self.lexer.peek()?.0 else { return Ok(left) };
            let Some((_, sign)) = signs.iter().find(|(sign, _)| *sign == found) else { return Ok(left) };
            self.lexer.take()?;
            let (one, other) = (left.term()?, part(self)?.term()?);
            self.part(one.at.start..other.at.end)?;
            left = Thing::Term(types::sum(*sign, one, other)?);
        }
    }

    fn atom(&mut self) -> Parsed<Thing> {
        self.note(Wants::Term);
        let (token, at) = self.lexer.take()?;
        let typed = match token {
            Token::Number(digits) => Typed::literal(types::number(&digits, &at)?, at),
            Token::Text(text) => Typed::literal(Literal::Text(text), at),
            Token::Name(name) => self.field(&name, at)?,
            Token::Sign("-") => {
                let inner = self.deeper(Self::atom)?.term()?;
                types::minus(inner, at.start)?
            }
            Token::Sign("+") => return self.deeper(Self::atom),
            Token::Sign("(") => return self.parenthesis(at),
            Token::Word(word) if is_flag_word(&word) => {
                Typed::literal(Literal::Int(i64::from(word.eq_ignore_ascii_case("true"))), at)
            }
            Token::Word(word) => match self.lexer.peek()?.0 {
                Token::Sign("(") if function_of(&word).is_some() => self.call(&word, at)?,
                Token::Sign("(") if self.fields.find(&word).is_err() => {
                    let mut error = mistake(format!("there is no function {word}"), at);
                    error.expected = super::FUNCTIONS.iter().map(|f| f.name.to_owned()).collect();
                    return Err(error);
                }
                _ => self.field(&word, at)?,
            },
            Token::End => return Err(mistake("the filter ends where a field or a value is expected", at)),
            Token::Sign(sign) => {
                return Err(mistake(format!("expected a field or a value, found {sign}"), at));
            }
        };
        Ok(Thing::Term(typed))
    }

    fn parenthesis(&mut self, open: Range<usize>) -> Parsed<Thing> {
        let mut inner = self.deeper(Self::either)?;
        let (token, at) = self.lexer.take()?;
        if token != Token::Sign(")") {
            let message = format!("expected ) for the parenthesis at {}", open.start + 1);
            let mut error = mistake(message, at);
            error.expected = vec![")".to_owned()];
            return Err(error);
        }
        match &mut inner {
            Thing::Condition(_, range) => *range = open.start..at.end,
            Thing::Term(term) => term.at = open.start..at.end,
        }
        Ok(inner)
    }

    fn field(&self, name: &str, at: Range<usize>) -> Parsed<Typed> {
        match self.fields.find(name) {
            Ok(field) => Ok(Typed { kind: field.kind, term: Term::Field(field), at }),
            Err(near) => {
                let hint = if near.is_empty() {
                    String::new()
                } else {
                    format!("; did you mean {}?", near.join(" or "))
                };
                Err(Mistake { message: format!("there is no field {name}{hint}"), at, expected: near })
            }
        }
    }

    fn call(&mut self, name: &str, at: Range<usize>) -> Parsed<Typed> {
        let function =
            function_of(name).ok_or_else(|| mistake(format!("there is no function {name}"), at.clone()))?;
        self.lexer.take()?;
        let mut args: Vec<Typed> = Vec::new();
        loop {
            args.push(self.deeper(Self::sum)?.term()?);
            match self.lexer.take()? {
                (Token::Sign(","), _) => {}
                (Token::Sign(")"), _) => break,
                (_, at) => {
                    let mut error = mistake("expected a comma or )", at);
                    error.expected = vec![",".to_owned(), ")".to_owned()];
                    return Err(error);
                }
            }
        }
        let at = at.start..self.lexer.at;
        if !function.args.contains(&args.len()) {
            let (least, most) = (function.args.start(), function.args.end());
            let many = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            return Err(mistake(format!("{} takes {many} arguments, not {}", function.name, args.len()), at));
        }
        let first = args.first().map_or(Type::Any, |arg| arg.kind);
        let kind = function.gives.unwrap_or(first);
        Ok(Typed {
            term: Term::Call { function, args: args.into_iter().map(|arg| arg.term).collect() },
            kind,
            at,
        })
    }

    /// A condition of a thing; a term on its own asks whether it is true.
    fn condition(&mut self, thing: Thing) -> Parsed<Node> {
        match thing {
            Thing::Condition(node, _) => Ok(node),
            Thing::Term(term) if term.kind == Type::Text => {
                let name = self.lexer.text.get(term.at.clone()).unwrap_or_default();
                let mut error = mistake(format!("{name} is text; compare it with something"), term.at);
                error.expected = types::operators(Type::Text).iter().map(|o| o.name.to_owned()).collect();
                Err(error)
            }
            Thing::Term(term) => {
                self.part(term.at)?;
                Ok(Node::Compare { op: Op::Ne, left: term.term, right: Term::Literal(Literal::Int(0)) })
            }
        }
    }

    fn deeper<T>(&mut self, parse: fn(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(mistake(format!("nested more than {DEPTH_MAX} deep"), self.lexer.at..self.lexer.at));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn part(&mut self, at: Range<usize>) -> Parsed<()> {
        self.parts += 1;
        if self.parts <= PARTS_MAX {
            return Ok(());
        }
        Err(mistake(format!("more than {PARTS_MAX} conditions; use IN for a list of values"), at))
    }

    fn note(&mut self, wants: Wants) {
        if self.lexer.rest().trim_start().is_empty() && !self.wants.contains(&wants) {
            self.wants.push(wants);
        }
    }
}

impl Thing {
    fn at(&self) -> Range<usize> {
        match self {
            Self::Condition(_, at) => at.clone(),
            Self::Term(term) => term.at.clone(),
        }
    }

    fn term(self) -> Parsed<Typed> {
        match self {
            Self::Term(term) => Ok(term),
            Self::Condition(_, at) => Err(mistake("expected a value, found a condition", at)),
        }
    }
}

fn negate(node: Node, negated: bool) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

fn operator(sign: &str) -> Option<Op> {
    Some(match sign {
        "=" | "==" => Op::Eq,
        "!=" | "<>" => Op::Ne,
        "<" => Op::Lt,
        "<=" => Op::Le,
        ">" => Op::Gt,
        ">=" => Op::Ge,
        _ => return None,
    })
}

fn is_operator(word: &str) -> bool {
    matches!(word, "in" | "between" | "contains" | "startswith" | "endswith" | "like" | "matches" | "is")
}

fn is_null_word(word: &str) -> bool {
    ["null", "none", "nan"].iter().any(|null| word.eq_ignore_ascii_case(null))
}

fn is_flag_word(word: &str) -> bool {
    word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false")
}
