//! Stretches on all cores, hits in order.
//!
//! Workers take the next stretch as long as they are not too far ahead of the one whose hits are told next; so a
//! slow stretch holds back a bounded number of others, and memory stays bounded too.

use super::confirm::Goal;
use super::stretch::{Reading, Spot, Stretch, Work};
use super::{Found, Hit, QueryError, Scanned};
use crate::catalog::{Catalog, CatalogError};
use crate::places::{PlaceError, ReadAt};
use crate::query::columns::cores;
use crate::records::Body;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const TELL_EVERY: Duration = Duration::from_millis(200);

/// What workers and the one who tells share.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next stretch that nobody has taken.
    next: usize,
    /// The next one to be told.
    told: usize,
    done: BTreeMap<usize, Result<Vec<Hit>, QueryError>>,
    stop: bool,
}

pub(crate) fn run(
    catalog: &Catalog,
    goal: &Goal,
    work: &Work,
    on_found: &mut dyn FnMut(Found) -> ControlFlow<()>,
) -> Result<Scanned, QueryError> {
    let board = Board::default();
    let threads = cores::count();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| worker(catalog, goal, work, &board, threads * 8));
        }
        // Whatever happens here, the workers are told to stop before they are waited for.
        let _stop = StopAtEnd(&board);
        tell(work, &board, on_found)
    })
}

fn tell(
    work: &Work,
    board: &Board,
    on_found: &mut dyn FnMut(Found) -> ControlFlow<()>,
) -> Result<Scanned, QueryError> {
    let mut scanned = Scanned { rows: work.rows() as u64, bytes: work.bytes, ..Scanned::default() };
    let mut last = Instant::now();
    for (at, stretch) in work.stretches.iter().enumerate() {
        let hits = loop {
            let mut state = board.state();
            if let Some(hits) = state.done.remove(&at) {
                state.told = at + 1;
                board.changed.notify_all();
                break hits?;
            }
            let waited = board.changed.wait_timeout(state, TELL_EVERY);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if last.elapsed() >= TELL_EVERY {
                last = Instant::now();
                if on_found(Found::Progress(scanned)).is_break() {
                    return Ok(scanned);
                }
            }
        };
        scanned.rows_done += stretch.rows.len() as u64;
        scanned.bytes_done += stretch.row_bytes;
        for hit in hits {
            scanned.hits += 1;
            if on_found(Found::Hit(hit)).is_break() {
                return Ok(scanned);
            }
        }
        if last.elapsed() >= TELL_EVERY {
            last = Instant::now();
            if on_found(Found::Progress(scanned)).is_break() {
                return Ok(scanned);
            }
        }
    }
    let _ = on_found(Found::Progress(scanned));
    Ok(scanned)
}

fn worker(catalog: &Catalog, goal: &Goal, work: &Work, board: &Board, ahead_max: usize) {
    let mut reader = Reader { catalog, work, files: HashMap::new(), buffer: Vec::new() };
    loop {
        let at = {
            let mut state = board.state();
            while !state.stop && state.next >= state.told + ahead_max {
                state = board.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stop || state.next >= work.stretches.len() {
                return;
            }
            state.next += 1;
            state.next - 1
        };
        let Some(stretch) = work.stretches.get(at) else { return };
        // A panic in a parser must not leave the others waiting for this stretch.
        let search = std::panic::AssertUnwindSafe(|| reader.search(goal, stretch));
        let hits = std::panic::catch_unwind(search).unwrap_or_else(|_| {
            Err(QueryError::Sql("a rollout could not be searched; this is a defect".to_owned()))
        });
        board.state().done.insert(at, hits);
        board.changed.notify_all();
    }
}

struct StopAtEnd<'a>(&'a Board);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.state().stop = true;
        self.0.changed.notify_all();
    }
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One worker's files and buffer.
struct Reader<'a> {
    catalog: &'a Catalog,
    work: &'a Work,
    files: HashMap<i64, Open>,
    buffer: Vec<u8>,
}

#[derive(Clone)]
enum Open {
    Disk(Arc<File>),
    Remote(Arc<dyn ReadAt>),
    ByRow,
}

