//! A filter, bound to the columns it reads.
//!
//! Conditions on texts are decided once for every different text; what is left for each row is to look up a
//! verdict. What no column can answer (functions, sums of extras) has no plan, and SQLite is asked.

use super::column::{Column, Seen};
use super::cores;
use super::mask::{FALSE, NULL, TRUE};
use super::table::Table;
use crate::query::filter::tree::{How, Literal, Node, Op, Sign, Source, Term, Type};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Plan {
    All(Vec<Plan>),
    Any(Vec<Plan>),
    Not(Box<Plan>),
    Always(u8),
    /// A verdict for every code of a column of texts.
    Verdicts {
        column: Arc<Column>,
        by_code: Vec<u8>,
    },
    Compare {
        op: Op,
        left: Number,
        right: Number,
    },
    OneOf {
        number: Number,
        ints: Vec<i64>,
        reals: Vec<f64>,
    },
    IsNull(Number),
    Texts {
        op: Op,
        left: Arc<Column>,
        right: Arc<Column>,
    },
}

#[derive(Debug)]
pub(crate) enum Number {
    Column(Arc<Column>),
    Int(i64),
    Real(f64),
    Sum { sign: Sign, left: Box<Number>, right: Box<Number> },
}

/// The fields that a filter reads.
pub(crate) fn sources(node: &Node) -> Vec<Source> {
    fn of_term(term: &Term, found: &mut Vec<Source>) {
        match term {
            Term::Field(field) => found.push(field.source.clone()),
            Term::Literal(_) => {}
            Term::Call { args, .. } => args.iter().for_each(|arg| of_term(arg, found)),
            Term::Sum { left, right, .. } => {
                of_term(left, found);
                of_term(right, found);
            }
        }
    }
    fn of_node(node: &Node, found: &mut Vec<Source>) {
        match node {
            Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|part| of_node(part, found)),
            Node::Not(inner) => of_node(inner, found),
            Node::Compare { left, right, .. } => {
                of_term(left, found);
                of_term(right, found);
            }
            Node::Text { term, .. } | Node::OneOf { term, .. } | Node::IsNull(term) => of_term(term, found),
        }
    }
    let mut found = Vec::new();
    of_node(node, &mut found);
    found
}

/// Whether a plan can be made at all, before any column is loaded for it.
pub(crate) fn is_possible(node: &Node) -> bool {
    fn number(term: &Term) -> bool {
        match term {
            Term::Field(field) => field.kind.is_number(),
            Term::Literal(literal) => !matches!(literal, Literal::Text(_)),
            Term::Call { .. } => false,
            Term::Sum { left, right, .. } => number(left) && number(right),
        }
    }
    let word = |term: &Term| matches!(term, Term::Field(field) if !field.kind.is_number() && field.source != Source::Extras);
    let text = |term: &Term| matches!(term, Term::Field(field) if field.kind == Type::Text && field.source != Source::Extras);
    let literal = |term: &Term| matches!(term, Term::Literal(_));
    match node {
        Node::All(parts) | Node::Any(parts) => parts.iter().all(is_possible),
        Node::Not(inner) => is_possible(inner),
        Node::Compare { left, right, .. } => {
            (number(left) && number(right))
                || (word(left) && literal(right))
                || (literal(left) && word(right))
                || (text(left) && text(right))
        }
        Node::Text { term, .. } => word(term),
        Node::OneOf { term, .. } | Node::IsNull(term) => word(term) || number(term),
    }
}

/// `None` where SQLite must be asked. The columns must have been loaded.
pub(crate) fn plan(node: &Node, table: &Table) -> Option<Plan> {
    let all = |parts: &[Node]| parts.iter().map(|part| plan(part, table)).collect::<Option<Vec<_>>>();
    Some(match node {
        Node::All(parts) => Plan::All(all(parts)?),
        Node::Any(parts) => Plan::Any(all(parts)?),
        Node::Not(inner) => Plan::Not(Box::new(plan(inner, table)?)),
        Node::Text { how, term } => text_verdicts(words(term, table)?, how),
        Node::IsNull(term) => match words(term, table) {
            Some(column) => verdicts(column, TRUE, |_| FALSE),
            None => Plan::IsNull(number(term, table)?),
        },
        Node::OneOf { term, values } => one_of(term, values, table)?,
        Node::Compare { op, left, right } => compare(*op, left, right, table)?,
    })
}

