//! What a catalog has, counted as rows come, so that nobody has to look at every row again.
//!
//! Rows of one group come one after the other, so their figures are gathered and put into the table `groups` with the
//! commit that puts the rows in. Where rows go, everything is counted anew.

use super::pipeline::Found;
use hashbrown::HashMap;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// Of all rows; of those that are neither bad nor copies where they say something about a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    pub rows: u64,
    pub bad_rows: u64,
    pub copies: u64,
    pub unclosed: u64,
    pub truncated: u64,
    pub odd: u64,
    /// Groups, and the dead ones among them; none while rows are being added.
    pub groups: Option<(u64, u64)>,
}

/// Of the rows of one group that are not in the table `groups` yet.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    n: i64,
    rated: i64,
    low: Option<f64>,
    high: Option<f64>,
    lengths: i64,
    chars: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Gathered(HashMap<i64, Figures>);

/// Counts all groups from their rows.
pub(crate) const GROUPS_ANEW: &str = "DELETE FROM groups;
INSERT INTO groups SELECT group_id, count(*), count(reward), min(reward), max(reward), count(response_chars),
  coalesce(sum(response_chars), 0) FROM rows WHERE bad = 0 AND copy = 0 AND group_id IS NOT NULL GROUP BY group_id;";

const ADD: &str =
    "INSERT INTO groups VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (group_id) DO UPDATE SET
  n = n + ?2, rated = rated + ?3, low = min(coalesce(low, ?4), coalesce(?4, low)),
  high = max(coalesce(high, ?5), coalesce(?5, high)), lengths = lengths + ?6, chars = chars + ?7";

impl Counts {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT value FROM facts WHERE name = 'counts'";
        let json: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let json = serde_json::to_string(self).unwrap_or_default();
        connection.prepare_cached("UPDATE facts SET value = ?1 WHERE name = 'counts'")?.execute([json])?;
        Ok(())
    }

    pub(crate) fn add(&mut self, found: &Found, is_copy: bool) {
        let summary = &found.summary;
        let counts = |flag: Option<bool>| u64::from(!is_copy && flag == Some(true));
        self.rows += 1;
        self.bad_rows += u64::from(summary.problem.is_some());
        self.copies += u64::from(is_copy);
        self.unclosed += counts(summary.unclosed);
        self.truncated += counts(summary.truncated);
        self.odd += counts(summary.odd);
        self.groups = None;
    }

    /// Of the rows as they are now, and their groups with them.
    pub(crate) fn anew(connection: &Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(GROUPS_ANEW)?;
        let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(i64::unsigned_abs);
        connection.query_row(
            "SELECT count(*), coalesce(sum(bad), 0), coalesce(sum(copy), 0),
               coalesce(sum(unclosed AND NOT copy), 0), coalesce(sum(truncated AND NOT copy), 0),
               coalesce(sum(odd AND NOT copy), 0) FROM rows",
            [],
            |row| {
                Ok(Self {
                    rows: number(row, 0)?,
                    bad_rows: number(row, 1)?,
                    copies: number(row, 2)?,
                    unclosed: number(row, 3)?,
                    truncated: number(row, 4)?,
                    odd: number(row, 5)?,
                    groups: None,
                })
            },
        )
    }

    /// Groups, and those of several rollouts that all have the same reward.
    pub(crate) fn groups(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
        let sql = "SELECT count(*), coalesce(sum(n > 1 AND rated = n AND low = high), 0) FROM groups";
        let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(i64::unsigned_abs);
        connection.query_row(sql, [], |row| Ok((number(row, 0)?, number(row, 1)?)))
    }
}

impl Gathered {
    /// A readable row that is no copy.
    pub(crate) fn add(&mut self, found: &Found) {
        let summary = &found.summary;
        let Some(group) = summary.group_id else { return };
        let figures = self.0.entry(group).or_default();
        figures.n += 1;
        if let Some(reward) = summary.reward {
            figures.rated += 1;
            figures.low = Some(figures.low.map_or(reward, |low| low.min(reward)));
            figures.high = Some(figures.high.map_or(reward, |high| high.max(reward)));
        }
        if let Some(chars) = summary.response_chars {
            figures.lengths += 1;
            figures.chars = figures.chars.saturating_add(chars);
        }
    }

    /// Into the table. Under the transaction that has their rows.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut add = connection.prepare_cached(ADD)?;
        let mut groups: Vec<(i64, Figures)> = self.0.drain().collect();
        // In the order of the table, which then takes them in quicker.
        groups.sort_unstable_by_key(|(group, _)| *group);
        for (group, Figures { n, rated, low, high, lengths, chars }) in groups {
            add.execute(params![group, n, rated, low, high, lengths, chars])?;
        }
        Ok(())
    }
}
