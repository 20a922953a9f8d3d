//! What is wrong with the rollouts of a catalog, in numbers.

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
        let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|number| number as u64);
        let mut health = connection.query_row(
            "SELECT count(*), coalesce(sum(bad), 0), coalesce(sum(copy), 0),
               coalesce(sum(unclosed AND NOT copy), 0), coalesce(sum(truncated AND NOT copy), 0),
               coalesce(sum(odd AND NOT copy), 0) FROM rows",
            [],
            |row| {
                Ok(Health {
                    rows: number(row, 0)?,
                    bad_rows: number(row, 1)?,
                    copies: number(row, 2)?,
                    unclosed: number(row, 3)?,
                    truncated: number(row, 4)?,
                    odd: number(row, 5)?,
                    ..Health::default()
                })
            },
        )?;
        (health.groups, health.dead_groups) = connection.query_row(
            "SELECT count(*), coalesce(sum(rewarded > 1 AND low = high), 0) FROM
               (SELECT count(reward) AS rewarded, min(reward) AS low, max(reward) AS high FROM rows
                WHERE bad = 0 AND copy = 0 GROUP BY group_id)",
            [],
            |row| Ok((number(row, 0)?, number(row, 1)?)),
        )?;
        health.half_written =
            connection.query_row("SELECT count(*) FROM sources WHERE pending_bytes > 0", [], |row| {
                number(row, 0)
            })?;
        let mut unread =
            connection.prepare("SELECT url, problem FROM sources WHERE problem IS NOT NULL ORDER BY url")?;
        let unread = unread.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        health.unread_files = unread.collect::<rusqlite::Result<_>>()?;
        Ok(health)
    };
    read().map_err(catalog.sqlite())
}