fn compare(op: Op, left: &Term, right: &Term, table: &Table) -> Option<Plan> {
    match (left, right) {
        (Term::Literal(one), Term::Literal(other)) => {
            Some(Plan::Always(verdict(op.holds(seen(one).order(seen(other))))))
        }
        (Term::Literal(literal), term) if words(term, table).is_some() => {
            compare_words(op.turned(), words(term, table)?, literal)
        }
        (term, Term::Literal(literal)) if words(term, table).is_some() => {
            compare_words(op, words(term, table)?, literal)
        }
        (Term::Field(_), Term::Field(_)) if words(left, table).is_some() && words(right, table).is_some() => {
            let (left, right) = (words(left, table)?, words(right, table)?);
            let texts = matches!((&*left, &*right), (Column::Text(_), Column::Text(_)));
            texts.then_some(Plan::Texts { op, left, right })
        }
        _ => Some(Plan::Compare { op, left: number(left, table)?, right: number(right, table)? }),
    }
}

fn compare_words(op: Op, column: Arc<Column>, literal: &Literal) -> Option<Plan> {
    let wanted = seen(literal);
    Some(verdicts(column, NULL, |value| verdict(op.holds(value.order(wanted)))))
}

fn one_of(term: &Term, values: &[Literal], table: &Table) -> Option<Plan> {
    if let Some(column) = words(term, table) {
        let mut wanted: Vec<Seen<'_>> = values.iter().map(seen).collect();
        wanted.sort_by(|one, other| one.order(*other));
        let found = |value: Seen<'_>| wanted.binary_search_by(|other| other.order(value)).is_ok();
        return Some(verdicts(column, NULL, |value| verdict(found(value))));
    }
    let (mut ints, mut reals) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            Literal::Int(number) => ints.push(*number),
            Literal::Real(number) => reals.push(*number),
            Literal::Text(_) => return None,
        }
    }
    ints.sort_unstable();
    reals.sort_unstable_by(f64::total_cmp);
    Some(Plan::OneOf { number: number(term, table)?, ints, reals })
}

fn text_verdicts(column: Arc<Column>, how: &How) -> Plan {
    // An operator of text on a number is unknown, as in the functions that SQLite is given.
    verdicts(column, NULL, |value| match value {
        Seen::Text(text) => verdict(how.holds(text)),
        _ => NULL,
    })
}

fn verdicts(column: Arc<Column>, of_null: u8, of: impl Fn(Seen<'_>) -> u8 + Sync) -> Plan {
    let found = match &*column {
        Column::Text(words) => cores::map(words.len(), 4096, |i| {
            let code = u32::try_from(i + 1).unwrap_or(u32::MAX);
            words.word(code).map_or(NULL, |text| of(Seen::Text(text)))
        }),
        Column::Mixed(mixed) => mixed.values.iter().map(|value| of(value.seen())).collect(),
        _ => Vec::new(),
    };
    let by_code = std::iter::once(of_null).chain(found).collect();
    Plan::Verdicts { column, by_code }
}

fn words(term: &Term, table: &Table) -> Option<Arc<Column>> {
    let Term::Field(field) = term else { return None };
    let column = table.column(&field.source)?;
    matches!(**column, Column::Text(_) | Column::Mixed(_)).then(|| Arc::clone(column))
}

fn number(term: &Term, table: &Table) -> Option<Number> {
    Some(match term {
        Term::Literal(Literal::Int(number)) => Number::Int(*number),
        Term::Literal(Literal::Real(number)) => Number::Real(*number),
        Term::Literal(Literal::Text(_)) | Term::Call { .. } => return None,
        Term::Field(field) => {
            let column = table.column(&field.source)?;
            if matches!(**column, Column::Text(_) | Column::Mixed(_)) {
                return None;
            }
            Number::Column(Arc::clone(column))
        }
        Term::Sum { sign, left, right } => Number::Sum {
            sign: *sign,
            left: Box::new(number(left, table)?),
            right: Box::new(number(right, table)?),
        },
    })
}

fn seen(literal: &Literal) -> Seen<'_> {
    match literal {
        Literal::Int(number) => Seen::Int(*number),
        Literal::Real(number) => Seen::Real(*number),
        Literal::Text(text) => Seen::Text(text),
    }
}

fn verdict(holds: bool) -> u8 {
    if holds { TRUE } else { FALSE }
}

/// Whether a number is among the sorted ones.
pub(crate) fn is_one_of(ints: &[i64], reals: &[f64], number: Result<i64, f64>) -> bool {
    use super::column::int_to_real;
    match number {
        Ok(int) => {
            ints.binary_search(&int).is_ok()
                || reals.binary_search_by(|real| int_to_real(int, *real).reverse()).is_ok()
        }
        Err(real) => {
            ints.binary_search_by(|int| int_to_real(*int, real)).is_ok()
                || reals.binary_search_by(|other| other.partial_cmp(&real).unwrap_or(Ordering::Less)).is_ok()
        }
    }
}
