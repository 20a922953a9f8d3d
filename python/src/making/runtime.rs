//! The threads that Rust's futures run on: started when first needed, once a process.
//!
//! A fork has none of its parent's threads, so a child starts its own. The lock is only ever held with the GIL,
//! and who forks holds that: no child finds it locked.

use pyo3::prelude::*;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

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

/// Waits for the future on this thread, without the GIL. Ctrl-C drops it.
pub(crate) fn wait<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    let runtime = runtime(py)?;
    let waited = async {
        let mut future = pin!(future);
        loop {
            match tokio::time::timeout(PATIENCE, future.as_mut()).await {
                Ok(value) => return Ok(value),
                Err(_) => Python::attach(|py| py.check_signals())?,
            }
        }
    };
    let block = || runtime.block_on(waited);
    // A loader or a filter that we called may call us again, on a thread that already waits.
    py.detach(|| if Handle::try_current().is_ok() { tokio::task::block_in_place(block) } else { block() })
}
