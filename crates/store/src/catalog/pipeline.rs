//! Reads and summarises on all cores, and hands the results on in the order of the files.
//!
//! Work is cut into turns, numbered in order. Workers take the next one each, and may be ahead of the writer by a few
//! only, so that memory is bounded. A turn whose result comes in several parts sends the first at once and waits for
//! its turn with the others.

use super::fates::Fate;
use super::lines::{self, Ask};
use super::plan::Job;
use super::sources::{Format, Reached};
use super::whole;
use crate::places::{PlaceError, Places, ReadAt};
use crate::records::{Place, Summarizer, Summary};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Large enough that starting on it costs nothing, small enough that the first rows are there at once.
const STRETCH_BYTES: u64 = 4 << 20;
/// An object store answers slowly, and then fast.
const REMOTE_STRETCH_BYTES: u64 = 16 << 20;
/// Turns that may wait for an earlier one.
const AHEAD: u64 = 8;

/// One row of a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// Line ends before it, in this part.
    pub nth: u64,
    pub offset: u64,
    pub length: u64,
    pub summary: Summary,
}

/// Some of what a turn came to.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub turn: u64,
    pub job: usize,
    pub rows: Vec<Found>,
    pub fates: Vec<Fate>,
    /// How far the file is read with this part; its `lines` are those of this part only.
    pub reached: Option<Reached>,
    pub bytes: u64,
    pub is_last_of_turn: bool,
    pub is_last_of_job: bool,
    /// The file cannot be read, or not to its end.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
struct Turn {
    nth: u64,
    job: usize,
    /// Of a file with a row a line; any other is read in one turn.
    ask: Ask,
    is_last: bool,
}

#[derive(Debug)]
struct Queue {
    taken: u64,
    written: u64,
    job: usize,
    /// Where the next stretch of the job begins.
    at: Option<u64>,
}

/// Hands out turns.
#[derive(Debug)]
pub(crate) struct Line<'j> {
    places: &'j Places,
    jobs: &'j [Job],
    files: Vec<OnceLock<Result<Arc<dyn ReadAt>, PlaceError>>>,
    queue: Mutex<Queue>,
    moved: Condvar,
    cancelled: &'j AtomicBool,
}

impl<'j> Line<'j> {
    pub(crate) fn new(places: &'j Places, jobs: &'j [Job], cancelled: &'j AtomicBool) -> Self {
        let files = jobs.iter().map(|_| OnceLock::new()).collect();
        let queue = Mutex::new(Queue { taken: 0, written: 0, job: 0, at: None });
        Self { places, jobs, files, queue, moved: Condvar::new(), cancelled }
    }

    /// The writer is done with a turn.
    pub(crate) fn wrote(&self, turn: u64) {
        self.queue().written = turn + 1;
        self.moved.notify_all();
    }

    /// Nothing is written any more: workers that wait give up.
    pub(crate) fn stop(&self) {
        self.queue().written = u64::MAX;
        self.moved.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self, queue: &Queue) -> bool {
        queue.written == u64::MAX || self.cancelled.load(Ordering::Relaxed)
    }

