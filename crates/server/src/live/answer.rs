//! What is told of every run.

use axum::Json;
use axum::extract::{Query, State};
use rollyard_core::ledger::{LeaseOut, Ledger, OpenGroup, Paced, Staleness};
use rollyard_core::run_config::Mode;
use rollyard_store::yard::{Yard, YardError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::history::{LiveHistory, LiveRates, Look};
use super::stuck::{self, Facts, Stuck};
use super::{STALENESS_GROUPS_MAX, look, now_ms};
use crate::App;
use crate::api::{ArchiveAnswer, BooksAnswer};
use crate::error::{ApiError, ErrorAnswer};
use crate::generators::{GeneratorAnswer, Noted};

/// Leases and open groups that are told one by one.
const LISTED_MAX: usize = 20;

/// What was dropped in so many milliseconds counts as lately.
const LATELY_MS: u64 = 60_000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Only what came after this time, in milliseconds since 1970, is told of the history; all ten minutes if left out.
    after_ms: Option<u64>,
}

/// The yard at work.
#[derive(Serialize, ToSchema)]
pub(super) struct LiveAnswer {
    /// The server's clock, in milliseconds since 1970; ages are to be told from it.
    now_ms: u64,
    /// When the server began; what was before is in no rate and no history.
    began_ms: u64,
    runs: Vec<LiveRun>,
}

#[derive(Serialize, ToSchema)]
struct LiveRun {
    run: String,
    /// `queue` or `replay`.
    mode: &'static str,
    task_type: String,
    group_size: usize,
    /// Of the weights that engines sample with, if anybody said.
    version: Option<u64>,
    /// The trainer's, in a run that samples.
    step: Option<i64>,
    last_commit: Option<u64>,
    books: BooksAnswer,
    room: LiveRoom,
    groups: LiveGroups,
    /// Rollouts that can be drawn, in a run that samples.
    pool: Option<usize>,
    /// Of the last ten seconds.
    rates: LiveRates,
    history: LiveHistory,
    /// Null where nobody said which weights are those of now.
    staleness: Option<LiveStaleness>,
    leases_out: usize,
    /// Those that expire first, at most 20.
    leases: Vec<LiveLease>,
    /// The groups that were not written to for the longest time, at most 20.
    open: Vec<LiveOpenGroup>,
    /// Who makes its rollouts, once it was started.
    generator: Option<GeneratorAnswer>,
    /// Where its rollouts are kept, if they are.
    archive: Option<ArchiveAnswer>,
    /// What does not get on, the gravest first.
    stuck: Vec<Stuck>,
}

/// What counts against the limits of the run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct LiveRoom {
    pub(super) rollouts: u64,
    pub(super) rollouts_max: u64,
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
}

/// Groups by where they stand.
#[derive(Serialize, ToSchema)]
struct LiveGroups {
    /// Waiting for rollouts.
    open: usize,
    /// The hooks of the generator are asked about them.
    posed: usize,
    /// To be read.
    ready: usize,
    /// With readers.
    leased: usize,
}

/// Held rollouts by how far the weights that made them are behind.
#[derive(Serialize, ToSchema)]
struct LiveStaleness {
    /// `versions` of the weights in a queue, `steps` of the trainer in a run that samples.
    unit: &'static str,
    /// The freshest first; those made with weights that are not known yet are below 0.
    behind: Vec<LiveBehind>,
    /// Rollouts of which nobody said what made them.
    unknown: u64,
    /// Held rollouts that were not looked at, because there are too many; those that are read first were.
    left_out: u64,
}

#[derive(Serialize, ToSchema)]
struct LiveBehind {
    behind: i64,
    rollouts: u64,
}

#[derive(Serialize, ToSchema)]
struct LiveLease {
    lease: u64,
    reader: String,
    /// The server acks it once the answer has arrived.
    auto: bool,
    /// 0 for a sample, whose rollouts are drawn one by one.
    groups: usize,
    rollouts: usize,
    granted_ms: u64,
    until_ms: u64,
}

/// A group that waits for rollouts.
#[derive(Serialize, ToSchema)]
struct LiveOpenGroup {
    group: u64,
    instance: String,
    /// Rollouts it has, and how many make it full.
    have: usize,
    want: usize,
    opened_ms: u64,
    touched_ms: u64,
    /// When it is used as it is, or dropped, unless more comes.
    until_ms: u64,
}

/// What the ledger tells in one go.
struct Seen {
    look: Look,
    mode: Mode,
    task_type: String,
    group_size: usize,
    version: Option<u64>,
    step: Option<i64>,
    last_commit: Option<u64>,
    books: BooksAnswer,
    room: LiveRoom,
    leased: usize,
    pool: Option<usize>,
    leases_out: usize,
    leases: Vec<LeaseOut>,
    open: Vec<OpenGroup>,
    paced: Paced,
    noted: Noted,
    /// `None` if it was not asked for.
    staleness: Option<Option<Staleness>>,
}

