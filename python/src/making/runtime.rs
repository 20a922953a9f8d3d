//! The threads that Rust's futures run on: started when first needed, once a process.
//!
//! A fork has none of its parent's threads, so a child starts its own. The lock is only ever held with the GIL,
//! and who forks holds that: no child finds it locked.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Whoever waits looks this often whether the user has pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// With the process that started it.
static STARTED: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

pub(crate) fn runtime(_attached: Python<'_>) -> PyResult<&'static Runtime> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match *started {
        Some((owner, runtime)) if owner == process => Ok(runtime),
        _ => {
            let runtime = Builder::new_multi_thread().enable_all().thread_name("rollyard").build();
            let runtime: &'static Runtime = Box::leak(Box::new(runtime.map_err(PyErr::from)?));
            *started = Some((process, runtime));
            Ok(runtime)
        }
    }
}

/// Waits for the future without the GIL. Ctrl-C drops it.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let task = runtime(py)?.spawn(async move {
        // Whoever waited may be gone.
        let _ = sender.send(future.await);
    });
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(PATIENCE);
            (receiver, received)
        });
        match received {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| task.abort())?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("what was waited for broke; see standard error"));
            }
        }
    }
}
