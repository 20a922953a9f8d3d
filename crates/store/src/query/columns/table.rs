//! The rows of a catalog and the columns that somebody has asked for so far.
//!
//! A column costs one pass over the catalog, once. When rows are added, they are appended to what is there; when
//! the catalog's revision says that older rows changed, everything is forgotten. Columns of a group are made here from
//! those of its rows, because every row that comes may change them in rows that were there before.

use super::column::{Column, Mixed};
use super::of_group;
use super::words::Words;
use crate::catalog::columns::{COLUMNS, Kind};
use crate::query::filter::tree::Source;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params_from_iter};
use std::collections::HashMap;
use std::sync::Arc;

/// A state of the catalog. Columns are shared with the states before and after it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Grows with every change, so that results can be kept by it.
    pub(crate) generation: u64,
    revision: Option<i64>,
    /// The greatest row number looked at, of a bad row or a copy too.
    last: i64,
    /// The numbers of the rows, ascending.
    pub(crate) rows: Arc<Vec<i64>>,
    columns: HashMap<Source, Option<Arc<Column>>>,
}

/// Where the bytes of a row lie: columns that no filter can name.
pub(crate) const PLACE: [Source; 3] =
    [Source::Column("source"), Source::Column("offset"), Source::Column("length")];

impl Table {
    /// Nothing, newer than a state that was lost.
    pub(crate) fn after(generation: u64) -> Self {
        Self { generation: generation + 1, ..Self::default() }
    }

    /// The column, if it was loaded and fits into memory as one.
    pub(crate) fn column(&self, source: &Source) -> Option<&Arc<Column>> {
        self.columns.get(source)?.as_ref()
    }

    pub(crate) fn has(&self, source: &Source) -> bool {
        self.columns.contains_key(source)
    }

    /// Takes in what the catalog has got since, and loads these columns. True if anything is new.
    pub(crate) fn load(&mut self, connection: &Connection, wanted: &[Source]) -> rusqlite::Result<bool> {
        // One transaction, so that all columns end at the same row.
        let now = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
        let is_of_group = |source: &&Source| of_group::is_one(source);
        let mut of_groups: Vec<Source> = wanted.iter().filter(is_of_group).cloned().collect();
        let kept: HashMap<Source, Option<Arc<Column>>> =
            self.columns.extract_if(|source, _| of_group::is_one(source)).collect();
        of_groups.extend(kept.keys().cloned());
        let mut plain: Vec<Source> = wanted.iter().filter(|source| !is_of_group(source)).cloned().collect();
        if !of_groups.is_empty() {
            plain.extend(of_group::READ);
        }
        let changed = self.load_plain(&now, &plain)?;
        if !changed && of_groups.iter().all(|source| kept.contains_key(source)) {
            self.columns.extend(kept);
            return Ok(false);
        }
        for (source, column) in of_group::columns(self, &of_groups) {
            self.columns.insert(source, column.map(Arc::new));
        }
        Ok(true)
    }

    fn load_plain(&mut self, now: &Connection, wanted: &[Source]) -> rusqlite::Result<bool> {
        let revision: Option<i64> = now
            .query_row("SELECT value FROM facts WHERE name = 'revision'", [], |row| row.get(0))
            .optional()?;
        let last: i64 = now.query_row("SELECT coalesce(max(row), 0) FROM rows", [], |row| row.get(0))?;
        let mut changed = false;
        if self.generation == 0 || self.revision != revision || last < self.last {
            let before: Vec<Source> = self.columns.keys().cloned().collect();
            *self = Self { generation: self.generation + 1, revision, ..Self::default() };
            // What was asked for will be asked for again.
            let mut again: Vec<Source> = before.into_iter().chain(wanted.iter().cloned()).collect();
            again.dedup();
            self.columns.extend(again.into_iter().map(|source| (source.clone(), Some(empty(&source)))));
            changed = true;
        }
        if last > self.last {
            self.append(now, last)?;
            self.generation += u64::from(!changed);
            changed = true;
        }
        let mut missing: Vec<Source> = wanted.iter().filter(|source| !self.has(source)).cloned().collect();
        missing.dedup();
        if !missing.is_empty() {
            let columns = missing.iter().map(empty).collect();
            let loaded = scan(now, &missing, columns, i64::MIN, self.last, None)?;
            self.columns.extend(missing.into_iter().zip(loaded));
            changed = true;
        }
        Ok(changed)
    }

