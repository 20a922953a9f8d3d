//! Some rows of a choice with the fields that somebody wants to see.

use super::choice::field;
use super::filter::tree::{Field, Type};
use super::{Choice, Query, QueryError};
use crate::catalog::RowNo;
use rusqlite::types::{Value as Sqlite, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde_json::Value;
use std::ops::Range;

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Rows that the filter lets through.
    pub total: u64,
    pub columns: Vec<String>,
    pub rows: Vec<(RowNo, Vec<Value>)>,
}

impl Query {
    /// Rows `range` of the choice, with these columns (names of columns, dotted names of extras, `id`, `source_file`).
    pub fn page(&self, choice: &Choice, columns: &[String], range: Range<u64>) -> Result<Page, QueryError> {
        let names = self.fields()?;
        let fields = columns.iter().map(|name| field(&names, name)).collect::<Result<Vec<_>, _>>()?;
        let mut tries = 0;
        loop {
            let chosen = self.choose(choice, &[])?;
            let total = chosen.positions.len();
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(total);
            let wanted = chosen.positions.get(at(range.start)..at(range.end)).unwrap_or_default();
            let wanted: Vec<i64> =
                wanted.iter().filter_map(|at| chosen.table.rows.get(*at as usize).copied()).collect();
            let rows = read(&*self.lend()?, &fields, &wanted)?;
            tries += 1;
            // A row that is gone says that the catalog was made anew in between.
            if rows.len() == wanted.len() || tries == 3 {
                return Ok(Page { total: total as u64, columns: columns.to_vec(), rows });
            }
        }
    }
}

fn read(
    connection: &Connection,
    fields: &[Field],
    rows: &[i64],
) -> rusqlite::Result<Vec<(RowNo, Vec<Value>)>> {
    let mut names = vec!["row".to_owned()];
    let mut params = Vec::new();
    for field in fields {
        let (name, param) = field.sql();
        names.push(name);
        params.extend(param.map(Sqlite::Text));
    }
    let sql = format!("SELECT {} FROM rollouts WHERE row = ?", names.join(", "));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
        params.push(Sqlite::Integer(*row));
        let values = statement
            .query_row(params_from_iter(&params), |found| {
                let value = |(i, field): (usize, &Field)| Ok(json(found.get_ref(i + 1)?, field.kind));
                fields.iter().enumerate().map(value).collect::<rusqlite::Result<Vec<_>>>()
            })
            .optional()?;
        params.pop();
        read.extend(values.map(|values| (RowNo(*row), values)));
    }
    Ok(read)
}

/// A value of SQLite as JSON; flags are true and false, bytes are hexadecimal digits.
pub(super) fn json(value: ValueRef<'_>, kind: Type) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) if kind == Type::Flag => Value::Bool(number != 0),
        ValueRef::Integer(number) => number.into(),
        // JSON has no infinity; a reader is told it in words.
        ValueRef::Real(number) if number.is_infinite() => number.to_string().into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}
