//! Whether it went as promised: the books, the staleness, the drift, and what was learnt.

use anyhow::{Result, bail};
use rollyard_core::ledger::Ledger;
use rollyard_engine::yard::Books;
use rollyard_tiny::learn::{Outcome, Plan, StepReport};
use std::fmt;
use std::time::Duration;

use super::RUN;
use super::folder::Folder;
use crate::ledger::check::replay;
use crate::ledger::history::History;
use crate::terminal::{Table, count};

/// The log-probability that a token was sampled with and the one that the trainer finds may differ by this.
const DRIFT_MAX: f64 = 1e-4;

#[derive(Debug)]
pub(super) struct Verdict {
    promises: Vec<Promise>,
    table: Table,
    books: Books,
    next_steps: Vec<String>,
}

#[derive(Debug)]
struct Promise {
    kept: bool,
    what: String,
}

impl Verdict {
    pub(super) fn reach(
        plan: &Plan,
        folder: &Folder,
        outcome: &Outcome,
        curve: &[StepReport],
        took: Duration,
    ) -> Result<Self> {
        let history = History::open(&folder.yard(), RUN)?;
        let (ledger, _) = replay(&history)?;
        let promises = vec![
            balanced(&ledger, &outcome.books),
            trained_once(plan, outcome),
            fresh(plan, curve),
            true_tokens(curve),
        ];
        let path = folder.path().display();
        let next_steps = vec![
            format!("curve      {}", folder.chart().display()),
            format!("look       rollyard view {} --tokenizer {path}/tokenizer", folder.rollouts().display()),
            format!(
                "ask        rollyard query --plot \"select step, avg(reward) from rollouts group by step order by step\" {}",
                folder.rollouts().display()
            ),
            format!("the books  rollyard ledger --data {} --run {RUN} check", folder.yard().display()),
        ];
        Ok(Self { promises, table: table(curve, took), books: outcome.books.clone(), next_steps })
    }

    pub(super) fn judge(&self) -> Result<()> {
        match self.promises.iter().filter(|promise| !promise.kept).count() {
            0 => Ok(()),
            broken => bail!("{broken} of the promises above were broken"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.table)?;
        for Promise { kept, what } in &self.promises {
            writeln!(f, "{} {what}", if *kept { '✓' } else { '✗' })?;
        }
        let Books { admitted, held, leased, trained, dropped, .. } = &self.books;
        let [admitted, held, leased, trained, dropped] =
            [admitted, held, leased, trained, dropped].map(|number| count(*number));
        writeln!(
            f,
            "\n{admitted} rollouts admitted = {held} held + {leased} leased + {trained} trained + {dropped} dropped"
        )?;
        for step in &self.next_steps {
            write!(f, "\n{step}")?;
        }
        Ok(())
    }
}

fn balanced(ledger: &Ledger, told: &Books) -> Promise {
    let audited = ledger.audit();
    let what = match &audited {
        Ok(()) => "the books balance, and the log replayed from its first record says the same".to_owned(),
        Err(wrong) => format!("the books do not balance: {wrong}"),
    };
    let same = ledger.books().trained == told.trained && ledger.books().admitted >= told.admitted;
    Promise { kept: audited.is_ok() && told.balanced && same, what }
}

fn trained_once(plan: &Plan, outcome: &Outcome) -> Promise {
    let wanted = outcome.version * plan.batch() as u64;
    Promise {
        kept: outcome.books.trained == wanted && outcome.books.leased == 0,
        what: format!(
            "{} steps trained on {} rollouts, each once",
            count(outcome.version),
            count(outcome.books.trained)
        ),
    }
}

fn fresh(plan: &Plan, curve: &[StepReport]) -> Promise {
    let most = curve.iter().map(|report| report.stale_max).max().unwrap_or_default();
    Promise {
        kept: most <= i64::from(plan.staleness_max),
        what: format!("no rollout was more than {most} versions stale; {} were allowed", plan.staleness_max),
    }
}

fn true_tokens(curve: &[StepReport]) -> Promise {
    let most = curve.iter().filter_map(|report| report.drift_max).reduce(f64::max);
    let what = match most {
        None => "no token was trained on by the weights that sampled it, so drift cannot be told".to_owned(),
        Some(most) => format!("sampled log-probs equal the trainer's for the same weights to {most:.0e}"),
    };
    Promise { kept: most.is_none_or(|most| most < DRIFT_MAX), what }
}

fn table(curve: &[StepReport], took: Duration) -> Table {
    let mut table = Table::new(&["", "at first", "in the end"]);
    let steps: Vec<&StepReport> = curve.iter().filter(|report| report.step > 0).collect();
    // A single batch is a matter of luck.
    let tenth = steps.len().div_ceil(10).max(1);
    let mean = |part: &[&StepReport], of: fn(&StepReport) -> f64| {
        part.iter().map(|report| of(report)).sum::<f64>() / part.len().max(1) as f64
    };
    let (first, last) = (
        steps.get(..tenth).unwrap_or(&steps),
        steps.get(steps.len().saturating_sub(tenth)..).unwrap_or(&steps),
    );
    let exams: Vec<f64> = curve.iter().filter_map(|report| report.held_out).collect();
    if let (Some(before), Some(after)) = (exams.first(), exams.last()) {
        table.push(vec![
            "held-out accuracy".into(),
            format!("{:.1}%", before * 100.0),
            format!("{:.1}%", after * 100.0),
        ]);
    }
    let mut row = |name: &str, of: fn(&StepReport) -> f64, shown: &dyn Fn(f64) -> String| {
        table.push(vec![name.to_owned(), shown(mean(first, of)), shown(mean(last, of))]);
    };
    row("reward of a batch", |report| report.reward, &|value| format!("{value:.3}"));
    row("staleness, versions", |report| report.stale_mean, &|value| format!("{value:.2}"));
    row("tokens sampled a second", |report| report.tokens_per_sec, &|value| count(value as u64));
    if let Some(end) = steps.last() {
        table.push(vec!["steps".into(), String::new(), count(end.step)]);
        table.push(vec!["tokens sampled".into(), String::new(), count(end.tokens)]);
        table.push(vec!["too stale, dropped".into(), String::new(), count(end.stale_dropped)]);
    }
    table.push(vec!["wall time, this start".into(), String::new(), format!("{:.1} s", took.as_secs_f64())]);
    table
}
