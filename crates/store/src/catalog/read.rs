//! Bodies, and connections that can ask for them.
//!
//! A body is read from its file by range. Files that were opened stay open, as does the connection that knows where
//! rows lie, so that reading one row after the other costs a read each.

use super::columns::COLUMNS;
use super::sources::Format;
use super::{Catalog, CatalogError, RolloutId, RowNo, home};
use crate::places::{PlaceError, ReadAt};
use crate::records::{Body, Channel, table};
use bytes::Bytes;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

const OPEN_FILES_MAX: usize = 64;
/// Of a Parquet file, at a time.
const BATCH_ROWS: u64 = 64;
const MMAP_BYTES: i64 = 1 << 30;

/// What the clones of a catalog have together.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    connections: Mutex<Vec<Connection>>,
    files: Mutex<HashMap<String, Arc<dyn ReadAt>>>,
    batch: Mutex<Option<Batch>>,
}

/// Rows of a Parquet file that were read last: whoever reads one reads the next.
#[derive(Debug)]
struct Batch {
    key: String,
    from: u64,
    rows: Vec<Bytes>,
}

impl Shared {
    /// The catalog is another file now.
    pub(crate) fn forget(&self) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Where a row lies.
#[derive(Debug)]
struct Spot {
    url: String,
    format: Format,
    stamp: String,
    line: u64,
    offset: u64,
    length: u64,
}

pub(super) fn body(catalog: &Catalog, row: RowNo) -> Result<Body, CatalogError> {
    let spot =
        with_connection(catalog, |connection| spot(connection, row))?.ok_or(CatalogError::NoRow(row.0))?;
    // A file that was replaced has another stamp, and is opened again.
    let key = format!("{} {}", spot.stamp, spot.url);
    let file = open(catalog, &key, &spot.url)?;
    let raw = match spot.format {
        Format::Parquet => {
            let moved = |why| CatalogError::Moved { row: row.0, why, url: spot.url.clone() };
            row_of_parquet(&catalog.shared, key, &file, spot.offset).map_err(moved)?
        }
        _ => file.read_at(spot.offset..spot.offset + spot.length)?,
    };
    if raw.len() as u64 != spot.length {
        let why = format!("{} of {} bytes are there", raw.len(), spot.length);
        return Err(CatalogError::Moved { row: row.0, why, url: spot.url });
    }
    Ok(Body { raw, url: spot.url, line: spot.line, offset: spot.offset })
}

fn row_of_parquet(shared: &Shared, key: String, file: &Arc<dyn ReadAt>, row: u64) -> Result<Bytes, String> {
    let mut held = shared.batch.lock().unwrap_or_else(PoisonError::into_inner);
    let find = |batch: &Batch| {
        let at = row.checked_sub(batch.from).filter(|_| batch.key == key)?;
        batch.rows.get(at as usize).cloned()
    };
    if let Some(found) = held.as_ref().and_then(find) {
        return Ok(found);
    }
    let from = row / BATCH_ROWS * BATCH_ROWS;
    let mut rows = Vec::new();
    table::rows(file, from..from + BATCH_ROWS, |mut batch| {
        rows.append(&mut batch);
        ControlFlow::Continue(())
    })?;
    let batch = Batch { key: key.clone(), from, rows };
    let found = find(&batch).ok_or_else(|| format!("the file has no row {row}"));
    *held = Some(batch);
    found
}

pub(super) fn find(catalog: &Catalog, id: RolloutId) -> Result<Option<RowNo>, CatalogError> {
    with_connection(catalog, |connection| {
        let mut select = connection.prepare_cached("SELECT min(row) FROM rows WHERE id = ?1")?;
        select.query_row([id.0.to_be_bytes()], |row| row.get::<_, Option<i64>>(0))
    })
    .map(|row| row.map(RowNo))
}

fn spot(connection: &Connection, row: RowNo) -> rusqlite::Result<Option<Spot>> {
    let mut select = connection.prepare_cached(
        "SELECT s.url, s.format, s.stamp, r.line, r.offset, r.length
         FROM rows r JOIN sources s ON s.source = r.source WHERE r.row = ?1",
    )?;
    let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|number| number as u64);
    select
        .query_row(params![row.0], |row| {
            Ok(Spot {
                url: row.get(0)?,
                format: Format::named(&row.get::<_, String>(1)?),
                stamp: row.get(2)?,
                line: number(row, 3)?,
                offset: number(row, 4)?,
                length: number(row, 5)?,
            })
        })
        .optional()
}

fn open(catalog: &Catalog, key: &str, url: &str) -> Result<Arc<dyn ReadAt>, PlaceError> {
    // While a file is being indexed it has no stamp, and nothing tells it from the one before.
    if key.starts_with(' ') {
        return catalog.places.open(url);
    }
    let mut files = catalog.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = files.get(key) {
        return Ok(Arc::clone(file));
    }
    let file = catalog.places.open(url)?;
    if files.len() >= OPEN_FILES_MAX {
        files.clear();
    }
    files.insert(key.to_owned(), Arc::clone(&file));
    Ok(file)
}

