//! What stays in memory between questions: columns, connections, and the last few choices.

use super::columns::Table;
use super::filter::tree::Source;
use super::filter::{Fields, functions};
use super::groups::Gathered;
use super::{Query, QueryError, Sort};
use crate::catalog::CatalogError;
use crate::catalog::columns::COLUMNS;
use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Idle connections that are worth their memory.
const SPARE_MAX: usize = 4;
/// Pages of one choice are asked for again and again; a few readers have a few choices.
const CHOICES_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    spare: Mutex<Vec<Connection>>,
    choices: Mutex<Vec<(ChoiceKey, Arc<Vec<u32>>)>>,
    groups: Mutex<Option<KeptGroups>>,
}

/// The groups of the last question: pages of them are slices. The number is what a pass was.
type KeptGroups = (ChoiceKey, u64, Arc<Vec<Gathered>>);

#[derive(Debug, Default)]
struct State {
    /// The one that says whether anything changed; its count of others' writes is its own.
    watch: Option<(Connection, i64)>,
    table: Arc<Table>,
    fields: Arc<Fields>,
    /// Of the table when the fields were looked up.
    fields_at: u64,
}

/// A state of the catalog, a filter and an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChoiceKey {
    pub generation: u64,
    pub filter: String,
    pub sort: Vec<Sort>,
}

/// A connection that goes back when it is dropped.
pub(super) struct Lent<'a> {
    connection: Option<Connection>,
    shared: &'a Shared,
}

impl Query {
    /// Loads every column, for a reader who will soon ask for many of them.
    pub fn warm(&self) -> Result<(), QueryError> {
        for some in COLUMNS.chunks(8) {
            let sources: Vec<Source> = some.iter().map(|column| Source::Column(column.name)).collect();
            self.table(&sources)?;
        }
        Ok(())
    }

    /// The catalog as it is now, with at least these columns.
    pub(super) fn table(&self, wanted: &[Source]) -> Result<Arc<Table>, QueryError> {
        let mut state = self.shared.state();
        let version = |connection: &Connection| {
            connection.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))
        };
        let (connection, seen) = match state.watch.take() {
            Some(watch) => watch,
            None => (self.open()?, i64::MIN),
        };
        let now = version(&connection)?;
        if now != seen || !wanted.iter().all(|source| state.table.has(source)) {
            // Taken out, so that columns nobody else holds grow in place.
            let mut table = Arc::unwrap_or_clone(std::mem::take(&mut state.table));
            let generation = table.generation;
            if let Err(error) = table.load(&connection, wanted) {
                state.table = Arc::new(Table::after(generation));
                return Err(error.into());
            }
            state.table = Arc::new(table);
        }
        state.watch = Some((connection, now));
        Ok(Arc::clone(&state.table))
    }

    pub(super) fn lend(&self) -> Result<Lent<'_>, QueryError> {
        let spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match spare {
            Some(connection) => connection,
            None => self.open()?,
        };
        Ok(Lent { connection: Some(connection), shared: &self.shared })
    }

    pub(super) fn open(&self) -> Result<Connection, QueryError> {
        let connection = self.catalog.connect()?;
        functions::add(&connection)
            .map_err(|cause| CatalogError::Sqlite { cause, path: self.catalog.path().to_owned() })?;
        Ok(connection)
    }

    /// The names that a filter may use, extras included.
    pub fn fields(&self) -> Result<Arc<Fields>, QueryError> {
        let table = self.table(&[])?;
        {
            let state = self.shared.state();
            if state.fields_at == table.generation {
                return Ok(Arc::clone(&state.fields));
            }
        }
        let found = extras_seen(&*self.lend()?, &table)?;
        let mut state = self.shared.state();
        let known: Vec<String> = state.fields.extras().cloned().collect();
        state.fields = Arc::new(Fields::new(known.into_iter().chain(found)));
        state.fields_at = table.generation;
        Ok(Arc::clone(&state.fields))
    }

    /// Looks for an extra in every row, when no sample had it.
    pub(super) fn learn(&self, name: &str) -> Result<bool, QueryError> {
        let path = format!("$.{}", serde_json::Value::from(name));
        let known: bool = self.lend()?.query_row(
            "SELECT EXISTS (SELECT 1 FROM extras WHERE json_type(extra, ?) IS NOT NULL)",
            [path],
            |row| row.get(0),
        )?;
        if known {
            let mut state = self.shared.state();
            let names = state.fields.extras().cloned().chain([name.to_owned()]).collect::<Vec<_>>();
            state.fields = Arc::new(Fields::new(names));
        }
        Ok(known)
    }

    pub(super) fn kept(&self, key: &ChoiceKey) -> Option<Arc<Vec<u32>>> {
        let mut choices = self.shared.choices();
        let at = choices.iter().position(|(known, _)| known == key)?;
        let found = choices.remove(at);
        let positions = Arc::clone(&found.1);
        choices.push(found);
        Some(positions)
    }

    /// The groups of this question as they were kept, or as they are found now.
    pub(super) fn groups_or(
        &self,
        key: ChoiceKey,
        pass_above: f64,
        find: impl FnOnce() -> Vec<Gathered>,
    ) -> Arc<Vec<Gathered>> {
        let mut kept = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, above, groups)) = &*kept
            && (known, *above) == (&key, pass_above.to_bits())
        {
            return Arc::clone(groups);
        }
        let groups = Arc::new(find());
        *kept = Some((key, pass_above.to_bits(), Arc::clone(&groups)));
        groups
    }

    pub(super) fn keep(&self, key: ChoiceKey, positions: &Arc<Vec<u32>>) {
        let mut choices = self.shared.choices();
        choices.retain(|(known, _)| known.generation == key.generation && *known != key);
        if choices.len() >= CHOICES_MAX {
            choices.remove(0);
        }
        choices.push((key, Arc::clone(positions)));
    }
}

/// Names of extras in the first rows, the last, and some in between: looking at all of them would take seconds.
fn extras_seen(connection: &Connection, table: &Table) -> rusqlite::Result<Vec<String>> {
    const PROBES: usize = 40;
    let mut names = connection.prepare_cached(
        "SELECT DISTINCT key FROM (SELECT extra FROM extras WHERE row >= ? ORDER BY row LIMIT 50), json_each(extra)",
    )?;
    let mut found = Vec::new();
    for probe in 0..=PROBES {
        let at = (table.rows.len().saturating_sub(50)) * probe / PROBES;
        let Some(row) = table.rows.get(at) else { break };
        for name in names.query_map([row], |row| row.get::<_, String>(0))? {
            found.push(name?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at worst an older state behind, and the watch says that it is one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choices(&self) -> MutexGuard<'_, Vec<(ChoiceKey, Arc<Vec<u32>>)>> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is only given back on drop")
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it is only given back on drop")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_MAX {
            spare.extend(self.connection.take());
        }
    }
}