    fn append(&mut self, now: &Connection, last: i64) -> rusqlite::Result<()> {
        let (sources, columns): (Vec<Source>, Vec<Arc<Column>>) =
            self.columns.drain().filter_map(|(source, column)| Some((source, column?))).unzip();
        let rows = Arc::make_mut(&mut self.rows);
        let appended = scan(now, &sources, columns, self.last, last, Some(rows))?;
        self.columns.extend(sources.into_iter().zip(appended));
        self.last = last;
        Ok(())
    }
}

fn empty(source: &Source) -> Arc<Column> {
    let kind = match source {
        Source::Column(name) => COLUMNS.iter().find(|column| column.name == *name).map(|column| column.kind),
        Source::Extra(_) => return Arc::new(Column::Mixed(Mixed::default())),
        _ => Some(Kind::Text),
    };
    Arc::new(match kind {
        Some(Kind::Real | Kind::Time) => Column::Real(Vec::new()),
        Some(Kind::Text) => Column::Text(Words::default()),
        _ => Column::Tiny(Vec::new()),
    })
}

/// Appends the rows in `after..=last` to the columns; `None` for one that could not take them.
fn scan(
    connection: &Connection,
    sources: &[Source],
    columns: Vec<Arc<Column>>,
    after: i64,
    last: i64,
    mut rows: Option<&mut Vec<i64>>,
) -> rusqlite::Result<Vec<Option<Arc<Column>>>> {
    let mut names = vec!["row".to_owned()];
    let mut params: Vec<Value> = Vec::new();
    for source in sources {
        let (name, param) = expression(source);
        names.push(name);
        params.extend(param.map(Value::Text));
    }
    params.extend([Value::Integer(after), Value::Integer(last)]);
    let sql = format!(
        "SELECT {} FROM rows WHERE bad = 0 AND copy = 0 AND row > ? AND row <= ? ORDER BY row",
        names.join(", ")
    );
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query(params_from_iter(params))?;
    // Whoever still reads the older state keeps it; the clone is ours.
    let mut columns: Vec<Option<Column>> =
        columns.into_iter().map(|c| Some(Arc::unwrap_or_clone(c))).collect();
    while let Some(row) = found.next()? {
        if let Some(rows) = rows.as_deref_mut() {
            rows.push(row.get(0)?);
        }
        for (i, slot) in columns.iter_mut().enumerate() {
            let Some(column) = slot else { continue };
            let value: ValueRef<'_> = row.get_ref(i + 1)?;
            if column.push(value).is_err() {
                *slot = None;
            }
        }
    }
    Ok(columns
        .into_iter()
        .map(|column| {
            let mut column = column?;
            column.shrink();
            Some(Arc::new(column))
        })
        .collect())
}

/// The same values as the view gives, without joining what is not asked for.
fn expression(source: &Source) -> (String, Option<String>) {
    match source {
        Source::Column(name) => (format!("\"{name}\""), None),
        Source::Extra(name) => (
            "(SELECT json_extract(e.extra, ?) FROM extras e WHERE e.row = rows.row)".to_owned(),
            Some(format!("$.{}", serde_json::Value::from(name.as_str()))),
        ),
        Source::Id => ("lower(hex(id))".to_owned(), None),
        Source::File => ("(SELECT s.url FROM sources s WHERE s.source = rows.source)".to_owned(), None),
        Source::Extras => ("(SELECT e.extra FROM extras e WHERE e.row = rows.row)".to_owned(), None),
    }
}