impl Seen {
    fn of(ledger: &Ledger, with_staleness: bool) -> Self {
        let config = ledger.config();
        let (rollouts, bytes) = ledger.books().kept();
        Self {
            look: look(ledger),
            mode: config.mode,
            task_type: config.task_type.clone(),
            group_size: config.group_len(),
            version: ledger.version(),
            step: ledger.step(),
            last_commit: ledger.commits().last().copied(),
            books: ledger.books().into(),
            room: LiveRoom {
                rollouts,
                rollouts_max: config.max_buffer_size,
                bytes,
                bytes_max: config.max_buffer_bytes,
            },
            leased: ledger.groups_out(),
            pool: ledger.pool_size(),
            leases_out: ledger.leases_out(),
            leases: ledger.leases_out_until(LISTED_MAX),
            open: ledger.longest_open(LISTED_MAX),
            paced: ledger.paced(),
            noted: Noted::of(ledger),
            staleness: with_staleness.then(|| ledger.staleness(STALENESS_GROUPS_MAX)),
        }
    }
}

/// What every run is doing: rates, group states, staleness, leases, and what is stuck and why.
#[utoipa::path(get, path = "/live", tag = "live", params(Asked),
    responses((status = 200, body = LiveAnswer), (status = 400, body = ErrorAnswer)))]
pub(super) async fn show(
    State(app): State<App>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<LiveAnswer>, ApiError> {
    let Query(asked) = asked.map_err(|error| {
        ApiError::bad("bad_query", format!("{}; the query may have after_ms=MILLISECONDS", error.body_text()))
    })?;
    let mut runs = Vec::new();
    for yard in app.runs.all() {
        match describe(&app, &yard, asked.after_ms.unwrap_or_default()).await {
            Ok(run) => runs.push(run),
            Err(error) if app.runs.is_going(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Json(LiveAnswer { now_ms: now_ms(), began_ms: app.live.began_ms, runs }))
}

async fn describe(app: &App, yard: &Yard, after_ms: u64) -> Result<LiveRun, YardError> {
    let run = yard.run_name().to_string();
    let counted = app.live.counted(&run);
    let count_anew = counted.is_none();
    let seen = yard.ask(move |ledger| Seen::of(ledger, count_anew)).await?;
    let staleness = match seen.staleness {
        Some(staleness) => {
            app.live.keep_counted(&run, staleness.clone());
            staleness
        }
        None => counted.flatten(),
    };
    let mut generator = app.generators.describe(&run, seen.noted);
    if let Some(generator) = &mut generator {
        generator.log.clear();
    }
    let archive = app.runs.archiver(&run).map(|archiver| ArchiveAnswer::from(archiver.status()));
    let (rates, history, moved, lately) = {
        let mut courses = app.live.courses();
        let course = courses.entry(run.clone()).or_default();
        let lately = course.left_lately(&seen.look, LATELY_MS);
        (course.rates(&seen.look), course.answer(after_ms), course.moved(&seen.look), lately)
    };
    let is_replay = seen.mode == Mode::Replay;
    let stuck = stuck::find(&Facts {
        run: &run,
        now_ms: seen.look.at_ms,
        moved,
        lately,
        open_groups: seen.look.open,
        longest_open: seen.open.first(),
        ready: seen.pool.unwrap_or(seen.look.ready),
        unit: if is_replay { "rollouts" } else { "groups" },
        leases: &seen.leases,
        leases_out: seen.leases_out,
        group_size: seen.group_size,
        room: &seen.room,
        paced: seen.paced,
        generator: generator.as_ref(),
        archive: archive.as_ref(),
    });
    Ok(LiveRun {
        run,
        mode: if is_replay { "replay" } else { "queue" },
        task_type: seen.task_type,
        group_size: seen.group_size,
        version: seen.version,
        step: seen.step,
        last_commit: seen.last_commit,
        books: seen.books,
        room: seen.room,
        groups: LiveGroups {
            open: seen.look.open,
            posed: seen.look.posed,
            ready: seen.look.ready,
            leased: seen.leased,
        },
        pool: seen.pool,
        rates,
        history,
        staleness: staleness.map(|staleness| LiveStaleness::of(staleness, is_replay)),
        leases_out: seen.leases_out,
        leases: seen.leases.into_iter().map(LiveLease::from).collect(),
        open: seen.open.into_iter().map(LiveOpenGroup::from).collect(),
        generator,
        archive,
        stuck,
    })
}

impl LiveStaleness {
    fn of(staleness: Staleness, is_replay: bool) -> Self {
        let Staleness { behind, unknown, left_out } = staleness;
        let behind = behind.into_iter().map(|(behind, rollouts)| LiveBehind { behind, rollouts });
        let unit = if is_replay { "steps" } else { "versions" };
        Self { unit, behind: behind.collect(), unknown, left_out }
    }
}

impl From<LeaseOut> for LiveLease {
    fn from(out: LeaseOut) -> Self {
        let LeaseOut { lease, reader, auto, groups, rollouts, granted_at, until } = out;
        let (granted_ms, until_ms) = (granted_at.0, until.0);
        Self { lease: lease.0, reader: reader.into(), auto, groups, rollouts, granted_ms, until_ms }
    }
}

impl From<OpenGroup> for LiveOpenGroup {
    fn from(open: OpenGroup) -> Self {
        let OpenGroup { group, instance, len, size, opened_at, touched_at, until } = open;
        Self {
            group: group.0,
            instance: instance.into(),
            have: len,
            want: size,
            opened_ms: opened_at.0,
            touched_ms: touched_at.0,
            until_ms: until.0,
        }
    }
}
