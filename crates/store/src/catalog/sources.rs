//! What a catalog knows of the files it was made from.

use crate::places::{FileInfo, PlaceError, ReadAt};
use crate::records::identity;
use rusqlite::{Connection, Row, params};

/// How much of a file's front and of its last known bytes is compared, to see whether it only grew.
const MARK_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A row a line.
    Lines,
    /// One JSON value over the whole file: a list of rows, an object with such a list, or one row.
    Json,
    Parquet,
    /// What became of rollouts, a row a line.
    Fates,
    FatesParquet,
}

const FORMATS: [(Format, &str); 5] = [
    (Format::Lines, "jsonl"),
    (Format::Json, "json"),
    (Format::Parquet, "parquet"),
    (Format::Fates, "fates"),
    (Format::FatesParquet, "fates.parquet"),
];

impl Format {
    /// As far as the name says; what a `.json` really is, is seen when it is opened.
    pub(crate) fn of(url: &str) -> Self {
        let mut parts = url.rsplit('/');
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let is_fates = parts.any(|folder| folder == "fates");
        match (name.ends_with(".parquet"), is_fates) {
            (true, true) => Self::FatesParquet,
            (true, false) => Self::Parquet,
            (false, true) => Self::Fates,
            (false, false) if name.ends_with(".json") => Self::Json,
            (false, false) => Self::Lines,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        FORMATS.iter().find(|(format, _)| *format == self).map_or("jsonl", |(_, name)| name)
    }

    pub(crate) fn named(name: &str) -> Self {
        FORMATS.iter().find(|(_, known)| *known == name).map_or(Self::Lines, |(format, _)| *format)
    }

    pub(crate) fn is_lines(self) -> bool {
        matches!(self, Self::Lines | Self::Fates)
    }

    pub(crate) fn is_fates(self) -> bool {
        matches!(self, Self::Fates | Self::FatesParquet)
    }
}

/// How far a file is in the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    pub bytes: u64,
    /// Line ends before that.
    pub lines: u64,
    pub head_hash: i64,
    pub tail_hash: i64,
    pub pending_bytes: u64,
}

impl Reached {
    /// Looks at the bytes before `end`. `near` is a stretch of the file that has been read already, and its offset.
    pub(crate) fn at(file: &dyn ReadAt, end: u64, near: (u64, &[u8])) -> Result<Self, PlaceError> {
        let piece = |from: u64, to: u64| -> Result<i64, PlaceError> {
            let (start, bytes) = near;
            let inside = from.checked_sub(start).zip(to.checked_sub(start));
            match inside.and_then(|(from, to)| bytes.get(from as usize..to as usize)) {
                Some(piece) => Ok(identity::of_piece(piece)),
                None => Ok(identity::of_piece(&file.read_at(from..to)?)),
            }
        };
        let (head_hash, tail_hash) =
            (piece(0, end.min(MARK_BYTES))?, piece(end.saturating_sub(MARK_BYTES), end)?);
        Ok(Self { bytes: end, head_hash, tail_hash, ..Self::default() })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub source: i64,
    pub url: String,
    pub format: Format,
    pub size_bytes: u64,
    pub stamp: String,
    pub reached: Reached,
}

pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Source>> {
    let mut select = connection.prepare(
        "SELECT source, url, format, size_bytes, stamp, indexed_bytes, lines, head_hash, tail_hash, pending_bytes
         FROM sources ORDER BY url",
    )?;
    let number = |row: &Row<'_>, at| row.get::<_, i64>(at).map(|number| number as u64);
    let rows = select.query_map([], |row| {
        let reached = Reached {
            bytes: number(row, 5)?,
            lines: number(row, 6)?,
            head_hash: row.get(7)?,
            tail_hash: row.get(8)?,
            pending_bytes: number(row, 9)?,
        };
        Ok(Source {
            source: row.get(0)?,
            url: row.get(1)?,
            format: Format::named(&row.get::<_, String>(2)?),
            size_bytes: number(row, 3)?,
            stamp: row.get(4)?,
            reached,
        })
    })?;
    rows.collect()
}

/// Puts a file in, or says that it is to be read from its front again.
pub(crate) fn begin(connection: &Connection, info: &FileInfo, format: Format) -> rusqlite::Result<i64> {
    connection.prepare_cached(
        "INSERT INTO sources (url, format, size_bytes, stamp, indexed_bytes, lines, head_hash, tail_hash, pending_bytes)
         VALUES (?1, ?2, 0, '', 0, 0, 0, 0, 0)
         ON CONFLICT (url) DO UPDATE SET format = ?2, size_bytes = 0, stamp = '', indexed_bytes = 0, lines = 0,
           head_hash = 0, tail_hash = 0, pending_bytes = 0, problem = NULL
         RETURNING source",
    )?
    .query_row(params![info.url, format.name()], |row| row.get(0))
}

pub(crate) fn reach(connection: &Connection, source: i64, reached: &Reached) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE sources SET indexed_bytes = ?2, lines = ?3, head_hash = ?4, tail_hash = ?5, pending_bytes = ?6
         WHERE source = ?1",
    )?;
    let (bytes, lines, pending) = (reached.bytes as i64, reached.lines as i64, reached.pending_bytes as i64);
    update.execute(params![source, bytes, lines, reached.head_hash, reached.tail_hash, pending])?;
    Ok(())
}

/// It was read to its end, as it was when it was looked at; or could not be, and why.
pub(crate) fn finish(
    connection: &Connection,
    source: i64,
    info: &FileInfo,
    problem: Option<&str>,
) -> rusqlite::Result<()> {
    let mut update = connection
        .prepare_cached("UPDATE sources SET size_bytes = ?2, stamp = ?3, problem = ?4 WHERE source = ?1")?;
    update.execute(params![source, info.size_bytes as i64, info.stamp, problem])?;
    Ok(())
}
