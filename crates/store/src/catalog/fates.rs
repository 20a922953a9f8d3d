//! What became of rollouts after they were written.
//!
//! The yard learns later than the archive whether a rollout was trained on, dropped or held, and a file that was
//! written is not touched again: so fates have lines of their own, in files under `fates/`. A fate may be read before
//! its rollout or after it. Of several fates of one rollout the latest counts.

use crate::records::json::{Node, Reader, Said};
use crate::records::seconds;
use rusqlite::{Connection, params};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    pub uid: String,
    pub status: Option<String>,
    pub reason: Option<String>,
    pub step: Option<i64>,
    pub version: Option<i64>,
    /// Seconds since 1970.
    pub at: Option<f64>,
}

impl Fate {
    /// A line that is no fate tells nothing about any rollout, and is passed over.
    pub(crate) fn of_line(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let mut reader = Reader::default();
        let row = reader.read(text.trim_start_matches('\u{feff}')).ok()?;
        let text = |name| row.get(name).and_then(Node::str).map(str::to_owned);
        let int = |name| match row.get(name).map(Node::said) {
            Some(Said::Int(int)) => Some(int),
            Some(Said::Float(float)) if float.is_finite() => Some(float as i64),
            _ => None,
        };
        Some(Self {
            uid: text("uid")?,
            status: text("status"),
            reason: text("reason"),
            step: int("step"),
            version: int("version"),
            at: row.get("at").and_then(|at| seconds(at.said())),
        })
    }
}

pub(crate) fn put(connection: &Connection, source: i64, fate: &Fate) -> rusqlite::Result<()> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO fates (uid, status, reason, step, version, at, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (uid) DO UPDATE SET status = ?2, reason = ?3, step = ?4, version = ?5, at = ?6, source = ?7
         WHERE ?6 IS NULL OR at IS NULL OR ?6 >= at",
    )?;
    let Fate { uid, status, reason, step, version, at } = fate;
    upsert.execute(params![uid, status, reason, step, version, at, source])?;
    Ok(())
}

/// Only of the rollout that was trained on is the step that of its training.
const TELL: &str = "UPDATE rows SET status = f.status, reason = f.reason,
   trained_step = CASE f.status WHEN 'trained' THEN f.step END,
   lag = CASE f.status WHEN 'trained' THEN f.step - coalesce(f.version, rows.version) ELSE lag END,
   version = coalesce(rows.version, f.version)
 FROM fates f WHERE f.uid = rows.uid";

/// Tells one rollout its fate, if it is there already. Gives the number of rows that it changed.
pub(crate) fn tell_one(connection: &Connection, uid: &str) -> rusqlite::Result<usize> {
    connection.prepare_cached(&format!("{TELL} AND rows.uid = ?1"))?.execute([uid])
}

/// Tells the rows that came after their fate.
pub(crate) fn tell_new(connection: &Connection) -> rusqlite::Result<usize> {
    let until = "(SELECT value FROM facts WHERE name = 'fates_until')";
    let any: bool = connection.query_row("SELECT EXISTS (SELECT 1 FROM fates)", [], |row| row.get(0))?;
    let told = match any {
        true => connection.prepare_cached(&format!("{TELL} AND rows.row > {until}"))?.execute([])?,
        false => 0,
    };
    connection.execute(
        "UPDATE facts SET value = coalesce((SELECT max(row) FROM rows), 0) WHERE name = 'fates_until'",
        [],
    )?;
    Ok(told)
}
