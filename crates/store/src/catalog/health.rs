//! What is wrong with the rollouts of a catalog, in numbers.

use super::counts::Counts;
use super::{Catalog, CatalogError};

/// What is wrong with the rollouts of a catalog, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub rows: u64,
    /// Could not be read; they are listed and shown raw.
    pub bad_rows: u64,
    /// Rows that are the same rollout as an earlier one.
    pub copies: u64,
    pub unclosed: u64,
    pub truncated: u64,
    /// Numbers that are none, and other things the format does not know.
    pub odd: u64,
    /// Groups of several rollouts that all have the same reward.
    pub dead_groups: u64,
    pub groups: u64,
    /// Files whose last line is still being written. It becomes a row with its end, and a bad one if that never comes.
    pub half_written: u64,
    /// Files that could not be read, with the reason.
    pub unread_files: Vec<(String, String)>,
}

pub(super) fn health(catalog: &Catalog) -> Result<Health, CatalogError> {
    let read = || -> rusqlite::Result<Health> {
        let connection = super::home::read_only(&catalog.path)?;
        let counts = Counts::read(&connection)?;
        // While rows come in, nobody has counted the groups yet.
        let (groups, dead_groups) = counts.groups.map_or_else(|| Counts::groups(&connection), Ok)?;
        let Counts { rows, bad_rows, copies, unclosed, truncated, odd, .. } = counts;
        let mut health = Health {
            rows,
            bad_rows,
            copies,
            unclosed,
            truncated,
            odd,
            dead_groups,
            groups,
            ..Health::default()
        };
        health.half_written =
            connection.query_row("SELECT count(*) FROM sources WHERE pending_bytes > 0", [], |row| {
                row.get::<_, i64>(0).map(i64::unsigned_abs)
            })?;
        let mut unread =
            connection.prepare("SELECT url, problem FROM sources WHERE problem IS NOT NULL ORDER BY url")?;
        let unread = unread.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        health.unread_files = unread.collect::<rusqlite::Result<_>>()?;
        Ok(health)
    };
    read().map_err(catalog.sqlite())
}