    fn take(&self) -> Option<Turn> {
        let mut queue = self.queue();
        while queue.taken >= queue.written.saturating_add(AHEAD) {
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_stopped(&queue) {
            return None;
        }
        let job = self.jobs.get(queue.job)?;
        let file_end = job.info.size_bytes;
        let begin = job.known.as_ref().map_or(0, |(_, reached)| reached.bytes);
        let start = queue.at.unwrap_or(begin);
        let is_local = self.places.local_path(&job.info.url).is_some();
        let step = if is_local { STRETCH_BYTES } else { REMOTE_STRETCH_BYTES };
        let end = if job.format.is_lines() { file_end.min(start + step) } else { file_end };
        let turn = Turn {
            nth: queue.taken,
            job: queue.job,
            ask: Ask { stretch: start..end, is_first: start == begin, file_end },
            is_last: end >= file_end,
        };
        queue.taken += 1;
        queue.at = (!turn.is_last).then_some(end);
        queue.job += usize::from(turn.is_last);
        Some(turn)
    }

    /// Waits until everything before this turn is written. Says whether there is any use in going on.
    fn is_turn_of(&self, turn: u64) -> bool {
        let mut queue = self.queue();
        while queue.written < turn {
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        !self.is_stopped(&queue)
    }

    fn open(&self, job: usize) -> Result<Arc<dyn ReadAt>, PlaceError> {
        let url = self.jobs.get(job).map(|job| job.info.url.as_str()).unwrap_or_default();
        match self.files.get(job) {
            Some(file) => file.get_or_init(|| self.places.open(url)).clone(),
            None => self.places.open(url),
        }
    }
}

/// One thread's work: turns, until there are none or nobody wants them.
pub(crate) fn work(line: &Line<'_>, parts: &flume::Sender<Part>) {
    let mut summarizer = Summarizer::default();
    while let Some(turn) = line.take() {
        let Some(job) = line.jobs.get(turn.job) else { return };
        let mut sent = 0;
        let mut emit = |mut part: Part| {
            part.turn = turn.nth;
            part.job = turn.job;
            part.is_last_of_job = part.is_last_of_turn && turn.is_last;
            if sent > 0 && !line.is_turn_of(turn.nth) {
                return false;
            }
            sent += 1;
            parts.send(part).is_ok()
        };
        let opened = line.open(turn.job).map_err(|error| error.to_string());
        let done = opened.and_then(|file| match job.format {
            Format::Lines | Format::Fates => {
                read_lines(&*file, job, &turn, &mut summarizer).map_err(|error| error.to_string())
            }
            Format::Json => whole::json(&file, job, &mut summarizer),
            Format::Parquet | Format::FatesParquet => whole::parquet(&file, job, &mut summarizer, &mut emit),
        });
        let last = done.unwrap_or_else(|problem| Part { problem: Some(problem), ..Part::default() });
        if !emit(Part { is_last_of_turn: true, ..last }) {
            return;
        }
    }
}

fn read_lines(
    file: &dyn ReadAt,
    job: &Job,
    turn: &Turn,
    summarizer: &mut Summarizer,
) -> Result<Part, PlaceError> {
    let place = Place::of(&job.info.url);
    let mut part = Part { bytes: turn.ask.stretch.end - turn.ask.stretch.start, ..Part::default() };
    if turn.ask.stretch.is_empty() {
        return Ok(part);
    }
    // A last line without its end, and whether it is one.
    let (mut open_end, mut pending) = (None, 0);
    let stretch = lines::lines(file, &turn.ask, |line| {
        if line.is_blank() {
            return;
        }
        if job.format == Format::Fates {
            match Fate::of_line(line.bytes) {
                Some(fate) if line.is_ended => part.fates.push(fate),
                _ if line.is_ended => {}
                _ => pending = line.length,
            }
            return;
        }
        let mut summary = if line.is_too_long() {
            Summary::too_long(line.bytes, line.length)
        } else {
            summarizer.summarize(line.bytes, &place)
        };
        if !line.is_ended {
            if summary.problem.is_some() && !job.is_settled {
                pending = line.length;
                return;
            }
            if summary.problem.is_some() {
                summary.problem = Some("half-written last line".to_owned());
            }
            open_end = Some(line.offset + line.length);
        }
        part.rows.push(Found { nth: line.nth, offset: line.offset, length: line.length, summary });
    })?;
    if let Some(end) = open_end.or(stretch.end) {
        let (at, bytes) = &stretch.read;
        let mut reached = Reached::at(file, end, (*at, bytes))?;
        reached.lines = stretch.line_ends;
        reached.pending_bytes = pending;
        part.reached = Some(reached);
    } else if pending > 0 {
        // Nothing but the half-written line: the mark stays where it is.
        part.reached = Some(Reached { pending_bytes: pending, bytes: u64::MAX, ..Reached::default() });
    }
    Ok(part)
}
