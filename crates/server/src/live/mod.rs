//! The yard at work, for whoever watches it: `GET /api/live`.
//!
//! A task looks at every run once a second and keeps the last ten minutes ([`history`]), from which rates and curves
//! come. The rest is looked up when somebody asks ([`answer`]), and [`stuck`] says in words what does not get on.

mod answer;
mod history;
mod stuck;

use rollyard_core::ledger::{Ledger, Staleness};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::runs::Runs;
use history::{Course, Look};

/// How often runs are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Groups of a queue whose versions are looked at: about two milliseconds in which the run does nothing else.
const STALENESS_GROUPS_MAX: usize = 20_000;

/// For that long a count of versions is good enough.
const STALENESS_KEPT: Duration = Duration::from_secs(3);

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(answer::show))
}

/// What was seen of the runs since the server began.
#[derive(Debug)]
pub(crate) struct Live {
    began_ms: u64,
    /// By name.
    courses: Mutex<BTreeMap<String, Course>>,
    staleness: Mutex<BTreeMap<String, Counted>>,
}

#[derive(Debug)]
struct Counted {
    at: Instant,
    staleness: Option<Staleness>,
}

impl Default for Live {
    fn default() -> Self {
        Self { began_ms: now_ms(), courses: Mutex::default(), staleness: Mutex::default() }
    }
}

impl Live {
    /// Looks at every run until the server stops.
    pub(crate) async fn watch(self: Arc<Self>, runs: Arc<Runs>, stopping: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        // After a disk that hung for a while, nobody needs the looks that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stopping.cancelled() => return,
            }
            for yard in runs.all() {
                let look = tokio::select! {
                    look = yard.ask(look) => look,
                    () = stopping.cancelled() => return,
                };
                // A run that cannot answer has a gap in its curves; whoever asks for it is told why.
                if let Ok(look) = look {
                    self.courses().entry(yard.run_name().to_string()).or_default().push(look);
                }
            }
        }
    }

    pub(crate) fn began_ms(&self) -> u64 {
        self.began_ms
    }

    fn courses(&self) -> MutexGuard<'_, BTreeMap<String, Course>> {
        self.courses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last count of a run's versions, unless it is too old.
    fn counted(&self, run: &str) -> Option<Option<Staleness>> {
        let counted = self.staleness.lock().unwrap_or_else(PoisonError::into_inner);
        counted
            .get(run)
            .filter(|known| known.at.elapsed() < STALENESS_KEPT)
            .map(|known| known.staleness.clone())
    }

    fn keep_counted(&self, run: &str, staleness: Option<Staleness>) {
        let counted = Counted { at: Instant::now(), staleness };
        self.staleness.lock().unwrap_or_else(PoisonError::into_inner).insert(run.to_owned(), counted);
    }
}

/// What is noted every second: counters only, so that it costs the same whatever is held.
fn look(ledger: &Ledger) -> Look {
    let books = ledger.books();
    Look {
        at_ms: now_ms(),
        admitted: books.admitted,
        // What a run that samples hands out may come back to be drawn again; elsewhere it is leased or trained.
        read: ledger.flow().map_or(books.leased + books.trained, |flow| flow.sampled),
        trained: books.trained,
        dropped: books.dropped.clone(),
        held: books.held,
        leased: books.leased,
        open: ledger.open_groups(),
        posed: ledger.posed_groups(),
        ready: ledger.ready_groups(),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
