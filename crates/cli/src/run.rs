//! `rollyard run`: prompts in, groups of rollouts out.
//!
//! Reads the prompts, runs a workflow on each so many times, and keeps what comes of it in a folder or a yard.
//! What is there already is not made again, so the same command goes on where the last one was stopped.

mod agent;
mod arguments;
mod making;
mod past;
mod progress;
mod prompts;
mod tally;
mod target;

use anyhow::{Context, Result, bail};
use rollyard_engine::executor::{Counts, Executor, ExecutorConfig, ExecutorError, Finished, Pace, Task};
use rollyard_engine::group::GroupRules;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::say;
use crate::terminal::many;
use arguments::AcceptRule;
pub(crate) use arguments::Arguments;
use making::Making;
use progress::Progress;
use prompts::Prompts;
use tally::Tally;
use target::Target;

/// Bad lines of the input that are named; the rest are counted.
const BAD_LINES_SHOWN: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let prompts = Prompts::read(&arguments.input, arguments.limit, arguments.is_built_in())?;
    tell_bad_lines(&prompts);
    // Every episode in flight is a connection.
    crate::serve::raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(run_all(arguments, prompts));
    // Whoever hangs in a request is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn run_all(arguments: &Arguments, prompts: Prompts) -> Result<()> {
    let mut target = Target::open(arguments).await?;
    let total = prompts.good.len();
    let bad = prompts.bad.len();
    let missing = target.missing(prompts.good, arguments).await?;
    let tally = Arc::new(Tally::default());
    tally.begin_with(target.past());
    let mut progress = Progress::new(total, total - missing.len());
    if missing.is_empty() {
        progress.say(&format!("nothing is missing: all {total} prompts are done"));
        return readable(bad);
    }
    if missing.len() < total {
        progress.say(&format!("{} of {} prompts are done already", total - missing.len(), total));
    }
    let Making { engine, workflow, host, desk } = making::prepare(arguments).await?;
    let mut sinks = target.sinks();
    sinks.push(Arc::clone(&tally) as _);
    let executor = Executor::new(engine, config(arguments), sinks, Handle::current());
    let accept = arguments.accept;
    executor.submit_all(missing.into_iter().map(|prompt| Task {
        id: Some(prompt.number),
        data: prompt.data,
        workflow: Arc::clone(&workflow),
        group_size: arguments.group_size,
        accept: (accept == AcceptRule::Varied).then(|| Arc::new(is_varied) as _),
        is_eval: arguments.eval,
    }))?;

    let ended = watch(&executor, &mut progress, &tally).await;
    executor.close();
    if let Some(desk) = desk {
        desk.close().await;
    }
    if let Some(host) = host {
        host.close().await;
    }
    progress.wipe();
    target.finish()?;
    match ended {
        Ended::Stopped => {
            bail!("stopped; what was made is kept, and the same command goes on from here")
        }
        Ended::Done(Ok(counts)) => {
            progress.finish(&executor.stats(), &tally, target.place());
            conclude(counts, bad, &executor)
        }
        Ended::Done(Err(error)) => {
            progress.finish(&executor.stats(), &tally, target.place());
            Err(error).context("the run ended early; the same command tries again what is missing")
        }
    }
}

enum Ended {
    Done(Result<Counts, ExecutorError>),
    /// By Ctrl-C, or whoever else asked us to.
    Stopped,
}

/// Shows how far it is until it has ended.
async fn watch(executor: &Executor, progress: &mut Progress, tally: &Tally) -> Ended {
    let mut idle = std::pin::pin!(executor.idle());
    let mut stop = std::pin::pin!(stop_signal());
    let mut redraw = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            ended = &mut idle => return Ended::Done(ended),
            _ = &mut stop => return Ended::Stopped,
            _ = redraw.tick() => progress.show(&executor.stats(), tally),
        }
    }
}

/// Ctrl-C, or a polite kill.
async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.unwrap_or_default(),
        _ = terminate.recv() => {}
    }
}

fn config(arguments: &Arguments) -> ExecutorConfig {
    let groups = arguments.concurrency.get().div_ceil(arguments.group_size.get());
    let max_concurrent = NonZeroU32::new(groups).unwrap_or(NonZeroU32::MIN);
    ExecutorConfig {
        run: arguments.name.as_str().into(),
        rules: GroupRules {
            attempts: arguments.attempts.get(),
            incomplete: arguments.incomplete,
            episode_timeout: arguments.episode_timeout,
            ..GroupRules::default()
        },
        seed: arguments.sampling.seed,
        // The sinks have it all.
        keep: false,
        // One policy makes all of it: there is nothing to be paced by.
        ..ExecutorConfig::new(Pace { max_concurrent, batch: NonZeroU32::MIN, max_head_offpolicyness: None })
    }
}

/// Not all members have the same reward: there is something to learn.
fn is_varied(finished: &Finished) -> Result<bool, String> {
    let mut rewards = finished.samples().map(|sample| sample.reward);
    let first = rewards.next();
    Ok(rewards.any(|reward| Some(reward) != first))
}

fn conclude(counts: Counts, bad: usize, executor: &Executor) -> Result<()> {
    if counts.failed > 0 {
        let failed = many(usize::try_from(counts.failed).unwrap_or(usize::MAX), "prompt");
        bail!("{failed} failed: {}; the same command tries them again", executor.reasons());
    }
    readable(bad)
}

fn readable(bad: usize) -> Result<()> {
    if bad > 0 {
        bail!("{} of the input could not be read", many(bad, "line"));
    }
    Ok(())
}

fn tell_bad_lines(prompts: &Prompts) {
    for (line, reason) in prompts.bad.iter().take(BAD_LINES_SHOWN) {
        say(&format!("rollyard: line {line}: {reason}"));
    }
    if prompts.bad.len() > BAD_LINES_SHOWN {
        say(&format!("rollyard: {} more lines cannot be read", prompts.bad.len() - BAD_LINES_SHOWN));
    }
}
