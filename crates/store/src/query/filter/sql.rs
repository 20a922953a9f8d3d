//! A filter as SQL. Whatever the user typed becomes a bound parameter; only names from our own lists are text.

use super::tree::{How, Literal, Node, Sign, Term, Type};
use rusqlite::types::Value;

/// A condition for `where`, and its parameters in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sql {
    pub text: String,
    pub params: Vec<Value>,
}

impl Sql {
    /// Everything, for no filter.
    pub(crate) fn of(filter: Option<&Node>) -> Self {
        let mut sql = Self { text: String::new(), params: Vec::new() };
        match filter {
            Some(node) => sql.node(node),
            None => sql.text.push('1'),
        }
        sql
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::All(parts) => self.list(parts, " AND "),
            Node::Any(parts) => self.list(parts, " OR "),
            Node::Not(inner) => {
                self.text.push_str("NOT (");
                self.node(inner);
                self.text.push(')');
            }
            Node::Compare { op, left, right } => {
                let plain = is_any(left) || is_any(right);
                self.side(left, plain);
                self.text.extend([" ", op.sql(), " "]);
                self.side(right, plain);
            }
            Node::Text { how, term } => {
                let (name, pattern) = match how {
                    How::Contains(text) => ("contains", text.as_str()),
                    How::Starts(text) => ("startswith", text.as_str()),
                    How::Ends(text) => ("endswith", text.as_str()),
                    How::Like(text) => ("fits", text.as_str()),
                    How::Matches(regex) => ("matches", regex.as_str()),
                };
                self.text.extend([name, "("]);
                self.term(term);
                self.text.push_str(", ");
                self.bind(Value::Text(pattern.to_owned()));
                self.text.push(')');
            }
            Node::OneOf { term, values } => {
                self.side(term, is_any(term));
                self.text.push_str(" IN (");
                for (i, value) in values.iter().enumerate() {
                    self.text.push_str(if i == 0 { "" } else { ", " });
                    self.literal(value);
                }
                self.text.push(')');
            }
            Node::IsNull(term) => {
                self.term(term);
                self.text.push_str(" IS NULL");
            }
        }
    }

    fn list(&mut self, parts: &[Node], joint: &str) {
        self.text.push('(');
        for (i, part) in parts.iter().enumerate() {
            self.text.push_str(if i == 0 { "" } else { joint });
            self.node(part);
        }
        self.text.push(')');
    }

    /// A plus takes a column's affinity away: beside an extra, which may be either, SQLite would turn texts into
    /// numbers for it.
    fn side(&mut self, term: &Term, plain: bool) {
        if plain {
            self.text.push('+');
        }
        self.term(term);
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Field(field) => {
                let (text, param) = field.sql();
                self.text.push_str(&text);
                self.params.extend(param.map(Value::Text));
            }
            Term::Literal(literal) => self.literal(literal),
            Term::Call { function, args } => {
                self.text.extend([function.name, "("]);
                for (i, arg) in args.iter().enumerate() {
                    self.text.push_str(if i == 0 { "" } else { ", " });
                    self.term(arg);
                }
                self.text.push(')');
            }
            Term::Sum { sign, left, right } => {
                let (sign, kind) = match sign {
                    Sign::Plus => (" + ", "REAL"),
                    Sign::Minus => (" - ", "REAL"),
                    Sign::Times => (" * ", "REAL"),
                    Sign::Over => (" / ", "REAL"),
                    Sign::Rest => (" % ", "INTEGER"),
                };
                self.text.push('(');
                self.cast(left, kind);
                self.text.push_str(sign);
                self.cast(right, kind);
                self.text.push(')');
            }
        }
    }

    fn cast(&mut self, term: &Term, kind: &str) {
        self.text.push_str("CAST(");
        self.term(term);
        self.text.extend([" AS ", kind, ")"]);
    }

    fn literal(&mut self, literal: &Literal) {
        self.bind(match literal {
            Literal::Int(number) => Value::Integer(*number),
            Literal::Real(number) => Value::Real(*number),
            Literal::Text(text) => Value::Text(text.clone()),
        });
    }

    fn bind(&mut self, value: Value) {
        self.text.push('?');
        self.params.push(value);
    }
}

fn is_any(term: &Term) -> bool {
    match term {
        Term::Field(field) => field.kind == Type::Any,
        Term::Call { .. } => true,
        _ => false,
    }
}