impl Reader<'_> {
    fn search(&mut self, goal: &Goal, stretch: &Stretch) -> Result<Vec<Hit>, QueryError> {
        let spots: Vec<Spot> = stretch.rows.clone().filter_map(|place| self.work.spot(place)).collect();
        let remote;
        let bytes: &[u8] = match self.open(stretch.source)? {
            Open::ByRow => return self.by_row(goal, &spots),
            Open::Remote(file) => {
                remote = file.read_at(stretch.bytes.clone()).map_err(CatalogError::from)?;
                &remote
            }
            Open::Disk(file) => {
                let len = usize::try_from(stretch.bytes.end - stretch.bytes.start).unwrap_or(usize::MAX);
                self.buffer.resize(len, 0);
                let read = read_at(&file, &mut self.buffer, stretch.bytes.start)
                    .map_err(|error| self.failed(stretch.source, error.to_string()))?;
                self.buffer.get(..read).unwrap_or_default()
            }
        };
        let may = may_hold(goal, bytes, stretch.bytes.start, &spots);
        let url = self.work.sources.get(&stretch.source).map_or("", |origin| &origin.url);
        let mut hits = Vec::new();
        for (spot, _) in spots.iter().zip(may).filter(|(_, may)| *may) {
            let raw = Bytes::copy_from_slice(bytes_of(bytes, stretch.bytes.start, spot));
            let body = Body { raw, url: url.to_owned(), line: 0, offset: spot.offset };
            // What cannot be decoded any more was replaced under the reader; the next refresh knows it.
            hits.extend(body.pieces().ok().and_then(|pieces| goal.hit(spot.row, &pieces)));
        }
        Ok(hits)
    }

    fn by_row(&self, goal: &Goal, spots: &[Spot]) -> Result<Vec<Hit>, QueryError> {
        let mut hits = Vec::new();
        for spot in spots {
            let body = self.catalog.body(spot.row)?;
            let alone = Spot { offset: 0, length: body.raw.len() as u64, ..*spot };
            if may_hold(goal, &body.raw, 0, &[alone]).contains(&true) {
                hits.extend(body.pieces().ok().and_then(|pieces| goal.hit(spot.row, &pieces)));
            }
        }
        Ok(hits)
    }

    fn open(&mut self, source: i64) -> Result<Open, QueryError> {
        if let Some(open) = self.files.get(&source) {
            return Ok(open.clone());
        }
        let Some(origin) = self.work.sources.get(&source) else {
            return Err(self.failed(source, "the catalog has lost this file; index it anew".to_owned()));
        };
        let open = match &origin.how {
            Reading::ByRow => Open::ByRow,
            Reading::Remote => {
                Open::Remote(self.catalog.places().open(&origin.url).map_err(CatalogError::from)?)
            }
            Reading::Disk(path) => Open::Disk(Arc::new(
                File::open(path).map_err(|error| self.failed(source, error.to_string()))?,
            )),
        };
        // Files come one after the other; a folder of thousands must not keep them all open.
        if self.files.len() >= 16 {
            self.files.clear();
        }
        self.files.insert(source, open.clone());
        Ok(open)
    }

    fn failed(&self, source: i64, why: String) -> QueryError {
        let place =
            self.work.sources.get(&source).map_or_else(|| source.to_string(), |origin| origin.url.clone());
        CatalogError::Place(PlaceError::Io { what: "read", why, place }).into()
    }
}

/// For each row, whether its raw bytes allow it to be wanted.
fn may_hold(goal: &Goal, bytes: &[u8], start: u64, spots: &[Spot]) -> Vec<bool> {
    let mut raw = vec![vec![false; goal.patterns.len()]; spots.len()];
    for (which, pattern) in goal.patterns.iter().enumerate() {
        let mut from = 0;
        while let Some(found) =
            bytes.get(from..).filter(|rest| !rest.is_empty()).and_then(|rest| pattern.needle.find(rest))
        {
            let at = start + (from + found) as u64;
            // The row it stands in, or the first one after it.
            let next = spots.partition_point(|spot| spot.offset + spot.length <= at);
            let Some(spot) = spots.get(next) else { break };
            if spot.offset <= at {
                if let Some(has) = raw.get_mut(next).and_then(|row| row.get_mut(which)) {
                    *has = true;
                }
                from = usize::try_from(spot.offset + spot.length - start).unwrap_or(usize::MAX);
            } else {
                from = usize::try_from(spot.offset - start).unwrap_or(usize::MAX);
            }
        }
    }
    raw.iter().map(|has| goal.may_hold(has)).collect()
}

fn bytes_of<'a>(bytes: &'a [u8], start: u64, spot: &Spot) -> &'a [u8] {
    let at = |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(at(spot.offset)..at(spot.offset + spot.length)).unwrap_or_default()
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
