//! `rollyard demo sweep`: the same course with other bounds on staleness, and what each makes of the time.
//!
//! A bound of 0 samples, trains, samples: nothing is ever stale, and one of the two always waits for the other. Each
//! version more lets sampling run ahead, which is sooner done and further off policy.

use anyhow::{Context, Result};
use clap::Args;
use rollyard_tiny::learn::{Outcome, Plan, StepReport, WarmUp};
use rollyard_tiny::model::Weights;
use rollyard_tiny::task::Task;
use std::io::{self, Write};
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

use super::chart::{self, Chart, Line};
use super::learn::{Folder, Session, Watch, prepare};
use crate::terminal::{ProgressLine, Table, count};

/// Learn under several bounds on staleness, and compare reward against wall time
#[derive(Debug, Args)]
#[command(after_help = "\
Every bound learns from the same first weights for the same number of steps, one after the other. A folder with a
finished sweep only prints it again.

Example:
    rollyard demo sweep --staleness 0,1,2,4,8 --steps 60 --out sweep")]
pub(super) struct Arguments {
    /// The bounds, in versions of the weights
    #[arg(long, value_name = "K,…", value_delimiter = ',', default_value = "0,1,2,4,8",
        value_parser = clap::value_parser!(u32).range(0..=64))]
    staleness: Vec<u32>,
    /// What is learnt
    #[arg(long, value_name = "NAME", default_value = "arithmetic")]
    task: Task,
    /// Steps of training for each
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    steps: u64,
    /// Decides the first weights, the problems and the noise of every answer
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "rollyard-demo/sweep")]
    out: PathBuf,
}

/// What a bound came to.
struct Swept {
    bound: u32,
    curve: Vec<StepReport>,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    prepare();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let swept = runtime.block_on(sweep(arguments))?;
    let mut out = io::stdout();
    write!(out, "\n{}\n{}", over_time(&swept), table(&swept))?;
    let picture = arguments.out.join("sweep.svg");
    chart::write(&picture, &picture_of(arguments, &swept))
        .with_context(|| format!("cannot write {}", picture.display()))?;
    writeln!(out, "\nreward against wall time: {}", picture.display())?;
    Ok(())
}

async fn sweep(arguments: &Arguments) -> Result<Vec<Swept>> {
    let stop = super::learn::stop_when_told()?;
    let (mut swept, mut warmed) = (Vec::new(), None);
    for &bound in &arguments.staleness {
        let plan = Plan { staleness_max: bound, exam_every: 5, ..Plan::new(arguments.task, arguments.seed) };
        let folder = Folder::open(Some(&arguments.out.join(format!("staleness-{bound}"))), &plan)?;
        let done = folder.curve()?.last().map_or(0, |report| report.step);
        if done < arguments.steps {
            let outcome = one(arguments, plan, &folder, &mut warmed, &stop).await?;
            if outcome.is_none_or(|outcome| outcome.stopped) {
                anyhow::bail!("stopped; the same command goes on with what is missing");
            }
        }
        let mut curve = folder.curve()?;
        curve.retain(|report| report.step <= arguments.steps);
        writeln!(io::stdout(), "staleness {bound}: {}", said(&curve))?;
        swept.push(Swept { bound, curve });
    }
    Ok(swept)
}

async fn one(
    arguments: &Arguments,
    plan: Plan,
    folder: &Folder,
    warmed: &mut Option<Weights>,
    stop: &CancellationToken,
) -> Result<Option<Outcome>> {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let session = Session::start(plan.clone(), folder.clone(), listen).await?;
    let line = ProgressLine::new();
    let mut line = Progress { bound: plan.staleness_max, steps: arguments.steps, warmed, line };
    session.play(arguments.steps, stop, &mut line).await
}

struct Progress<'a> {
    bound: u32,
    steps: u64,
    /// Bounds differ in nothing before the first step.
    warmed: &'a mut Option<Weights>,
    line: ProgressLine,
}

