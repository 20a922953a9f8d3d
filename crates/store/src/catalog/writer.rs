//! Puts rows into the catalog, in transactions that also say how far each file has come.
//!
//! So a crash leaves a catalog that knows less than the files, never one that is wrong about them.

use super::counts::{Counts, Gathered};
use super::fates;
use super::pipeline::{Found, Part};
use super::plan::{self, Job, Plan};
use super::progress::Progress;
use super::sources::{self, Reached};
use crate::places::Places;
use rusqlite::{Connection, params};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

const COMMIT_ROWS: u64 = 20_000;
const COMMIT_AFTER: Duration = Duration::from_millis(500);
/// The first rows are awaited.
const FIRST_COMMIT_AFTER: Duration = Duration::from_millis(100);
/// Below, asking the index for each id is quicker than loading all ids.
const LOAD_IDS_FROM_BYTES: u64 = 32 << 20;

/// Ids are hashes already.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.as_chunks::<8>().0 {
            self.0 ^= u64::from_le_bytes(*part);
        }
    }
}

#[derive(Debug)]
enum Ids {
    Loaded(HashSet<u128, BuildHasherDefault<AsItIs>>),
    Indexed,
}

#[derive(Debug)]
pub(crate) struct Writer<'c> {
    connection: &'c Connection,
    places: &'c Places,
    ids: Ids,
    next_row: i64,
    since_commit: u64,
    begun: Option<Instant>,
    has_committed: bool,
    /// Of the job that is being written.
    current: Option<Current>,
    counts: Counts,
    /// Of the rows since the last commit.
    groups: Gathered,
    pub progress: Progress,
}

#[derive(Debug)]
struct Current {
    job: usize,
    source: i64,
    reached: Reached,
    /// Why it cannot be read on. What comes after a gap is left for another time.
    problem: Option<String>,
}

const INSERT: &str = "INSERT INTO rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
  ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39,
  ?40, ?41, ?42)";

impl<'c> Writer<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        places: &'c Places,
        new_bytes: u64,
    ) -> rusqlite::Result<Self> {
        let is_indexed: bool = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'rows_id')",
            [],
            |row| row.get(0),
        )?;
        let ids = if is_indexed && new_bytes < LOAD_IDS_FROM_BYTES {
            Ids::Indexed
        } else {
            let mut select = connection.prepare("SELECT id FROM rows WHERE bad = 0")?;
            let ids = select.query_map([], |row| row.get(0).map(u128::from_be_bytes))?;
            Ids::Loaded(ids.collect::<rusqlite::Result<_>>()?)
        };
        let last: i64 =
            connection.query_row("SELECT coalesce(max(row), 0) FROM rows", [], |row| row.get(0))?;
        let counts = Counts::read(connection)?;
        let progress = Progress { rows: counts.rows, bad_rows: counts.bad_rows, ..Progress::default() };
        Ok(Self {
            connection,
            places,
            ids,
            next_row: last + 1,
            since_commit: 0,
            begun: None,
            has_committed: false,
            current: None,
            counts,
            groups: Gathered::default(),
            progress,
        })
    }

    pub(crate) fn put(&mut self, job: &Job, part: &Part) -> rusqlite::Result<()> {
        self.begin()?;
        let mut current = match self.current.take().filter(|current| current.job == part.job) {
            Some(current) => current,
            None => self.start(job, part.job)?,
        };
        current.problem = current.problem.take().or_else(|| part.problem.clone());
        if current.problem.is_none() {
            self.take(&mut current, part)?;
        }
        self.progress.bytes_done += part.bytes;
        self.since_commit += part.rows.len() as u64 + part.fates.len() as u64;
        if part.is_last_of_job {
            sources::reach(self.connection, current.source, &current.reached)?;
            self.finish(&current, job)?;
        } else {
            self.current = Some(current);
        }
        let after = if self.has_committed { COMMIT_AFTER } else { FIRST_COMMIT_AFTER };
        if self.since_commit >= COMMIT_ROWS || self.begun.is_some_and(|begun| begun.elapsed() >= after) {
            self.commit()?;
        }
        Ok(())
    }

    fn take(&mut self, current: &mut Current, part: &Part) -> rusqlite::Result<()> {
        for found in &part.rows {
            self.row(current, found)?;
        }
        for fate in &part.fates {
            fates::put(self.connection, current.source, fate)?;
            if fates::tell_one(self.connection, &fate.uid)? > 0 {
                revise(self.connection)?;
            }
        }
        if let Some(reached) = part.reached {
            current.reached = match reached.bytes {
                u64::MAX => Reached { pending_bytes: reached.pending_bytes, ..current.reached },
                _ => Reached { lines: current.reached.lines + reached.lines, ..reached },
            };
        }
        Ok(())
    }

    fn start(&mut self, job: &Job, nth: usize) -> rusqlite::Result<Current> {
        match job.known {
            Some((source, reached)) => Ok(Current {
                job: nth,
                source,
                reached: Reached { pending_bytes: 0, ..reached },
                problem: None,
            }),
            None => {
                let source = sources::begin(self.connection, &job.info, job.format)?;
                Ok(Current { job: nth, source, reached: Reached::default(), problem: None })
            }
        }
    }

    fn finish(&mut self, current: &Current, job: &Job) -> rusqlite::Result<()> {
        self.progress.files_done += 1;
        let mut info = job.info.clone();
        // Without its stamp it is looked at again the next time.
        info.stamp = match current.problem {
            Some(_) => String::new(),
            None => plan::stamp(self.places, &info),
        };
        sources::finish(self.connection, current.source, &info, current.problem.as_deref())
    }

    fn row(&mut self, current: &Current, found: &Found) -> rusqlite::Result<()> {
        let s = &found.summary;
        let is_bad = s.problem.is_some();
        let is_copy = !is_bad && !self.is_new(s.id)?;
        let line = current.reached.lines + found.nth + 1;
        let row = self.next_row;
        self.next_row += 1;
        self.connection.prepare_cached(INSERT)?.execute(params![
            row,
            s.step,
            s.reward,
            s.data_source,
            s.sample_index,
            s.rollout_n,
            s.validate,
            s.experiment_name,
            s.status,
            s.reason,
            s.version,
            s.lag,
            s.mixed,
            s.advantage,
            s.stop_reason,
            s.truncated,
            s.turns,
            s.message_count,
            s.tool_calls,
            s.prompt_chars,
            s.response_chars,
            s.reasoning_chars,
            s.tokens,
            s.repetition,
            s.unclosed,
            s.leak,
            s.tampering,
            s.format_only,
            s.odd,
            s.time,
            s.prompt_hash,
            s.group_id,
            s.instance_id,
            s.uid,
            s.trained_step,
            is_copy,
            is_bad,
            s.id.to_be_bytes(),
            current.source,
            line as i64,
            found.offset as i64,
            found.length as i64,
        ])?;
        if let Some(extra) = &s.extra {
            self.connection
                .prepare_cached("INSERT INTO extras VALUES (?1, ?2)")?
                .execute(params![row, extra])?;
        }
        if let Some(problem) = &s.problem {
            let mut insert = self.connection.prepare_cached("INSERT INTO problems VALUES (?1, ?2)")?;
            insert.execute(params![row, problem])?;
            self.progress.bad_rows += 1;
        }
        self.progress.rows += 1;
        self.counts.add(found, is_copy);
        if !is_bad && !is_copy {
            self.groups.add(found);
        }
        Ok(())
    }

    fn is_new(&mut self, id: u128) -> rusqlite::Result<bool> {
        match &mut self.ids {
            Ids::Loaded(ids) => Ok(ids.insert(id)),
            Ids::Indexed => {
                let mut select =
                    self.connection.prepare_cached("SELECT 1 FROM rows WHERE id = ?1 AND bad = 0 LIMIT 1")?;
                Ok(!select.exists([id.to_be_bytes()])?)
            }
        }
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if self.begun.is_none() {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            self.begun = Some(Instant::now());
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        if self.begun.is_none() {
            return Ok(());
        }
        if let Some(current) = &self.current {
            sources::reach(self.connection, current.source, &current.reached)?;
        }
        self.groups.flush(self.connection)?;
        self.counts.write(self.connection)?;
        self.connection.execute_batch("COMMIT")?;
        (self.begun, self.has_committed, self.since_commit) = (None, true, 0);
        Ok(())
    }

    /// Counts the groups, when all rows are there.
    pub(crate) fn settle(&mut self) -> rusqlite::Result<()> {
        if self.counts.groups.is_none() {
            self.begin()?;
            self.counts.groups = Some(Counts::groups(self.connection)?);
            self.commit()?;
        }
        Ok(())
    }
}

