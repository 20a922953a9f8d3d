//! The live view: drawn over itself, a block per run.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Instant;

use super::nodes::Nodes;
use super::run_stats::RunStats;
use crate::terminal::{count, size, width};

/// Looks that the little charts can go back.
const LOOKS_KEPT: usize = 120;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

pub(super) struct View {
    url: String,
    runs: Vec<RunStats>,
    /// Those that share the runs, where there are many.
    nodes: Option<Nodes>,
    looked_at: Option<Instant>,
    rates: BTreeMap<String, Rates>,
    /// Why the last look failed.
    trouble: Option<String>,
    is_drawn: bool,
}

/// Rollouts a second, newest last.
#[derive(Default)]
struct Rates {
    taken_in: VecDeque<f64>,
    trained: VecDeque<f64>,
    dropped: VecDeque<f64>,
}

impl View {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            runs: Vec::new(),
            nodes: None,
            looked_at: None,
            rates: BTreeMap::new(),
            trouble: None,
            is_drawn: false,
        }
    }

    pub(super) fn note(&mut self, now: Instant, runs: Vec<RunStats>, nodes: Option<Nodes>) {
        self.trouble = None;
        let secs = self.looked_at.replace(now).map(|before| (now - before).as_secs_f64());
        for run in &runs {
            let before = self.runs.iter().find(|before| before.run == run.run);
            let (Some(before), Some(secs)) = (before, secs) else { continue };
            let rates = self.rates.entry(run.run.clone()).or_default();
            // A rewind takes back what was trained; a rate below 0 would say nothing more.
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / secs.max(1e-3);
            push(&mut rates.taken_in, rate(run.books.admitted, before.books.admitted));
            push(&mut rates.trained, rate(run.books.trained, before.books.trained));
            push(&mut rates.dropped, rate(run.books.dropped, before.books.dropped));
        }
        (self.runs, self.nodes) = (runs, nodes);
    }

    pub(super) fn note_trouble(&mut self, trouble: String) {
        self.trouble = Some(trouble);
    }

    /// The view as the terminal takes it: every line clears what stood there before.
    pub(super) fn draw(&mut self, now_secs: f64) -> String {
        let columns = width();
        let mut text = format!("{BOLD}rollyard stats{PLAIN}  {}\n", self.url);
        if let Some(trouble) = &self.trouble {
            let shown: String = trouble.chars().take(columns.saturating_sub(1)).collect();
            let _infallible = writeln!(text, "{RED}{shown}{PLAIN}");
        }
        if let Some(nodes) = &self.nodes {
            text.push('\n');
            for line in nodes.table().lines() {
                let shown: String = line.chars().take(columns.saturating_sub(1)).collect();
                let _infallible = writeln!(text, "{shown}");
            }
        }
        for run in &self.runs {
            text.push('\n');
            text.push_str(&block(run, self.rates.get(&run.run), columns));
            for (name, line) in
                ["pool", "ages", "lengths"].iter().zip(run.pool.iter().flat_map(|p| p.lines(now_secs)))
            {
                let shown: String = line.chars().take(columns.saturating_sub(13)).collect();
                let _infallible = writeln!(text, "  {name:9} {shown}");
            }
        }
        let begin = if std::mem::replace(&mut self.is_drawn, true) { "\x1b[H" } else { "\x1b[2J\x1b[H" };
        format!("{begin}{}\x1b[J", text.replace('\n', "\x1b[K\n"))
    }
}

fn push(rates: &mut VecDeque<f64>, rate: f64) {
    rates.push_back(rate);
    if rates.len() > LOOKS_KEPT {
        rates.pop_front();
    }
}

fn block(stats: &RunStats, rates: Option<&Rates>, columns: usize) -> String {
    let RunStats { run, task_type, group_size, books, .. } = stats;
    let mut about = format!("task {task_type}, groups of {group_size}");
    if let Some(version) = stats.version {
        let _infallible = write!(about, ", weights {version}");
    }
    if let Some(step) = stats.last_commit {
        let _infallible = write!(about, ", step {step}");
    }
    let none = Rates::default();
    let rates = rates.unwrap_or(&none);
    let bars = columns.saturating_sub(48).min(60);
    let flow = |name: &str, rates: &VecDeque<f64>, total: u64| {
        let now = rates.back().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}/s"));
        format!("  {name:9} {now:>9}  {:>13} in all  {DIM}{}{PLAIN}\n", count(total), sparkline(rates, bars))
    };
    let (mark, verdict) = if books.balanced { (GREEN, "✓ balanced") } else { (RED, "✗ NOT balanced") };
    let reasons: Vec<String> = books
        .dropped_by_reason
        .iter()
        .map(|(reason, dropped)| format!("{reason} {}", count(*dropped)))
        .collect();
    [
        format!("{BOLD}run {run}{PLAIN}  {about}\n"),
        format!(
            "  groups    {} open, {} ready, {} leases out\n",
            count(stats.open_groups),
            count(stats.ready_groups),
            count(stats.leases_out)
        ),
        stats.generator.as_deref().map(|line| generator_line(line, columns)).unwrap_or_default(),
        flow("in", &rates.taken_in, books.admitted),
        flow("trained", &rates.trained, books.trained),
        flow("dropped", &rates.dropped, books.dropped),
        format!("  reasons   {}\n", if reasons.is_empty() { "-".to_owned() } else { reasons.join(", ") }),
        format!(
            "  books     {} admitted = {} held + {} leased + {} trained + {} dropped  {mark}{verdict}{PLAIN}\n",
            count(books.admitted),
            count(books.held),
            count(books.leased),
            count(books.trained),
            count(books.dropped)
        ),
        format!("  on disk   {} held\n", size(books.held_bytes)),
    ]
    .concat()
}

fn generator_line(line: &str, columns: usize) -> String {
    let shown: String = line.chars().take(columns.saturating_sub(13)).collect();
    format!("  generator {shown}\n")
}

/// The newest rates as bars, the highest of them as a full one.
fn sparkline(rates: &VecDeque<f64>, bars: usize) -> String {
    let shown = rates.iter().skip(rates.len().saturating_sub(bars));
    let highest = shown.clone().copied().fold(0.0, f64::max);
    let bar = |rate: &f64| {
        let level = if highest > 0.0 { (rate / highest * 7.0).round() as usize } else { 0 };
        BARS.get(level).copied().unwrap_or(' ')
    };
    shown.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_a_full_bar_and_old_ones_leave() {
        let rates = VecDeque::from([0.0, 5.0, 10.0]);
        assert_eq!(sparkline(&rates, 10), "▁▅█");
        assert_eq!(sparkline(&rates, 2), "▅█");
        assert_eq!(sparkline(&VecDeque::from([0.0, 0.0]), 10), "▁▁");
        assert_eq!(sparkline(&VecDeque::new(), 10), "");
    }
}
