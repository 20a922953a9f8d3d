//! SQL that users write, over `rollouts`, read-only.
//!
//! Three locks stand one behind the other: the connection is opened for reading, an authorizer lets nothing but
//! reading through, and statements that SQLite does not call read-only are refused.

use super::filter::tree::Type;
use super::page::json;
use super::{Mistake, Query, QueryError};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error};
use serde_json::Value;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gets the names of the columns and the values of a row, and says whether to go on.
pub type OnRow<'a> = dyn FnMut(&[String], &[Value]) -> ControlFlow<()> + 'a;

/// Instructions of SQLite's machine between two looks at whether somebody still waits: about a millisecond.
const LOOK_EVERY: i32 = 20_000;
/// A text or a list of this size is a mistake, and would be all of the memory.
const VALUE_BYTES_MAX: i32 = 256 << 20;

impl Query {
    /// Read-only SQL over `rollouts`. `on_row` gets the names first with the first row.
    pub fn sql(&self, sql: &str, on_row: &mut OnRow<'_>) -> Result<Vec<String>, QueryError> {
        self.sql_until(sql, &Arc::default(), on_row)
    }

    /// The same, until `cancelled` is set.
    pub fn sql_until(
        &self,
        sql: &str,
        cancelled: &Arc<AtomicBool>,
        on_row: &mut OnRow<'_>,
    ) -> Result<Vec<String>, QueryError> {
        // A connection of its own: the locks below would be in the way of others.
        let mut connection = self.open()?;
        lock(&mut connection, cancelled)?;
        run(&connection, sql, on_row).map_err(|error| told(&connection, sql, error))
    }
}

fn lock(connection: &mut Connection, cancelled: &Arc<AtomicBool>) -> rusqlite::Result<()> {
    connection.pragma_update(None, "query_only", true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let cancelled = Arc::clone(cancelled);
    connection.progress_handler(LOOK_EVERY, Some(move || cancelled.load(Ordering::Relaxed)))?;
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if is_harmless(function_name) => Authorization::Allow,
        AuthAction::Pragma { pragma_name, pragma_value: _ } if is_asking(pragma_name) => Authorization::Allow,
        _ => Authorization::Deny,
    }))
}

fn is_harmless(function: &str) -> bool {
    !["load_extension", "writefile", "readfile", "edit", "fts3_tokenizer", "zeroblob", "randomblob"]
        .iter()
        .any(|denied| function.eq_ignore_ascii_case(denied))
}

/// Pragmas that tell of the tables; they cannot be used to change anything.
fn is_asking(pragma: &str) -> bool {
    ["table_info", "table_xinfo", "table_list"].iter().any(|known| pragma.eq_ignore_ascii_case(known))
}

fn run(connection: &Connection, sql: &str, on_row: &mut OnRow<'_>) -> rusqlite::Result<Vec<String>> {
    // SQLite would say of a view that it cannot be changed, as if something else could.
    let verb = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    if ["delete", "insert", "update", "replace"].iter().any(|writing| verb.eq_ignore_ascii_case(writing)) {
        return Err(Error::InvalidQuery);
    }
    let mut statement = connection.prepare(sql)?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(Error::InvalidQuery);
    }
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let value = |i: usize| Ok(json(row.get_ref(i)?, Type::Any));
        let values = (0..names.len()).map(value).collect::<rusqlite::Result<Vec<_>>>()?;
        if on_row(&names, &values).is_break() {
            break;
        }
    }
    Ok(names)
}

/// SQLite's message with the place in the text, and the columns there are when one is not known.
fn told(connection: &Connection, sql: &str, error: Error) -> QueryError {
    let only =
        "only SELECT, WITH, VALUES and EXPLAIN are run; the catalog is a summary that cannot be changed";
    let (message, offset) = match error {
        Error::SqlInputError { msg, offset, .. } => (msg, usize::try_from(offset).ok()),
        Error::InvalidQuery => (only.to_owned(), Some(0)),
        Error::MultipleStatement => ("one statement at a time".to_owned(), sql.find(';').map(|at| at + 1)),
        Error::SqliteFailure(failure, message) => match failure.code {
            rusqlite::ErrorCode::OperationInterrupted => return QueryError::Cancelled,
            rusqlite::ErrorCode::AuthorizationForStatementDenied => (only.to_owned(), Some(0)),
            _ => (message.unwrap_or_else(|| failure.to_string()), None),
        },
        other => (other.to_string(), None),
    };
    let message = if message == "not authorized" { only.to_owned() } else { message };
    let mut expected = Vec::new();
    let mut hint = String::new();
    let unknown = message.strip_prefix("no such column: ").map(str::to_owned);
    if let Some(name) = &unknown {
        expected = known_columns(connection);
        let near = super::filter::Fields::default().find(name).err().unwrap_or_default();
        if !near.is_empty() {
            hint = format!("; did you mean {}?", near.join(" or "));
        }
    } else if message.starts_with("no such table") {
        expected = ["rollouts", "all_rows", "bad_rows"].map(str::to_owned).to_vec();
        hint = format!("; there are {}", expected.join(", "));
    }
    let at = match offset {
        Some(offset) => token(sql, offset),
        None => {
            let near =
                message.strip_prefix("near \"").and_then(|rest| rest.split('"').next()).map(str::to_owned);
            let name = unknown.or(near).filter(|name| !name.is_empty());
            name.and_then(|name| sql.rfind(&name).map(|at| at..at + name.len())).unwrap_or(0..0)
        }
    };
    QueryError::Mistake(Mistake { message: format!("{message}{hint}"), at, expected })
}

fn known_columns(connection: &Connection) -> Vec<String> {
    let names = |statement: rusqlite::Statement<'_>| statement.column_names().map(str::to_owned).collect();
    connection.prepare("SELECT * FROM rollouts LIMIT 0").map(names).unwrap_or_default()
}

/// The bytes of the word or sign at an offset.
fn token(sql: &str, offset: usize) -> Range<usize> {
    let rest = sql.get(offset..).unwrap_or_default();
    let word = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
    let len = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    offset.min(sql.len())..(offset + len).min(sql.len())
}