/// Rows that were there before changed or went.
fn revise(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE facts SET value = value + 1 WHERE name = 'revision'")?.execute([])?;
    Ok(())
}

/// Tells rows that came after their fate.
pub(crate) fn tell_fates(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if fates::tell_new(connection)? > 0 {
        revise(connection)?;
    }
    connection.execute_batch("COMMIT")
}

/// Takes out what is no longer so.
pub(crate) fn clear(connection: &Connection, plan: &Plan) -> rusqlite::Result<()> {
    if plan.stale.is_empty() && plan.gone.is_empty() && !plan.is_reset {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if plan.is_reset {
        connection.execute_batch(
            "DELETE FROM extras; DELETE FROM problems; DELETE FROM rows; DELETE FROM fates; DELETE FROM sources;",
        )?;
    } else {
        for source in plan.stale.iter().chain(&plan.gone) {
            for side in ["extras", "problems"] {
                let delete =
                    format!("DELETE FROM {side} WHERE row IN (SELECT row FROM rows WHERE source = ?1)");
                connection.prepare_cached(&delete)?.execute([source])?;
            }
            connection.prepare_cached("DELETE FROM rows WHERE source = ?1")?.execute([source])?;
        }
        for source in &plan.stale {
            sources::reach(connection, *source, &Reached::default())?;
        }
        for source in &plan.gone {
            connection.prepare_cached("DELETE FROM sources WHERE source = ?1")?.execute([source])?;
        }
        // Where the first of several went, the next is the first.
        connection.execute_batch(
            "UPDATE rows SET copy = 0 WHERE copy = 1
               AND row = (SELECT min(r.row) FROM rows r WHERE r.id = rows.id AND r.bad = 0)
               AND NOT EXISTS (SELECT 1 FROM rows r WHERE r.id = rows.id AND r.copy = 0 AND r.bad = 0);",
        )?;
    }
    connection.execute_batch(
        "UPDATE facts SET value = min(value, coalesce((SELECT max(row) FROM rows), 0)) WHERE name = 'fates_until';",
    )?;
    Counts::anew(connection)?.write(connection)?;
    revise(connection)?;
    connection.execute_batch("COMMIT")
}
