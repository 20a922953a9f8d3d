//! How far a run is: a line that is written over on a terminal, a line now and then elsewhere.

use rollyard_engine::executor::{Counts, Stats};
use std::time::{Duration, Instant};

use super::tally::{Sums, Tally};
use crate::say;
use crate::terminal::{ProgressLine, count, many};

/// Between two lines where there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// A prompt that has run so long is worth a word.
const STRAGGLER_SECS: f64 = 60.0;

pub(super) struct Progress {
    line: ProgressLine,
    total: usize,
    before: usize,
    started: Instant,
    logged: Instant,
}

impl Progress {
    /// Of `total` prompts, `before` were done in an earlier run.
    pub(super) fn new(total: usize, before: usize) -> Self {
        let now = Instant::now();
        Self { line: ProgressLine::new(), total, before, started: now, logged: now }
    }

    pub(super) fn say(&self, text: &str) {
        say(&format!("rollyard: {text}"));
    }

    pub(super) fn show(&mut self, stats: &Stats, tally: &Tally) {
        let line = || tell(stats, tally.sums(), self.total, self.before, self.started.elapsed());
        if self.line.is_terminal() {
            let line = line();
            self.line.write_over(&line);
        } else if self.logged.elapsed() >= LOG_EVERY {
            say(&line());
            self.logged = Instant::now();
        }
    }

    pub(super) fn wipe(&mut self) {
        self.line.wipe();
    }

    /// The last word, and what to look at.
    pub(super) fn finish(&self, stats: &Stats, tally: &Tally, place: String) {
        let Counts { accepted, rejected, failed, .. } = stats.counts;
        let sums = tally.sums();
        let elapsed = self.started.elapsed();
        let episodes = many(usize::try_from(sums.episodes).unwrap_or(usize::MAX), "episode");
        let rate = rate(sums.tokens, elapsed).map(|rate| format!(", {rate}")).unwrap_or_default();
        let reward = sums.reward_mean().map(|mean| format!(", mean reward {mean:.3}")).unwrap_or_default();
        say(&format!(
            "rollyard: {} accepted, {} rejected, {} failed; {episodes} in {}{rate}{reward}: {place}",
            count(accepted),
            count(rejected),
            count(failed),
            span(elapsed),
        ));
    }
}

fn tell(stats: &Stats, sums: Sums, total: usize, before: usize, elapsed: Duration) -> String {
    let Counts { accepted, rejected, failed, running, .. } = stats.counts;
    let settled = accepted + rejected + failed;
    let done = before as u64 + settled;
    // What matters most comes first: a narrow terminal shows only the beginning.
    let mut parts = vec![format!("{}/{} prompts", count(done), count(total as u64))];
    if settled > 0 {
        let left = (total as u64).saturating_sub(done);
        parts.push(format!("ETA {}", span(elapsed.mul_f64(left as f64 / settled as f64))));
    }
    if let Some(mean) = sums.reward_mean() {
        parts.push(format!("reward {mean:.3}"));
    }
    for (number, what) in
        [(accepted, "accepted"), (rejected, "rejected"), (failed, "failed"), (running, "running")]
    {
        parts.push(format!("{} {what}", count(number)));
    }
    parts.extend(rate(sums.tokens, elapsed));
    if stats.oldest_running_secs > STRAGGLER_SECS {
        parts.push(format!("slowest {}", span(Duration::from_secs_f64(stats.oldest_running_secs))));
    }
    parts.join(" · ")
}

/// Nothing where the engine only speaks text, and nobody knows.
fn rate(tokens: u64, elapsed: Duration) -> Option<String> {
    let rate = (tokens as f64 / elapsed.as_secs_f64().max(1e-3)) as u64;
    (tokens > 0).then(|| format!("{} tokens/s", count(rate)))
}

/// A length of time for people.
fn span(span: Duration) -> String {
    let secs = span.as_secs();
    match (secs / 3600, secs / 60 % 60, secs % 60) {
        (0, 0, secs) => format!("{secs}s"),
        (0, minutes, secs) => format!("{minutes}m{secs:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is_and_how_long_it_takes() {
        let counts = Counts { accepted: 30, rejected: 8, failed: 2, running: 16, ..Counts::default() };
        let mut stats =
            Stats { counts, ready: 0, version: 0, capacity: 0, paused: false, oldest_running_secs: 3.0 };
        let mut sums = Sums::default();
        sums.tokens = 123_450;
        let line = |stats: &Stats| tell(stats, sums, 1_100, 60, Duration::from_secs(10));
        let expected = "100/1,100 prompts · ETA 4m10s · 30 accepted · 8 rejected · 2 failed · 16 running · 12,345 tokens/s";
        assert_eq!(line(&stats), expected);
        stats.oldest_running_secs = 3_700.0;
        assert_eq!(line(&stats), format!("{expected} · slowest 1h01m"));
    }
}
