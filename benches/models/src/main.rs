//! The demo's model written by hand over ndarray, beside the same model in candle: sampling and training.
//!
//! `rollyard-models [ROUNDS]`. Both have the same weights, and must sample the same tokens and find the same gradients
//! before they are timed. In every round each way of using the cores is a process of its own, since candle's threads
//! are set once and for all, and in it the two take turns. See `docs/decisions/012-tiny-model.md`.

mod in_candle;
mod ours;
mod table;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rollyard_tiny::model::{Shape, Weights};
use rollyard_tiny::tokenizer;
use rollyard_tiny::train::Lesson;

use in_candle::InCandle;
use table::{Table, Ways};

const TEXTS_SAMPLED: usize = 256;
const PROMPT: usize = 8;
const ANSWER: usize = 24;
const TEXTS_TRAINED: usize = 512;
const TRAINED_LEN: usize = 14;
const TAUGHT: usize = 8;
/// Each contestant has this long in a round, after one try to warm up.
const TURN: Duration = Duration::from_millis(1500);
const TURNS: usize = 2;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => all(7),
        [rounds] => all(rounds.parse().context("usage: rollyard-models [ROUNDS]")?),
        ["round", ways] => round(ways.parse()?),
        _ => Err(anyhow!("usage: rollyard-models [ROUNDS]")),
    }
}

fn all(rounds: usize) -> Result<()> {
    let mut table = Table::default();
    for nth in 1..=rounds {
        eprintln!("round {nth} of {rounds}");
        for ways in Ways::ALL {
            let child = Command::new(std::env::current_exe()?)
                .args(["round", ways.name()])
                .env("RAYON_NUM_THREADS", ways.candle_threads().to_string())
                .output()?;
            ensure!(child.status.success(), "{}: {}", ways.name(), String::from_utf8_lossy(&child.stderr));
            String::from_utf8(child.stdout)?.lines().try_for_each(|line| table.add(line))?;
        }
    }
    print!("{table}");
    Ok(())
}

/// Prints a line for everything measured: what, and the tokens a second of both.
fn round(ways: Ways) -> Result<()> {
    let shape = Shape::demo(tokenizer::vocabulary_len());
    let weights = Weights::random(shape, 1);
    let candle = InCandle::new(&weights)?;
    let prompts = texts(TEXTS_SAMPLED, PROMPT, shape.vocabulary);
    let lessons: Vec<Lesson> = texts(TEXTS_TRAINED, TRAINED_LEN, shape.vocabulary)
        .iter()
        .map(|text| Lesson::answer(&text[..TRAINED_LEN - TAUGHT], &text[TRAINED_LEN - TAUGHT..]))
        .collect();
    agree(&weights, &candle, &prompts, &lessons, ways)?;
    let sampled = TEXTS_SAMPLED * ANSWER;
    let trained = TEXTS_TRAINED * TRAINED_LEN;
    if ways != Ways::TwoHalves {
        let rates = versus(
            sampled,
            || ours::sample(&weights, &prompts, ANSWER).map(drop),
            || candle.sample(&prompts, ANSWER).map(drop),
        )?;
        println!("sampling, {}\t{}\t{}", ways.name(), rates.0, rates.1);
    }
    let rates = versus(
        trained,
        || ours::train(&weights, &lessons, ways.threads()).map(drop),
        || candle.train(&lessons, ways.candle_parts()).map(drop),
    )?;
    println!("training, {}\t{}\t{}", ways.name(), rates.0, rates.1);
    Ok(())
}

fn agree(
    weights: &Weights,
    candle: &InCandle,
    prompts: &[Vec<i32>],
    lessons: &[Lesson],
    ways: Ways,
) -> Result<()> {
    let (ours_said, candle_said) =
        (ours::sample(weights, prompts, ANSWER)?, candle.sample(prompts, ANSWER)?);
    let same = ours_said.iter().zip(&candle_said).filter(|(ours, candle)| ours == candle).count();
    // Sums in another order may turn a choice between two equal tokens.
    ensure!(same * 100 >= prompts.len() * 98, "only {same} of {} texts are the same", prompts.len());
    let (loss, gradients) = ours::train(weights, lessons, ways.threads())?;
    let (candle_loss, candle_gradients) = candle.train(lessons, ways.candle_parts())?;
    ensure!((loss - candle_loss).abs() < 1e-4, "losses of {loss} and {candle_loss}");
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    let apart = length(&mut gradients.values().iter().zip(&candle_gradients).map(|(ours, candle)| ours - candle));
    let whole = length(&mut gradients.values().iter().copied());
    ensure!(apart < 1e-3 * whole, "gradients of length {whole} are {apart} apart");
    Ok(())
}

/// Tokens a second of both, who take turns.
fn versus(
    tokens: usize,
    mut ours: impl FnMut() -> Result<()>,
    mut candle: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    let mut spent = [(Duration::ZERO, 0_usize); 2];
    for _ in 0..TURNS {
        let contestants: [&mut dyn FnMut() -> Result<()>; 2] = [&mut ours, &mut candle];
        for (contestant, (time, tries)) in contestants.into_iter().zip(&mut spent) {
            contestant()?;
            let began = Instant::now();
            while began.elapsed() < TURN {
                contestant()?;
                *tries += 1;
            }
            *time += began.elapsed();
        }
    }
    let [ours, candle] = spent.map(|(time, tries)| (tokens * tries) as f64 / time.as_secs_f64());
    Ok((ours, candle))
}

/// The same each time, and no two alike.
fn texts(count: usize, length: usize, vocabulary: usize) -> Vec<Vec<i32>> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i32::try_from((state >> 33) % vocabulary as u64).unwrap_or_default()
    };
    (0..count).map(|_| (0..length).map(|_| next()).collect()).collect()
}
