//! The replay buffer, as Python sees it.
//!
//! Read in this order: [`config`] is what Python says once, [`given`] makes rollouts of whatever batches are
//! added, [`row`] is what is sampled, and here the core's buffer stands behind a lock. Under the lock references
//! are counted and nothing else: what is added exists before, and tensors are filled afterwards. Nobody holds
//! the GIL meanwhile.

mod config;
mod given;
mod row;
mod stats;

pub(crate) use row::{RolloutWithAdvantage, RolloutWithCount};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rollyard_core::batch::{self, Layout, Weighted};
use rollyard_core::replay::{Buffer, NewGroup, ReplayError as CoreError, Sampled};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::batch::{Made, WireLayout, made};
use crate::errors::{BatchError, PacedError, ReplayError};
use config::WireConfig;
use given::Given;

/// Whoever waits looks this often whether the user has pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Replay {
    state: Mutex<State>,
    /// Something was added, sampled or expired, or somebody wants to be heard.
    changed: Condvar,
    /// Another thread held the lock when this process was forked, and will never give it back here.
    lost: AtomicBool,
    token_delay_max: Option<u64>,
}

struct State {
    buffer: Buffer,
    batches_added: u64,
    changes: u64,
}

/// Rows of a batch, and the trainer's step when they were drawn.
type Drawn = (Vec<Sampled>, i64);

#[pymethods]
impl Replay {
    #[new]
    fn new(config: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = WireConfig::read(config)?.into_core().and_then(Buffer::new).map_err(raised)?;
        Ok(Self {
            token_delay_max: buffer.config().rules.token_delay_max,
            state: Mutex::new(State { buffer, batches_added: 0, changes: 0 }),
            changed: Condvar::new(),
            lost: AtomicBool::new(false),
        })
    }

    /// The trainer is at `step`; gives how many rollouts that made too old.
    fn set_step(&self, py: Python<'_>, step: i64, now: f64) -> PyResult<usize> {
        self.change(py, |state| state.buffer.set_step(step, now))
    }

    fn rewind(&self, py: Python<'_>, step: i64, now: f64) -> PyResult<usize> {
        self.change(py, |state| Ok(state.buffer.rewind(step, now)))
    }

