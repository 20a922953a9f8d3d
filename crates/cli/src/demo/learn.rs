//! `rollyard demo`: engine, workflows, yard, replay, trainer, archive and viewer in one process, and a policy that
//! learns.
//!
//! A [`folder`] holds all of it, so that a demo can be stopped, killed and gone on with. The [`host`] is the server
//! with the viewer, a [`session`] plays on it, the [`screen`] tells how it goes, and the [`verdict`] says in the end whether it went as promised.
//! With `--crash` a [`crash`] comes in between.

mod crash;
mod folder;
mod host;
mod screen;
mod session;
mod verdict;

pub(super) use folder::Folder;
pub(super) use session::{Session, Watch};

use anyhow::{Context, Result, bail};
use clap::Args;
use rollyard_tiny::learn::Plan;
use rollyard_tiny::task::Task;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::chart;
use crate::serve::{end_with_parent, raise_descriptor_limit, stop_on_signal};
use screen::Screen;
use verdict::Verdict;

/// The run in the yard.
const RUN: &str = "demo";

#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// What is learnt: arithmetic (47+85), or tool (6*7+15 in two turns, with a tool that multiplies)
    #[arg(long, value_name = "NAME", default_value = "arithmetic")]
    task: Task,
    /// Steps of training, those before a stop or a crash included
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    steps: u64,
    /// Decides the first weights, the problems and the noise of every answer
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The folder of the run; one that is there is gone on with [default: a new one in rollyard-demo/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Versions of the weights that a rollout may be behind when it is trained on
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    staleness: u32,
    /// Weight of the distance to the policy before the first step, which is held small; 0 leaves it out
    #[arg(long, value_name = "BETA", default_value_t = 0.0)]
    kl: f32,
    /// Where server and viewer listen; if the port is taken, the next free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8889")]
    listen: SocketAddr,
    /// Kill the whole process group with -9 half-way, and go on
    #[arg(long)]
    crash: bool,
    /// Deal rewards out at random: the control, in which nothing is learnt
    #[arg(long)]
    shuffle_rewards: bool,
    /// End when the process that started this one does
    #[arg(long, hide = true)]
    ends_with_parent: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.listen.ip().is_loopback() {
        bail!("--listen {} can be reached by others; the demo is for this machine only", arguments.listen);
    }
    if arguments.ends_with_parent {
        end_with_parent()?;
    }
    prepare();
    let plan = arguments.plan();
    let folder = Folder::open(arguments.out.as_deref(), &plan)?;
    if arguments.crash {
        crash::half_way(arguments, &folder)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(play(arguments, plan, folder))
}

/// What every process does that runs a course.
pub(super) fn prepare() {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::ERROR)
        .with_writer(io::stderr)
        .with_ansi(false)
        .init();
    // Every group that is written is a connection; where the limit stays as it is, fewer fit.
    let _stays = raise_descriptor_limit();
}

/// Cancelled by Ctrl-C; a second one does not ask.
pub(super) fn stop_when_told() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on_signal(signals, stop.clone()));
    Ok(stop)
}

async fn play(arguments: &Arguments, plan: Plan, folder: Folder) -> Result<()> {
    let started = Instant::now();
    let stop = stop_when_told()?;
    let session = Session::start(plan.clone(), folder.clone(), arguments.listen).await?;
    let mut screen = Screen::new(arguments.steps);
    screen.begin(&plan, &session.page(), &folder)?;
    let played = session.play(arguments.steps, &stop, &mut screen).await;
    drop(screen);
    let Some(outcome) = played? else {
        return tell(&format!("\nstopped during the warm-up; {}", arguments.again(&folder)));
    };
    let curve = folder.curve()?;
    chart::write(&folder.chart(), &chart::learning_curve(&plan, &curve))
        .with_context(|| format!("cannot write {}", folder.chart().display()))?;
    let verdict = Verdict::reach(&plan, &folder, &outcome, &curve, started.elapsed())?;
    tell(&format!("\n{verdict}"))?;
    if outcome.stopped {
        tell(&format!("\nstopped at step {}; {}", outcome.version, arguments.again(&folder)))?;
    }
    verdict.judge()
}

impl Arguments {
    fn plan(&self) -> Plan {
        let mut plan = Plan::new(self.task, self.seed);
        plan.staleness_max = self.staleness;
        plan.shuffled = self.shuffle_rewards;
        plan.grpo.kl = self.kl;
        plan
    }

    /// The flags that make the same plan.
    fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = [
            ("--task", self.task.to_string()),
            ("--steps", self.steps.to_string()),
            ("--seed", self.seed.to_string()),
            ("--staleness", self.staleness.to_string()),
            ("--kl", self.kl.to_string()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect();
        flags.extend(self.shuffle_rewards.then(|| "--shuffle-rewards".to_owned()));
        flags
    }

    /// The command that goes on.
    fn again(&self, folder: &Folder) -> String {
        format!("go on with: rollyard demo --out {} {}", folder.path().display(), self.flags().join(" "))
    }
}

/// Tells something on stdout.
fn tell(line: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush())?)
}
