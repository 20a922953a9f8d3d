//! Folders of rollout files, as Python's readers and writers hold them.
//!
//! Nothing here waits with the GIL held, and nothing outlives a fork: a folder on a disk needs no threads, and
//! one on S3 connects anew in each process.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rollyard_core::rollout::Rollout as CoreRollout;
use rollyard_store::rollouts::{About, Batch, BatchReader, BatchWriter, FolderError, Row, WriteError};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, SystemTime};

use crate::errors::{BatchError, StorageError};
use crate::rollout::{Rollout, RolloutMetadata};

/// Its name and why it, or a row in it, could not be read.
type Problems = Vec<(String, String)>;

/// The rollouts of each group, and the batch's metadata.
type Read = (Vec<Vec<Rollout>>, RolloutMetadata);

/// Name, size in bytes, seconds to encode, seconds to publish, why old files could not be deleted.
type Written = (String, usize, f64, f64, Option<String>);

/// The end of a folder that a worker holds.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct FolderWriter {
    inner: BatchWriter,
}

#[pymethods]
impl FolderWriter {
    #[new]
    fn new(py: Python<'_>, place: &str, files_max: i64) -> PyResult<Self> {
        let refused =
            || PyValueError::new_err(format!("max_rollout_files is {files_max}, but must be at least 1"));
        let files_max = usize::try_from(files_max).ok().and_then(NonZeroUsize::new).ok_or_else(refused)?;
        Ok(Self { inner: py.detach(|| BatchWriter::open(place, files_max)).map_err(StorageError::of)? })
    }

    /// Writes a batch: the rollouts of each group.
    fn write(
        &self,
        py: Python<'_>,
        groups: Vec<Vec<Py<Rollout>>>,
        metadata: RolloutMetadata,
    ) -> PyResult<Written> {
        let numbered = (0..).zip(&groups);
        let rollouts: Vec<(u32, Arc<CoreRollout>)> = numbered
            .flat_map(|(group, rollouts)| {
                rollouts.iter().map(move |rollout| (group, rollout.get().inner.clone()))
            })
            .collect();
        let about = About { metadata: metadata.into(), ..About::default() };
        let rows: Vec<Row<'_>> = rollouts
            .iter()
            .map(|(group, rollout)| Row { rollout, group: *group, uid: None, advantage: None, used: None })
            .collect();
        let written = py.detach(|| self.inner.write(&rows, &about, now_micros()));
        let written = written.map_err(|error| match error {
            WriteError::Columns(error) => BatchError::of(error),
            WriteError::Folder(error) => StorageError::of(error),
        })?;
        let secs = [written.encode_time, written.publish_time].map(|time| time.as_secs_f64());
        let [encode_secs, publish_secs] = secs;
        let undeleted = written.undeleted.map(|error| error.to_string());
        Ok((written.name.to_string(), written.size_bytes, encode_secs, publish_secs, undeleted))
    }

    /// Deletes all files of rollouts.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.clear()).map_err(StorageError::of)
    }
}

/// The end of a folder that a trainer holds.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct FolderReader {
    inner: Mutex<BatchReader>,
    /// The process that last held the lock: in a fork that was made meanwhile it stays locked for ever.
    holder: AtomicU32,
}

#[pymethods]
impl FolderReader {
    #[new]
    fn new(place: &str) -> PyResult<Self> {
        let inner = Mutex::new(BatchReader::open(place).map_err(StorageError::of)?);
        Ok(Self { inner, holder: AtomicU32::new(std::process::id()) })
    }

    /// The oldest batch that was not read yet, and what was found wrong on the way to it.
    fn read_next(&self, py: Python<'_>) -> PyResult<(Option<Read>, Problems)> {
        let (batch, problems) = self.with(py, |reader| told(reader, BatchReader::read_next))?;
        Ok((batch.map_err(StorageError::of)?.map(in_groups), problems))
    }

    /// All batches that were not read yet.
    fn read_all(&self, py: Python<'_>) -> PyResult<(Vec<Read>, Problems)> {
        let (batches, problems) = self.with(py, |reader| told(reader, BatchReader::read_all))?;
        Ok((batches.map_err(StorageError::of)?.into_iter().map(in_groups).collect(), problems))
    }

    /// The last thousand problems.
    #[getter]
    fn problems(&self, py: Python<'_>) -> PyResult<Problems> {
        self.with(py, |reader| last_problems(reader, usize::MAX))
    }

    /// How many there were in all.
    #[getter]
    fn problems_total(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |reader| reader.problems_total())
    }
}

/// How long to wait for another thread before looking whether somebody wants to interrupt.
const TURN: Duration = Duration::from_millis(1);

impl FolderReader {
    /// Works with the reader without the GIL, when no other thread does.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut BatchReader) -> R + Send) -> PyResult<R> {
        let process = std::process::id();
        loop {
            // A panic in Rust is an exception in Python, and what was read before it is still true.
            let mut held = match self.inner.try_lock() {
                Ok(reader) => Some(reader),
                Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(reader) = held.as_deref_mut() {
                self.holder.store(process, Ordering::Relaxed);
                return Ok(py.detach(|| work(reader)));
            }
            if self.holder.load(Ordering::Relaxed) != process {
                let why = "another thread was reading when this process was forked; make a new reader";
                return Err(StorageError::of(why));
            }
            py.check_signals()?;
            py.detach(|| std::thread::sleep(TURN));
        }
    }
}

/// What the work gives, and the problems that came up in it.
fn told<T>(
    reader: &mut BatchReader,
    work: impl FnOnce(&mut BatchReader) -> Result<T, FolderError>,
) -> (Result<T, FolderError>, Problems) {
    let before = reader.problems_total();
    let result = work(reader);
    let news = usize::try_from(reader.problems_total() - before).unwrap_or(usize::MAX);
    (result, last_problems(reader, news))
}

fn last_problems(reader: &BatchReader, count: usize) -> Problems {
    let last = reader.problems().rev().take(count).map(|problem| (problem.name.clone(), problem.why.clone()));
    let mut last: Problems = last.collect();
    last.reverse();
    last
}

/// A batch's rollouts in groups, in the order in which groups first come up.
fn in_groups(batch: Batch) -> Read {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<Rollout>> = Vec::new();
    for row in batch.rows {
        let place = *places.entry(row.group).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups.get_mut(place).expect("made when the group first came up").push(row.rollout.into());
    }
    (groups, RolloutMetadata::from(&batch.about.metadata))
}

fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
