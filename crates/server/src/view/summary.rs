//! Reads single rows of a catalog, the unreadable and the copies too.

use axum::http::StatusCode;
use rollyard_store::catalog::columns::{COLUMNS, Kind};
use rollyard_store::catalog::{RolloutId, RowNo};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use super::answer::exact;
use super::indexing::Mark;
use crate::error::ApiError;

/// Where a rollout stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Source {
    file: String,
    /// From 1.
    line: i64,
    offset: i64,
    pub(super) length: i64,
}

/// All that the catalog says of one row.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) row: RowNo,
    pub(super) id: String,
    pub(super) columns: Map<String, Value>,
    pub(super) extra: Map<String, Value>,
    pub(super) source: Source,
    /// Why it cannot be read.
    pub(super) problem: Option<String>,
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "catalog",
            format!("the catalog cannot be read: {error}"),
        )
    }
}

pub(super) fn mark(connection: &Connection) -> Result<Mark, ApiError> {
    let revision = "SELECT value FROM facts WHERE name = 'revision'";
    let revision =
        connection.query_row(revision, [], |row| row.get::<_, i64>(0)).optional()?.unwrap_or_default();
    let last_row =
        connection.query_row("SELECT max(row) FROM rows", [], |row| row.get::<_, Option<i64>>(0))?;
    Ok(Mark { revision, last_row: last_row.unwrap_or_default() })
}

pub(super) fn summary(connection: &Connection, row: RowNo) -> Result<Option<Summary>, ApiError> {
    let sql = format!(
        "SELECT rows.row, rows.id, sources.url, rows.line, rows.offset, rows.length, extras.extra, problems.problem, {} \
         FROM rows JOIN sources USING (source) LEFT JOIN extras ON extras.row = rows.row \
         LEFT JOIN problems ON problems.row = rows.row WHERE rows.row = ?1",
        COLUMNS.iter().map(|column| column.sql("rows")).collect::<Vec<_>>().join(", ")
    );
    Ok(connection.prepare_cached(&sql)?.query_row([row.0], read_summary).optional()?)
}

fn read_summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    const BEFORE: usize = 8;
    let mut columns = Map::new();
    for (nth, column) in COLUMNS.iter().enumerate() {
        let value = json(row.get_ref(BEFORE + nth)?, column.kind == Kind::Flag);
        columns.insert(column.name.to_owned(), exact(value));
    }
    let extra: Option<String> = row.get(6)?;
    Ok(Summary {
        row: RowNo(row.get(0)?),
        id: hex(row.get_ref(1)?.as_blob().unwrap_or_default()),
        columns,
        extra: extra.and_then(|extra| serde_json::from_str(&extra).ok()).unwrap_or_default(),
        source: Source { file: row.get(2)?, line: row.get(3)?, offset: row.get(4)?, length: row.get(5)? },
        problem: row.get(7)?,
    })
}

/// Everywhere that the same rollout stands.
pub(super) fn sources_of(connection: &Connection, id: &str) -> Result<Vec<Source>, ApiError> {
    let sql = "SELECT sources.url, rows.line, rows.offset, rows.length FROM rows JOIN sources USING (source) \
               WHERE rows.id = ?1 ORDER BY rows.row LIMIT 1000";
    let Some(id) = parse_id(id) else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(Source { file: row.get(0)?, line: row.get(1)?, offset: row.get(2)?, length: row.get(3)? })
    };
    let sources: rusqlite::Result<Vec<Source>> = statement.query_map([id.0.to_be_bytes()], read)?.collect();
    Ok(sources?)
}

/// Ids that begin like this, at most two.
pub(super) fn ids_like(connection: &Connection, prefix: &str) -> Result<Vec<RolloutId>, ApiError> {
    let end = |fill: char| parse_id(&format!("{prefix}{}", fill.to_string().repeat(32 - prefix.len())));
    let (Some(first), Some(last)) = (end('0'), end('f')) else { return Ok(Vec::new()) };
    let mut statement =
        connection.prepare_cached("SELECT DISTINCT id FROM rows WHERE id BETWEEN ?1 AND ?2 LIMIT 2")?;
    let ids = statement
        .query_map([first.0.to_be_bytes(), last.0.to_be_bytes()], |row| row.get::<_, [u8; 16]>(0))?;
    let ids: rusqlite::Result<Vec<_>> =
        ids.map(|id| id.map(|id| RolloutId(u128::from_be_bytes(id)))).collect();
    Ok(ids?)
}

/// 32 hexadecimal digits.
pub(super) fn parse_id(text: &str) -> Option<RolloutId> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(RolloutId)
}

pub(super) fn json(value: ValueRef<'_>, is_flag: bool) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) if is_flag => Value::Bool(number != 0),
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => hex(bytes).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Summary {
    /// Of a column, an extra, or what else a row can be asked for.
    pub(super) fn value(&self, column: &str) -> Value {
        match column {
            "id" => self.id.clone().into(),
            "source_file" => self.source.file.clone().into(),
            _ => self.columns.get(column).or_else(|| self.extra.get(column)).cloned().unwrap_or_default(),
        }
    }
}