    /// Adds all the batches or none of them; gives how many rollouts were kept.
    fn add(
        &self,
        py: Python<'_>,
        batches: &Bound<'_, PyAny>,
        loss_module: Option<&Bound<'_, PyAny>>,
        clock: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<usize> {
        let given = Given::read(batches, loss_module)?;
        let count = given.group_counts.len() as u64;
        let deadline = Instant::now() + duration(timeout);
        let mut groups = Some(given.groups);
        loop {
            let now: f64 = clock.call0()?.extract()?;
            let left = deadline.saturating_duration_since(Instant::now());
            // Only whoever will try again needs the groups again.
            let attempt = if left.is_zero() { groups.take() } else { groups.clone() };
            let attempt = attempt.unwrap_or_default();
            match py.detach(|| self.try_add(attempt, count, now, left.min(PATIENCE)))? {
                Ok(inserted) => return Ok(inserted),
                Err(CoreError::Paced { .. }) if !left.is_zero() => py.check_signals()?,
                Err(error) => return Err(given::raised_in_batch(error, &given.group_counts)),
            }
        }
    }

    /// This process's rows of the next batch.
    fn sample<'py>(&self, py: Python<'py>, now: f64) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some((rows, _)) = self.draw(py, now)? else { return Ok(None) };
        let rows =
            rows.into_iter().map(|row| RolloutWithCount::new(py, row)).collect::<PyResult<Vec<_>>>()?;
        Ok(Some(PyList::new(py, rows)?))
    }

    /// The same as tensors. They are filled after the lock was given back.
    fn sample_batch<'py>(
        &self,
        py: Python<'py>,
        now: f64,
        layout: WireLayout,
    ) -> PyResult<Option<Vec<Made<'py>>>> {
        let layout = Layout::try_from(layout)?;
        let Some((rows, step)) = self.draw(py, now)? else { return Ok(None) };
        let oldest = self.token_delay_max.map(|delay| oldest_version(step, delay));
        let dict = py.detach(|| {
            let weighted: Vec<Weighted<'_>> = rows
                .iter()
                .map(|Sampled { rollout, advantage, .. }| Weighted { rollout, advantage: *advantage })
                .collect();
            batch::training(&weighted, &layout, oldest)
        });
        made(py, dict.map_err(BatchError::of)?).map(Some)
    }

    /// Draws a batch and makes nothing of it: what sampling itself costs. Gives how many rows it has.
    fn skip(&self, py: Python<'_>, now: f64) -> PyResult<Option<usize>> {
        Ok(self.draw(py, now)?.map(|(rows, _)| rows.len()))
    }

    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| Ok(self.lock()?.buffer.size()))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, batches_added) =
            py.detach(|| self.lock().map(|state| (state.buffer.stats(), state.batches_added)))?;
        stats::as_dict(py, &stats, batches_added)
    }

    /// Waits until something happened since `seen`, and gives the number to wait with next. -1 never waits.
    fn wait(&self, py: Python<'_>, seen: i64, timeout: f64) -> PyResult<i64> {
        let deadline = Instant::now() + duration(timeout);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let changes = py.detach(|| self.wait_once(seen, left.min(PATIENCE)))?;
            if changes != seen || left.is_zero() {
                return Ok(changes);
            }
            py.check_signals()?;
        }
    }

    /// Lets everyone who waits look again.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |_| Ok(()))
    }

    /// Called in a forked child, which has one thread: if the lock is taken now, it is for ever.
    fn after_fork(&self) {
        if matches!(self.state.try_lock(), Err(TryLockError::WouldBlock)) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Replay {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(ReplayError::new_err(
                "another thread was using this buffer when the process was forked; make a new one in the child",
            ));
        }
        // Every change of the buffer is whole before anything could panic.
        Ok(self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Does it under the lock, without the GIL, and tells whoever waits.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> Result<T, CoreError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut state = self.lock()?;
            let done = work(&mut state).map_err(raised)?;
            self.tell(&mut state);
            Ok(done)
        })
    }

    fn tell(&self, state: &mut State) {
        state.changes += 1;
        self.changed.notify_all();
    }

    fn draw(&self, py: Python<'_>, now: f64) -> PyResult<Option<Drawn>> {
        py.detach(|| {
            let mut state = self.lock()?;
            let rows = state.buffer.sample(now).map_err(raised)?;
            // Whoever found too little waits for news, and must not wake itself.
            let Some(rows) = rows else { return Ok(None) };
            self.tell(&mut state);
            Ok(Some((rows, state.buffer.step())))
        })
    }

    /// Adds the groups, or waits for a change if the limiter says no.
    fn try_add(
        &self,
        groups: Vec<NewGroup>,
        batches: u64,
        now: f64,
        patience: Duration,
    ) -> PyResult<Result<usize, CoreError>> {
        let mut state = self.lock()?;
        let added = state.buffer.add(groups, now);
        match &added {
            Ok(_) => {
                state.batches_added += batches;
                self.tell(&mut state);
            }
            Err(CoreError::Paced { .. }) => drop(self.changed.wait_timeout(state, patience)),
            Err(_) => {}
        }
        Ok(added.map(|added| added.inserted))
    }

    fn wait_once(&self, seen: i64, patience: Duration) -> PyResult<i64> {
        let number = |state: &State| i64::try_from(state.changes).unwrap_or(i64::MAX);
        let state = self.lock()?;
        if number(&state) != seen || patience.is_zero() {
            return Ok(number(&state));
        }
        let (state, _) =
            self.changed.wait_timeout(state, patience).unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(number(&state))
    }
}

/// As long as said, within reason.
fn duration(secs: f64) -> Duration {
    const DAY: f64 = 86_400.0;
    Duration::try_from_secs_f64(secs.clamp(0.0, 365.0 * DAY)).unwrap_or(Duration::ZERO)
}

/// Tokens of older weights are not in the loss. A bound below every version leaves all of them in it.
fn oldest_version(step: i64, delay: u64) -> i32 {
    let oldest = step.saturating_sub_unsigned(delay).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    i32::try_from(oldest).expect("clamped just above")
}

fn raised(error: CoreError) -> PyErr {
    match error {
        CoreError::Paced { .. } => PacedError::of(error),
        _ => ReplayError::of(error),
    }
}
