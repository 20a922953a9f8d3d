//! One view, and the job that keeps its catalog up with its files.
//!
//! There is one job for a view at any time; whoever wants the catalog fresh joins it.

use rollyard_store::catalog::{Catalog, Progress};
use rollyard_store::query::Query;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use utoipa::ToSchema;

use super::answer::blocking;
use crate::error::{ApiError, ErrorDetail};

#[derive(Debug)]
pub(crate) struct View {
    pub(super) key: String,
    /// Resolved, in the order of their names.
    pub(super) places: Vec<String>,
    pub(super) query: Query,
    indexing: watch::Sender<Indexing>,
    /// Set when nobody wants the view any longer.
    cancelled: Arc<AtomicBool>,
    pub(super) following: Mutex<Following>,
    pub(super) stopping: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// Who listens to new rows, and so wants the files looked at again and again.
#[derive(Debug, Default)]
pub(super) struct Following {
    pub(super) listeners: usize,
    /// Somebody looks at the files for all of them.
    pub(super) is_polled: bool,
}

/// How far the catalog is: it says the same as long as this is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Grows when rows that were there before changed or went.
    pub(super) revision: i64,
    pub(super) last_row: i64,
}

/// What is known of the job that runs, or ran last.
#[derive(Clone, Debug)]
pub(super) struct Indexing {
    pub(super) progress: Progress,
    pub(super) is_running: bool,
    /// Jobs that ended well.
    pub(super) times: u64,
    pub(super) error: Option<ApiError>,
    began: Instant,
    took_secs: f64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct IndexingAnswer {
    files_done: u64,
    files: u64,
    bytes_done: u64,
    bytes: u64,
    /// In the catalog, with those of earlier times.
    rows: u64,
    /// Could not be read; they are listed and shown raw.
    bad_rows: u64,
    /// Another process is indexing the same place, and is waited for.
    waiting: bool,
    pub(super) done: bool,
    /// Why it ended before it was done.
    error: Option<ErrorDetail>,
    elapsed_secs: f64,
}

impl View {
    pub(super) fn new(
        key: String,
        places: Vec<String>,
        catalog: Catalog,
        stopping: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let nothing = Indexing {
            progress: Progress::default(),
            is_running: false,
            times: 0,
            error: None,
            began: Instant::now(),
            took_secs: 0.0,
        };
        Self {
            key,
            places,
            query: Query::new(catalog),
            indexing: watch::Sender::new(nothing),
            cancelled: Arc::default(),
            following: Mutex::default(),
            stopping,
            tasks,
        }
    }

    pub(super) fn catalog(&self) -> &Catalog {
        self.query.catalog()
    }

    pub(super) fn state(&self) -> Indexing {
        self.indexing.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Indexing> {
        self.indexing.subscribe()
    }

    /// Looks at the files again, unless that is being done already.
    pub(super) fn index(self: &Arc<Self>) -> watch::Receiver<Indexing> {
        let begun = self.indexing.send_if_modified(|indexing| {
            let begins = !indexing.is_running;
            if begins {
                let Progress { rows, bad_rows, .. } = indexing.progress;
                indexing.progress = Progress { rows, bad_rows, ..Progress::default() };
                indexing.is_running = true;
                indexing.began = Instant::now();
            }
            begins
        });
        if begun {
            self.tasks.spawn(Arc::clone(self).run());
        }
        self.indexing.subscribe()
    }

    /// The same, and waits until it is done.
    pub(super) async fn refresh(self: &Arc<Self>) -> Result<(), ApiError> {
        let mut job = self.index();
        let Ok(ended) = job.wait_for(|indexing| !indexing.is_running).await else { return Ok(()) };
        ended.error.clone().map_or(Ok(()), Err)
    }

    async fn run(self: Arc<Self>) {
        let view = Arc::clone(&self);
        let job = blocking(move || {
            let report = |progress| view.indexing.send_modify(|indexing| indexing.progress = progress);
            Ok(view.catalog().refresh(&report, &view.cancelled)?)
        });
        tokio::pin!(job);
        let ended = tokio::select! {
            ended = &mut job => ended,
            () = self.stopping.cancelled() => {
                self.cancel();
                job.await
            }
        };
        self.indexing.send_modify(|indexing| {
            indexing.is_running = false;
            indexing.took_secs = indexing.began.elapsed().as_secs_f64();
            match ended {
                Ok(progress) => {
                    indexing.progress = progress;
                    indexing.error = None;
                    indexing.times += 1;
                }
                Err(error) => indexing.error = Some(error),
            }
        });
    }

    pub(super) fn is_followed(&self) -> bool {
        self.following.lock().unwrap_or_else(PoisonError::into_inner).listeners > 0
    }

    /// Ends its job.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Reads the catalog.
    pub(super) fn mark(&self) -> Result<Mark, ApiError> {
        super::summary::mark(&self.catalog().connect()?)
    }
}

impl From<&Indexing> for IndexingAnswer {
    fn from(indexing: &Indexing) -> Self {
        let Progress { files_done, files, bytes_done, bytes, rows, bad_rows, waiting } = indexing.progress;
        // Looking at files that did not grow is no reason to say that the view is not ready.
        let is_behind = indexing.is_running && bytes_done < bytes;
        let done = indexing.times > 0 && indexing.error.is_none() && !is_behind;
        let error = indexing.error.as_ref().map(ApiError::detail);
        let elapsed_secs =
            if indexing.is_running { indexing.began.elapsed().as_secs_f64() } else { indexing.took_secs };
        Self { files_done, files, bytes_done, bytes, rows, bad_rows, waiting, done, error, elapsed_secs }
    }
}
