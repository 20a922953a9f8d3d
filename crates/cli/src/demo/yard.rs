//! `rollyard demo yard`: a server under load, killed and started again, and the proof that nothing was lost.
//!
//! Many [`writer`]s send rollouts to two runs. A reader that knows only slime's calls empties one, a reader that
//! leases, acks and commits empties the other ([`readers`]). Half-way the server is killed with SIGKILL and
//! started again; everybody just retries. In the end [`verdict`] compares what the clients saw with the log.

mod readers;
mod server;
mod stage;
mod verdict;
mod writer;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::terminal::{ProgressLine, count};
use readers::Delivered;
use server::Server;
use stage::{Goal, Stage};
use verdict::Verdict;
use writer::Written;

/// The run that the slime reader reads: the one its calls mean when they name none.
const SLIME_RUN: &str = "default";
/// The run that is read with leases.
const NATIVE_RUN: &str = "leased";

/// The yard alone under load: many writers, a kill -9 half-way, and every rollout accounted for
#[derive(Debug, Args)]
#[command(after_help = "\
Needs nothing but this program, and takes about 10 seconds. Ends with code 1 if anything was lost.

Example:
    rollyard demo yard --writers 64 --seconds 20")]
pub(super) struct Arguments {
    /// Concurrent writers
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    writers: u16,
    /// How long they write
    #[arg(long, value_name = "SECS", default_value_t = 8.0)]
    seconds: f64,
    /// Write about so many rollouts instead
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    rollouts: Option<u64>,
    /// Keep the data in this new folder [default: a temporary one, removed in the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let goal = match arguments.rollouts {
        Some(rollouts) => Goal::Rollouts(rollouts.max(1)),
        None if (0.1..=3600.0).contains(&arguments.seconds) => {
            Goal::Time(Duration::from_secs_f64(arguments.seconds))
        }
        None => bail!("--seconds {} is not from 0.1 to 3600", arguments.seconds),
    };
    let folder = Folder::new(arguments.dir.as_deref())?;
    let dir = folder.path();
    let mut out = io::stdout();
    let writers = arguments.writers;
    writeln!(out, "{writers} writers, two readers, one server; data in {}\n", dir.display())?;
    let played = play(dir, goal, usize::from(writers), &mut out)?;
    let verdict = Verdict::reach(dir, &played)?;
    write!(out, "\n{verdict}")?;
    if let Folder::Kept(_) = &folder {
        let data = dir.join("yard-data");
        writeln!(out, "\nlook around: rollyard ledger --data {} --run {NATIVE_RUN} events", data.display())?;
    }
    match verdict.problems() {
        0 => Ok(()),
        problems => bail!("{problems} of the promises above were broken"),
    }
}

/// Where the demo keeps its data.
enum Folder {
    Kept(PathBuf),
    /// Removed when dropped.
    Temporary(TempDir),
}