impl Progress<'_> {
    fn show(&mut self, what: &str) {
        if self.line.is_due() {
            self.line.write_over(&format!("staleness {}: {what}", self.bound));
        }
    }
}

impl Watch for Progress<'_> {
    fn warmed(&self) -> Option<Weights> {
        self.warmed.clone()
    }

    fn keep(&mut self, weights: &Weights) {
        *self.warmed = Some(weights.clone());
    }

    fn warm_up(&mut self, WarmUp { step, steps, .. }: WarmUp) {
        self.show(&format!("warm-up, step {step} of {steps}"));
    }

    fn step(&mut self, report: &StepReport) -> Result<()> {
        self.show(&format!("step {} of {}, reward {:.2}", report.step, self.steps, report.reward));
        Ok(())
    }
}

fn said(curve: &[StepReport]) -> String {
    let Some(last) = curve.last() else { return "nothing".to_owned() };
    format!("{} steps in {:.1} s, reward {:.2}", last.step, last.secs, recent(curve, last.secs))
}

/// The mean reward of the five steps before a moment: one batch alone says little.
fn recent(curve: &[StepReport], secs: f64) -> f64 {
    let until: Vec<f64> = curve
        .iter()
        .filter(|report| report.step > 0 && report.secs <= secs)
        .map(|report| report.reward)
        .collect();
    let part = until.get(until.len().saturating_sub(5)..).unwrap_or_default();
    part.iter().sum::<f64>() / part.len().max(1) as f64
}

/// The reward of every bound at the same moments.
fn over_time(swept: &[Swept]) -> Table {
    let end = |swept: &Swept| swept.curve.last().map_or(0.0, |report| report.secs);
    let longest = swept.iter().map(end).fold(0.0, f64::max);
    let moments: Vec<f64> = (1..=8).map(|eighth| longest * f64::from(eighth) / 8.0).collect();
    let names: Vec<String> = moments.iter().map(|secs| format!("{secs:.0} s")).collect();
    let mut headings = vec!["reward at"];
    headings.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&headings);
    for one in swept {
        let mut row = vec![format!("staleness {}", one.bound)];
        // What has ended keeps what it had.
        row.extend(moments.iter().map(|secs| format!("{:.2}", recent(&one.curve, secs.max(0.0)))));
        table.push(row);
    }
    table
}

fn table(swept: &[Swept]) -> Table {
    let headings =
        ["bound", "seconds", "steps/s", "tokens/s", "mean staleness", "too stale", "held-out", "90% after"];
    let mut table = Table::new(&headings);
    for Swept { bound, curve } in swept {
        let Some(last) = curve.last() else { continue };
        let steps = curve.iter().filter(|report| report.step > 0);
        let stale = steps.clone().map(|report| report.stale_mean).sum::<f64>() / last.step.max(1) as f64;
        let reached = curve.iter().find(|report| report.held_out.is_some_and(|share| share > 0.9));
        let exam = curve.iter().rev().find_map(|report| report.held_out).unwrap_or_default();
        table.push(vec![
            bound.to_string(),
            format!("{:.1}", last.secs),
            format!("{:.2}", last.step as f64 / last.secs.max(1e-9)),
            count((last.tokens as f64 / last.secs.max(1e-9)) as u64),
            format!("{stale:.2}"),
            count(last.stale_dropped),
            format!("{:.1}%", exam * 100.0),
            reached.map_or_else(|| "never".to_owned(), |report| format!("{:.1} s", report.secs)),
        ]);
    }
    table
}

fn picture_of(arguments: &Arguments, swept: &[Swept]) -> Chart {
    let line = |one: &Swept| Line {
        name: format!("staleness {}", one.bound),
        points: one
            .curve
            .iter()
            .filter(|report| report.step > 0)
            .map(|report| (report.secs, recent(&one.curve, report.secs)))
            .collect(),
        is_faint: false,
    };
    Chart {
        title: format!("{}: reward against wall time, by bound on staleness", arguments.task),
        x_name: "seconds of sampling and training",
        lines: swept.iter().map(line).collect(),
    }
}
