//! What a filter can name: the columns of the catalog, the extras it has seen, `id` and `source_file`.

use super::tree::{Field, Function, Source, Type};
use crate::catalog::columns::{COLUMNS, Column, Kind};
use std::collections::BTreeSet;

/// The names that are known. Dotted names are extras even if nobody has seen them yet.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    extras: BTreeSet<String>,
}

/// A name and what it is, for completion and documents.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub name: &'a str,
    pub kind: Type,
    pub about: &'a str,
}

const fn function(
    name: &'static str,
    args: std::ops::RangeInclusive<usize>,
    gives: Option<Type>,
    about: &'static str,
) -> Function {
    Function { name, args, gives, about }
}

/// Those that neither change anything nor take longer than their arguments are long.
pub const FUNCTIONS: &[Function] = &[
    function("abs", 1..=1, None, "without its sign"),
    function("coalesce", 2..=8, None, "the first that is not NULL"),
    function("ifnull", 2..=2, None, "the second where the first is NULL"),
    function("instr", 2..=2, Some(Type::Int), "where a text begins in another, from 1; 0 for nowhere"),
    function("json_extract", 2..=2, Some(Type::Any), "a part of a JSON text"),
    function("length", 1..=1, Some(Type::Int), "characters of a text"),
    function("lower", 1..=1, Some(Type::Text), "in small letters"),
    function("max", 2..=8, None, "the greatest of several"),
    function("min", 2..=8, None, "the least of several"),
    function("nullif", 2..=2, None, "NULL where both are the same"),
    function("replace", 3..=3, Some(Type::Text), "with every second replaced by the third"),
    function("round", 1..=2, Some(Type::Real), "to that many digits after the point"),
    function("sign", 1..=1, Some(Type::Int), "-1, 0 or 1"),
    function("substr", 2..=3, Some(Type::Text), "from a character on, from 1, and how many"),
    function("trim", 1..=1, Some(Type::Text), "without spaces around it"),
    function("typeof", 1..=1, Some(Type::Text), "null, integer, real or text"),
    function("upper", 1..=1, Some(Type::Text), "in capital letters"),
];

const OTHERS: [Named<'static>; 4] = [
    Named { name: "id", kind: Type::Text, about: "named by its content, 32 digits" },
    Named { name: "source_file", kind: Type::Text, about: "file it lies in" },
    Named { name: "line", kind: Type::Int, about: "line of that file, from 1" },
    Named { name: "extra", kind: Type::Text, about: "every other scalar, as JSON" },
];

impl Fields {
    pub fn new(extras: impl IntoIterator<Item = String>) -> Self {
        Self { extras: extras.into_iter().collect() }
    }

    /// The field of a name, or the names that come near.
    pub(crate) fn find(&self, name: &str) -> Result<Field, Vec<String>> {
        let plain = name.strip_prefix("attributes.").unwrap_or(name);
        if let Some(column) = COLUMNS.iter().find(|column| column.name.eq_ignore_ascii_case(plain)) {
            return Ok(Field { source: Source::Column(column.name), kind: kind_of(column) });
        }
        let source = match plain.to_ascii_lowercase().as_str() {
            "id" => Source::Id,
            "source_file" => Source::File,
            "line" => return Ok(Field { source: Source::Column("line"), kind: Type::Int }),
            "extra" => Source::Extras,
            _ if self.extras.contains(plain) || name.contains('.') => {
                return Ok(Field { source: Source::Extra(plain.to_owned()), kind: Type::Any });
            }
            _ => return Err(self.nearest(plain)),
        };
        Ok(Field { source, kind: Type::Text })
    }

    pub fn named(&self) -> impl Iterator<Item = Named<'_>> {
        let columns = COLUMNS.iter().map(|c| Named { name: c.name, kind: kind_of(c), about: c.about });
        let extras =
            self.extras.iter().map(|name| Named { name, kind: Type::Any, about: "an extra attribute" });
        columns.chain(OTHERS).chain(extras)
    }

    pub fn extras(&self) -> impl Iterator<Item = &String> {
        self.extras.iter()
    }

    fn nearest(&self, name: &str) -> Vec<String> {
        let wanted = name.to_lowercase();
        let mut near: Vec<(usize, &str)> = self
            .named()
            .map(|field| {
                let other = field.name.to_lowercase();
                let part = wanted.len() > 2 && (other.contains(&wanted) || wanted.contains(&other));
                (if part { 1 } else { distance(&wanted, &other) }, field.name)
            })
            .filter(|(far, other)| *far <= 1 + other.len().min(wanted.len()) / 3)
            .collect();
        near.sort_unstable();
        near.into_iter().take(4).map(|(_, other)| other.to_owned()).collect()
    }
}

pub(crate) fn function_of(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

fn kind_of(column: &Column) -> Type {
    match column.kind {
        Kind::Integer => Type::Int,
        Kind::Real => Type::Real,
        Kind::Text => Type::Text,
        Kind::Flag => Type::Flag,
        Kind::Time => Type::Time,
    }
}

/// Letters to change, add or leave out, to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    // A name of kilobytes is nobody's misspelling.
    if one.len().abs_diff(other.len()) > 8 {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut now = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let changed = at(&before, j) + usize::from(a != *b);
            now.push(changed.min(at(&before, j + 1) + 1).min(at(&now, j) + 1));
        }
        before = now;
    }
    before.last().copied().unwrap_or(usize::MAX)
}