/// With one of the catalog's own connections. A catalog that was made anew is another file under the same name.
fn with_connection<T>(
    catalog: &Catalog,
    ask: impl Fn(&Connection) -> rusqlite::Result<T>,
) -> Result<T, CatalogError> {
    let pool = || catalog.shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
    let pooled = pool().pop();
    let connection = match pooled {
        Some(connection) => connection,
        None => home::read_only(&catalog.path).map_err(catalog.sqlite())?,
    };
    let answer = ask(&connection).map_err(catalog.sqlite())?;
    pool().push(connection);
    Ok(answer)
}

pub(super) fn connect(catalog: &Catalog) -> Result<Connection, CatalogError> {
    let connect = || -> rusqlite::Result<Connection> {
        let connection = home::read_only(&catalog.path)?;
        connection.pragma_update(None, "mmap_size", MMAP_BYTES)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        add_functions(&connection, catalog)?;
        connection.execute_batch(&views())?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    connect().map_err(catalog.sqlite())
}

/// Everything that takes a look elsewhere is an expression of its own, which SQLite only works out when it is asked
/// for: a view over one table is folded into the query.
fn views() -> String {
    let columns = columns();
    let shared = format!(
        "SELECT r.row AS row, {columns}, lower(hex(r.id)) AS id,
           (SELECT s.url FROM sources s WHERE s.source = r.source) AS source_file, r.line AS line,
           (SELECT e.extra FROM extras e WHERE e.row = r.row) AS extra,
           body(r.row) AS body, prompt(r.row) AS prompt, response(r.row) AS response"
    );
    format!(
        "CREATE TEMP VIEW rollouts AS {shared} FROM main.rows r WHERE r.bad = 0 AND r.copy = 0;
         CREATE TEMP VIEW all_rows AS {shared}, r.bad AS bad, r.copy AS copy,
           (SELECT p.problem FROM problems p WHERE p.row = r.row) AS problem FROM main.rows r;
         CREATE TEMP VIEW bad_rows AS SELECT r.row AS row, s.url AS source_file, r.line AS line, r.offset AS offset,
           r.length AS length, p.problem AS problem
           FROM main.rows r JOIN main.sources s USING (source) LEFT JOIN main.problems p USING (row) WHERE r.bad = 1;"
    )
}

/// Every column of a row `r`, under its name.
pub(crate) fn columns() -> String {
    let columns = COLUMNS.iter().map(|column| format!("{} AS {}", column.sql("r"), column.name));
    columns.collect::<Vec<_>>().join(", ")
}

/// One side of the conversation.
type Side = fn(&Body) -> Option<String>;

fn add_functions(connection: &Connection, catalog: &Catalog) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8;
    let read = |catalog: &Catalog, row: i64| {
        body(catalog, RowNo(row)).map_err(|error| rusqlite::Error::UserFunctionError(Box::new(error)))
    };
    let held = catalog.clone();
    connection.create_scalar_function(c"body", 1, flags, move |context| {
        let body = read(&held, context.get(0)?)?;
        Ok(String::from_utf8_lossy(&body.raw).into_owned())
    })?;
    let sides: [(&CStr, Side); 2] = [(c"prompt", prompt_of), (c"response", response_of)];
    for (name, side) in sides {
        let held = catalog.clone();
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(side(&read(&held, context.get(0)?)?))
        })?;
    }
    let held = catalog.clone();
    connection.create_scalar_function(c"message", 2, flags, move |context| {
        let body = read(&held, context.get(0)?)?;
        let nth: i64 = context.get(1)?;
        let pieces = body.pieces().unwrap_or_default();
        let text: Vec<_> = pieces
            .iter()
            .filter(|piece| piece.message as i64 == nth)
            .map(|piece| piece.text.as_str())
            .collect();
        Ok((!text.is_empty()).then(|| text.concat()))
    })
}

/// What was there before the first answer.
fn prompt_of(body: &Body) -> Option<String> {
    let pieces = body.pieces().ok()?;
    let is_said = |channel| matches!(channel, Channel::Assistant | Channel::Reasoning | Channel::ToolCall);
    let asked: Vec<_> =
        pieces.iter().take_while(|piece| !is_said(piece.channel)).map(|piece| piece.text.as_str()).collect();
    Some(asked.join("\n"))
}

/// Everything from the first answer on that the model said.
fn response_of(body: &Body) -> Option<String> {
    let pieces = body.pieces().ok()?;
    let is_said = |channel| matches!(channel, Channel::Assistant | Channel::Reasoning | Channel::ToolCall);
    let said: Vec<_> =
        pieces.iter().filter(|piece| is_said(piece.channel)).map(|piece| piece.text.as_str()).collect();
    Some(said.join("\n"))
}
