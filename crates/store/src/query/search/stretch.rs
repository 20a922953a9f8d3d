//! The rows of a search, cut into stretches of a file that are read in one go.

use super::{Choice, Query, QueryError};
use crate::catalog::RowNo;
use crate::query::choice::Chosen;
use crate::query::columns::Column;
use crate::query::columns::table::PLACE;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

/// From a disk, what is read should still be in the processor's cache when it is searched.
const DISK_BYTES: u64 = 1 << 20;
/// From elsewhere, each request costs a journey.
const REMOTE_BYTES: u64 = 8 << 20;
/// Where the next row is further away than this, what lies between is not worth reading.
const GAP_BYTES: u64 = 64 << 10;
/// Rows that are fetched one by one.
const FETCHED_ROWS: usize = 64;

/// All rows of a search, and where they lie.
pub(crate) struct Work {
    chosen: Chosen,
    pub(crate) sources: HashMap<i64, Origin>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) url: String,
    pub(crate) how: Reading,
}

#[derive(Clone, Debug)]
pub(crate) enum Reading {
    Disk(PathBuf),
    Remote,
    /// The bytes of a row are not those of the file.
    ByRow,
}

#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) source: i64,
    pub(crate) bytes: Range<u64>,
    /// Places in the choice.
    pub(crate) rows: Range<usize>,
    /// Of its rows alone, without what lies between.
    pub(crate) row_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) row: RowNo,
    pub(crate) source: i64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Work {
    pub(crate) fn of(query: &Query, choice: &Choice) -> Result<Self, QueryError> {
        let chosen = query.choose(choice, &PLACE)?;
        let sources = origins(query)?;
        let mut work = Self { chosen, sources, stretches: Vec::new(), bytes: 0 };
        let mut open: Option<Stretch> = None;
        for place in 0..work.rows() {
            let Some(spot) = work.spot(place) else {
                return Err(QueryError::Sql(
                    "the catalog does not say where its rows lie; index it anew".to_owned(),
                ));
            };
            work.bytes += spot.length;
            match &mut open {
                Some(stretch) if work.continues(stretch, &spot) => {
                    stretch.bytes.end = spot.offset + spot.length;
                    stretch.rows.end = place + 1;
                    stretch.row_bytes += spot.length;
                }
                _ => {
                    work.stretches.extend(open.take());
                    open = Some(Stretch {
                        source: spot.source,
                        bytes: spot.offset..spot.offset + spot.length,
                        rows: place..place + 1,
                        row_bytes: spot.length,
                    });
                }
            }
        }
        work.stretches.extend(open);
        Ok(work)
    }

    pub(crate) fn rows(&self) -> usize {
        self.chosen.positions.len()
    }

    pub(crate) fn spot(&self, place: usize) -> Option<Spot> {
        let at = *self.chosen.positions.get(place)? as usize;
        let number = |i: usize| -> Option<i64> {
            let column: &Column = self.chosen.table.column(PLACE.get(i)?)?;
            column.int(at)
        };
        Some(Spot {
            row: RowNo(*self.chosen.table.rows.get(at)?),
            source: number(0)?,
            offset: u64::try_from(number(1)?).ok()?,
            length: u64::try_from(number(2)?).ok()?,
        })
    }

    fn continues(&self, stretch: &Stretch, spot: &Spot) -> bool {
        if stretch.source != spot.source {
            return false;
        }
        let most = match self.sources.get(&spot.source).map(|origin| &origin.how) {
            Some(Reading::Disk(_)) => DISK_BYTES,
            Some(Reading::Remote) => REMOTE_BYTES,
            Some(Reading::ByRow) | None => return stretch.rows.len() < FETCHED_ROWS,
        };
        spot.offset >= stretch.bytes.end
            && spot.offset - stretch.bytes.end <= GAP_BYTES
            && stretch.bytes.end - stretch.bytes.start < most
    }
}

fn origins(query: &Query) -> Result<HashMap<i64, Origin>, QueryError> {
    let connection = query.lend()?;
    let mut statement = connection.prepare_cached("SELECT source, url, format FROM sources")?;
    let mut rows = statement.query([])?;
    let mut origins = HashMap::new();
    while let Some(row) = rows.next()? {
        let (url, format): (String, String) = (row.get(1)?, row.get(2)?);
        let how = match query.catalog().places().local_path(&url) {
            _ if format == "parquet" => Reading::ByRow,
            Some(path) => Reading::Disk(path),
            None => Reading::Remote,
        };
        origins.insert(row.get(0)?, Origin { url, how });
    }
    Ok(origins)
}