impl Folder {
    fn new(named: Option<&Path>) -> Result<Self> {
        let Some(dir) = named else {
            return Ok(Self::Temporary(tempfile::Builder::new().prefix("rollyard-demo-").tempdir()?));
        };
        let made =
            std::fs::create_dir_all(dir).and_then(|()| Ok((dir.canonicalize()?, std::fs::read_dir(dir)?)));
        let (path, mut entries) = made.with_context(|| format!("cannot use {}", dir.display()))?;
        if entries.next().is_some() {
            bail!("the demo wants a folder of its own, and this one is not empty: {}", dir.display());
        }
        Ok(Self::Kept(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }
}

/// What everybody saw.
struct Played {
    written: Vec<Written>,
    slime: Delivered,
    native: Delivered,
    answered_before_kill: u64,
    recovery: Duration,
}

fn play(dir: &Path, goal: Goal, writers: usize, out: &mut impl Write) -> Result<Played> {
    let mut server = Server::start(dir)?;
    let stage = Arc::new(Stage::new(goal, server.url()));
    stage.watch_for_interrupt()?;
    let run = json!({"name": NATIVE_RUN, "config": {"lease_seconds": 600}});
    stage.post(&mut stage.client(), "/api/runs", &run)?;

    let cast = Cast::enter(&stage, writers);
    let show = Show { stage: &stage, out, line: ProgressLine::new() };
    let acts = perform(dir, &mut server, show, &cast);
    if let Err(error) = &acts {
        // Nobody retries for ever against a server that will not come back.
        stage.fail(error);
    }
    let left = cast.leave();
    let (answered_before_kill, recovery) = acts?;
    let (written, slime, native) = left?;
    server.stop()?;
    Ok(Played { written, slime, native, answered_before_kill, recovery })
}

/// From the first write to the last read: the number of writes answered before the kill, and the time the
/// server was away.
fn perform(
    dir: &Path,
    server: &mut Server,
    mut show: Show<'_, impl Write>,
    cast: &Cast,
) -> Result<(u64, Duration)> {
    let stage = show.stage;
    show.tell("the server is up")?;
    show.wait_until(|| stage.progress() >= 0.5)?;
    let answered_before_kill = stage.answered();
    server.kill()?;
    show.tell(&format!("kill -9, after {} answered writes", count(answered_before_kill)))?;

    let killed_at = Instant::now();
    *server = Server::start(dir)?;
    let recovery = killed_at.elapsed();
    stage.set_url(server.url());
    show.tell(&format!("the server is up again, {:.2} s later", recovery.as_secs_f64()))?;

    show.wait_until(|| stage.progress() >= 1.0)?;
    stage.end_writing();
    show.wait_until(|| cast.writers.iter().all(JoinHandle::is_finished))?;
    show.tell("the writers are done")?;
    stage.end_reading();
    show.wait_until(|| cast.slime.is_finished() && cast.native.is_finished())?;
    show.tell("the readers are done")?;
    Ok((answered_before_kill, recovery))
}

/// Everybody at work, each on a thread.
struct Cast {
    writers: Vec<JoinHandle<Result<Written>>>,
    slime: JoinHandle<Result<Delivered>>,
    native: JoinHandle<Result<Delivered>>,
}

impl Cast {
    fn enter(stage: &Arc<Stage>, writers: usize) -> Self {
        Self {
            writers: (0..writers)
                .map(|number| play_part(stage, move |stage| writer::write(stage, number)))
                .collect(),
            slime: play_part(stage, readers::read_like_slime),
            native: play_part(stage, readers::lease),
        }
    }

    fn leave(self) -> Result<(Vec<Written>, Delivered, Delivered)> {
        // All are joined before any of them is listened to: an error must not leave others behind.
        let writers: Vec<_> = self.writers.into_iter().map(join).collect();
        let (slime, native) = (join(self.slime), join(self.native));
        Ok((writers.into_iter().collect::<Result<_>>()?, slime?, native?))
    }
}

/// On a thread of its own; if one fails, all stop.
fn play_part<T: Send + 'static>(
    stage: &Arc<Stage>,
    part: impl FnOnce(&Stage) -> Result<T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let stage = Arc::clone(stage);
    std::thread::spawn(move || part(&stage).inspect_err(|error| stage.fail(error)))
}

fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("a client of the demo panicked"))
}

/// Keeps the audience informed.
struct Show<'a, W> {
    stage: &'a Stage,
    out: &'a mut W,
    line: ProgressLine,
}

impl<W: Write> Show<'_, W> {
    fn tell(&mut self, what: &str) -> Result<()> {
        self.line.wipe();
        Ok(writeln!(self.out, "{:6.1} s  {what}", self.stage.elapsed().as_secs_f64())?)
    }

    fn wait_until(&mut self, is_so: impl Fn() -> bool) -> Result<()> {
        while !is_so() {
            self.stage.check()?;
            if self.line.is_due() {
                let (answered, delivered) = (count(self.stage.answered()), count(self.stage.delivered()));
                let secs = self.stage.elapsed().as_secs_f64();
                self.line.write_over(&format!("{secs:6.1} s  {answered} written, {delivered} delivered"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}
