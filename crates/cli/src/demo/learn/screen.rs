//! How it goes, for the person at the terminal.
//!
//! Every look at the held-out problems is a line that stays; in between, the last line is written over.

use anyhow::Result;
use rollyard_tiny::learn::{Plan, StepReport, WarmUp};
use std::time::Duration;

use super::{Folder, Watch, tell};
use crate::terminal::{ProgressLine, count};

#[derive(Debug)]
pub(super) struct Screen {
    steps: u64,
    rewards: Vec<f64>,
    line: ProgressLine,
}

/// Characters of the sparkline.
const SPARK_WIDTH: usize = 24;
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Screen {
    pub(super) fn new(steps: u64) -> Self {
        Self { steps, rewards: Vec::new(), line: ProgressLine::new() }
    }

    pub(super) fn begin(&mut self, plan: &Plan, page: &str, folder: &Folder) -> Result<()> {
        let Plan { task, seed, groups, group_size, staleness_max, .. } = plan;
        tell(&format!(
            "{task}, seed {seed}: {groups} groups of {group_size} rollouts a step, at most {staleness_max} versions stale"
        ))?;
        tell(&format!("viewer  {page}"))?;
        tell(&format!("folder  {}\n", folder.path().display()))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        self.line.wipe();
        tell(line)
    }

    fn describe(&self, report: &StepReport) -> String {
        let StepReport { reward, stale_mean, stale_max, tokens_per_sec, .. } = report;
        format!(
            "{}  reward {reward:.2}  held-out {:>6}  stale {stale_mean:.1} (max {stale_max})  {:>6} tokens/s  {}",
            self.place(report),
            percent(report),
            count(*tokens_per_sec as u64),
            sparkline(&self.rewards)
        )
    }

    fn place(&self, report: &StepReport) -> String {
        let width = self.steps.to_string().len();
        format!("{:>7}  step {:>width$}/{}", clock(report.secs), report.step, self.steps)
    }
}

impl Watch for Screen {
    fn warm_up(&mut self, WarmUp { step, steps, loss }: WarmUp) {
        if self.line.is_due() {
            self.line.write_over(&format!("warm-up: step {step} of {steps}, loss {loss:.3}"));
        }
    }

    fn warm(&mut self, report: &StepReport) -> Result<()> {
        let place = self.place(report);
        self.say(&format!("{place}  held-out {:>6}  after imitating a careless teacher", percent(report)))
    }

    fn resumed(&mut self, version: u64, curve: &[StepReport]) -> Result<()> {
        self.rewards = curve.iter().filter(|report| report.step > 0).map(|report| report.reward).collect();
        self.say(&format!("going on from the checkpoint of step {version}"))
    }

    fn step(&mut self, report: &StepReport) -> Result<()> {
        self.rewards.push(report.reward);
        let line = self.describe(report);
        if report.held_out.is_some() {
            return self.say(&line);
        }
        if self.line.is_due() {
            self.line.write_over(&line);
        }
        Ok(())
    }
}

/// `1:05.2`.
fn clock(secs: f64) -> String {
    let whole = Duration::from_secs_f64(secs.max(0.0));
    format!("{}:{:04.1}", whole.as_secs() / 60, (whole.as_millis() % 60_000) as f64 / 1e3)
}

fn percent(report: &StepReport) -> String {
    report.held_out.map_or_else(String::new, |share| format!("{:.1}%", share * 100.0))
}

/// Means of equal parts of all that came so far, from 0 to 1.
fn sparkline(values: &[f64]) -> String {
    let columns = values.len().min(SPARK_WIDTH);
    (0..columns)
        .map(|column| {
            let part = values
                .get(column * values.len() / columns..(column + 1) * values.len() / columns)
                .unwrap_or_default();
            let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
            let level = (mean.clamp(0.0, 1.0) * (SPARKS.len() - 1) as f64).round() as usize;
            SPARKS.get(level).copied().unwrap_or(' ')
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_a_column_for_each_value_until_it_is_full() {
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[0.0, 0.5, 1.0]), "▁▅█");
        let rising: Vec<f64> = (0..240).map(|nth| f64::from(nth) / 239.0).collect();
        let drawn = sparkline(&rising);
        assert_eq!(drawn.chars().count(), SPARK_WIDTH);
        assert!(drawn.starts_with('▁') && drawn.ends_with('█'), "{drawn}");
    }

    #[test]
    fn the_clock_counts_minutes() {
        assert_eq!([clock(0.0), clock(59.94), clock(65.25)], ["0:00.0", "0:59.9", "1:05.2"]);
    }
}
