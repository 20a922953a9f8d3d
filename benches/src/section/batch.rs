//! Padded batches of 512 rollouts of up to 8,192 tokens: ours, a plain copy of as many bytes, and a numpy loop.
//!
//! Each batch is given back before the next is made, so that an allocator may use its memory again; the plain
//! copy asks for memory of the same sizes from the same allocator. The contestants take turns.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rollyard_core::batch::{Layout, TensorDict, Weighted, sequences, training};
use rollyard_core::rollout::Rollout;

use crate::rollouts::{Lengths, Random};
use crate::setup::{Setup, repository};
use crate::table::{Bar, Row, median, millis};

const ROLLOUTS: usize = 512;
const TOKENS: usize = 8_192;

/// A batch takes milliseconds, so a round of the bench is this many of each.
const BATCHES_PER_ROUND: usize = 5;

pub(crate) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let mut random = Random::new(7);
    let full = vec![Lengths::of(TOKENS); ROLLOUTS];
    let uniform = (0..ROLLOUTS).map(|_| Lengths::of(random.between(TOKENS / 2, TOKENS))).collect();
    let mut rows = Vec::new();
    for (name, lengths) in [("4k–8k", uniform), ("8k", full)] {
        rows.extend(Contest::new(setup, name, &lengths)?.run(setup)?);
    }
    Ok(rows)
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Sequences,
    Training,
}

struct Contest {
    name: &'static str,
    rollouts: Vec<Rollout>,
    numpy: Numpy,
}

/// Seconds of every batch.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    copy: Vec<f64>,
    arrays: Vec<f64>,
    lists: Vec<f64>,
}

impl Contest {
    fn new(setup: &Setup, name: &'static str, lengths: &[Lengths]) -> Result<Self> {
        let mut random = Random::new(8);
        let rollouts =
            lengths.iter().map(|lengths| lengths.rollout(&mut random)).collect::<Result<_, _>>()?;
        Ok(Self { name, rollouts, numpy: Numpy::start(setup, lengths)? })
    }

    fn run(mut self, setup: &Setup) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for kind in [Kind::Sequences, Kind::Training] {
            let mut times = Times::default();
            let pattern = self.batch(kind)?;
            for _ in 0..BATCHES_PER_ROUND * setup.rounds as usize {
                times.ours.push(timed(|| self.batch(kind))?);
                times.copy.push(timed(|| Ok(copy(&pattern)))?);
                times.arrays.push(self.numpy.batch("arrays", kind)?);
            }
            // A batch out of lists takes a hundred times as long and is as steady.
            for _ in 0..setup.rounds {
                times.lists.push(self.numpy.batch("lists", kind)?);
            }
            rows.extend(self.rows(kind, &times));
        }
        Ok(rows)
    }

    fn batch(&self, kind: Kind) -> Result<TensorDict> {
        let layout = Layout::default();
        Ok(match kind {
            Kind::Sequences => sequences(&self.rollouts, &layout)?,
            Kind::Training => {
                let weighted = self.rollouts.iter().map(|rollout| Weighted { rollout, advantage: 0.5 });
                training(&weighted.collect::<Vec<_>>(), &layout, None)?
            }
        })
    }

    fn rows(&self, kind: Kind, times: &Times) -> [Row; 3] {
        let what = match kind {
            Kind::Sequences => "sequences",
            Kind::Training => "training",
        };
        let (ours, copy) = (median(&times.ours), median(&times.copy));
        let (arrays, lists) = (median(&times.arrays), median(&times.lists));
        eprintln!(
            "  {what}, {}: ours {}, copy {}, numpy {}, numpy from lists {}",
            self.name,
            range(&times.ours),
            range(&times.copy),
            range(&times.arrays),
            range(&times.lists),
        );
        let row = |against: &str| format!("batch of {ROLLOUTS} × {}, {what}, {against}", self.name);
        [
            Row::ratio(&row("against a copy of as many bytes"), ours, copy, millis, Bar::AtMost(1.5)),
            Row::speedup(&row("against numpy from arrays"), ours, arrays, Bar::AtLeast(5.0)),
            Row::speedup(&row("against numpy from lists"), ours, lists, Bar::AtLeast(5.0)),
        ]
    }
}

/// How long it takes; what is made is dropped after the clock has stopped.
fn timed<T>(make: impl FnOnce() -> Result<T>) -> Result<f64> {
    let begin = Instant::now();
    let made = std::hint::black_box(make()?);
    let seconds = begin.elapsed().as_secs_f64();
    drop(made);
    Ok(seconds)
}

/// The same bytes in new memory of the same sizes.
fn copy(batch: &TensorDict) -> Vec<Vec<u8>> {
    batch.values().map(|tensor| tensor.bytes().to_vec()).collect()
}

fn range(seconds: &[f64]) -> String {
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = seconds.iter().copied().fold(0.0, f64::max);
    format!("{:.1} ({:.1}–{:.1}) ms", median(seconds) * 1e3, least * 1e3, most * 1e3)
}

/// The loop in Python, which makes one batch when it is told to.
struct Numpy {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Numpy {
    fn start(setup: &Setup, lengths: &[Lengths]) -> Result<Self> {
        let script = repository().join("benches/baselines/numpy_batch.py");
        let mut child = setup.python()?.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("its input is piped")?;
        let stdout = BufReader::new(child.stdout.take().context("its output is piped")?);
        let lengths: Vec<_> = lengths.iter().map(Lengths::parts).collect();
        writeln!(stdin, "{}", serde_json::to_string(&lengths)?)?;
        Ok(Self { child, stdin, stdout })
    }

    /// Makes a batch and says how many seconds it took.
    fn batch(&mut self, rows: &str, kind: Kind) -> Result<f64> {
        let kind = format!("{kind:?}").to_lowercase();
        writeln!(self.stdin, "{rows} {kind}")?;
        let mut answer = String::new();
        let read = self.stdout.read_line(&mut answer)?;
        ensure!(read > 0, "the numpy loop ended: is numpy installed?");
        answer.trim().parse().with_context(|| format!("the numpy loop said {answer:?}"))
    }
}

impl Drop for Numpy {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}
