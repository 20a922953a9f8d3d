//! The run itself: which prompt comes when, how well it goes, and what becomes of the rollouts.

use serde_json::{Map, Value, json};

use super::chance::Chance;
use super::task::{Attempt, Skill, Stop, Task, answer};
use super::tokens::{self, Sampling};
use super::{chat, code, math, search};

pub const STEPS: u64 = 60;
pub const SOURCES: [&str; 4] = ["math/gsm", "code/unit-tests", "agent/search", "chat/safety"];
const NAME: &str = "grpo-7b-mix";
const GROUP: u64 = 8;
const PROMPTS: u64 = 15;
/// 2 March 2026, 08:00 UTC.
const BEGIN_SECS: i64 = 1_772_438_400;
const STEP_SECS: i64 = 96;
/// A number that JSON does not have stands for itself until the line is written.
const NAN: &str = "@NaN@";

/// The files, and what was planted in them.
#[derive(Debug, Default)]
pub struct Example {
    pub files: Vec<(&'static str, Vec<u8>)>,
    pub rows: u64,
    pub bad_rows: u64,
    pub copies: u64,
    pub unclosed: u64,
    pub truncated: u64,
    pub odd: u64,
    pub groups: u64,
    pub dead_groups: u64,
    pub with_tokens: u64,
}

/// The steps of each file.
const FILES: [(&str, std::ops::RangeInclusive<u64>); 3] =
    [("rollouts-0001.jsonl", 1..=20), ("rollouts-0002.jsonl", 21..=40), ("rollouts-0003.jsonl", 41..=STEPS)];

impl Example {
    pub fn make() -> Self {
        let mut example = Self::default();
        let mut last = String::new();
        for (nth, (name, steps)) in FILES.into_iter().enumerate() {
            let mut lines = Vec::new();
            if nth == 1 {
                // A writer that was started again wrote its last rollout once more.
                example.rows += 1;
                example.copies += 1;
                lines.extend_from_slice(last.as_bytes());
            }
            for step in steps {
                for source in 0..SOURCES.len() as u64 {
                    for line in example.group(step, source) {
                        lines.extend_from_slice(line.as_bytes());
                        last = line;
                    }
                }
                example.spoil(step, &mut lines);
            }
            example.files.push((name, lines));
        }
        example
    }

    /// What a crash and a careless print leave in such files.
    fn spoil(&mut self, step: u64, lines: &mut Vec<u8>) {
        let spoilt = match step {
            13 => {
                "{\"messages\": [{\"role\": \"system\", \"content\": \"Solve the problem.\"}, {\"role\": \"user\", \"content\": \"A train runs 2 ho\n"
            }
            34 => "WARNING:rollout_writer:buffer is 91% full, flushing 64 rollouts\n",
            _ => return,
        };
        lines.extend_from_slice(spoilt.as_bytes());
        self.rows += 1;
        self.bad_rows += 1;
    }

    fn group(&mut self, step: u64, source: u64) -> Vec<String> {
        let number = (step * 7 + source * 4) % PROMPTS;
        let task = task(source, number);
        let attempts: Vec<Attempt> =
            (0..GROUP).map(|member| attempt(Place { step, source, number, member })).collect();
        let scores: Vec<f64> =
            attempts.iter().filter(|attempt| !attempt.is_nan).map(|attempt| attempt.score).collect();
        let spread = Spread::of(&scores);
        self.groups += 1;
        self.dead_groups += u64::from(spread.is_flat);
        let lines = (0..GROUP).zip(&attempts).map(|(member, attempt)| {
            self.rows += 1;
            self.unclosed += u64::from(attempt.is_unclosed);
            self.truncated += u64::from(attempt.stop == Stop::Length);
            self.odd += u64::from(attempt.is_nan);
            let place = Place { step, source, number, member };
            let line = line(place, &task, attempt, &spread);
            self.with_tokens += u64::from(line.contains("\"token_texts\""));
            line
        });
        lines.collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    step: u64,
    source: u64,
    /// Of the prompt.
    number: u64,
    member: u64,
}

impl Place {
    fn chance(self, what: u64) -> Chance {
        Chance::of([what, self.step, self.source, self.member])
    }
}

fn task(source: u64, number: u64) -> Task {
    match source {
        0 => math::task(number),
        1 => code::task(number),
        2 => search::task(number),
        _ => chat::task(number),
    }
}

/// How well it goes: from a fifth to most, with noise, hard and easy prompts, and a bad patch in code.
fn skill(place: Place) -> Skill {
    let Place { step, source, number, .. } = place;
    let (from, to, middle) = match source {
        0 => (0.14, 0.93, 22.0),
        1 => (0.10, 0.86, 28.0),
        2 => (0.08, 0.88, 34.0),
        _ => (0.30, 0.84, 26.0),
    };
    let curve = 1.0 / (1.0 + (-(step as f64 - middle) / 7.5).exp());
    let hard = Chance::of([7, source, number, 0]).noise() * 0.11;
    let luck = Chance::of([8, source, step, 0]).noise() * 0.04;
    let mut right = from + (to - from) * curve + hard + luck;
    let is_slump = source == 1 && (38..=44).contains(&step);
    if is_slump {
        right *= 0.2 + 0.06 * (step - 38) as f64;
    }
    Skill { step, right: right.clamp(0.01, 0.985), is_slump }
}

fn attempt(place: Place) -> Attempt {
    let Place { step, source, number, member } = place;
    let mut chance = place.chance(3);
    let skill = skill(place);
    match (step, source, member) {
        (4, 0, 2) => harmony(),
        (9, 0, 5) => format_only(),
        (12, 1, 3) => code::leak(number),
        (27, 1, 6) => code::tampering(number),
        (21, 0, 1) => Attempt { is_nan: true, ..math::attempt(number, &mut chance, skill) },
        (33, 0, 4) | (35, 3, 2) | (41, 1, 0) => looped(&mut chance),
        (17, 2, 7) => search::long_walk(number, &mut chance),
        (50, 2, 0) => search::huge(number, &mut chance),
        (6, 3, 3) => chat::parts(number, &mut chance, skill),
        (22, 3, 6) => chat::nothing(),
        (_, 0, _) => math::attempt(number, &mut chance, skill),
        (_, 1, _) => code::attempt(number, &mut chance, skill),
        (_, 2, _) => search::attempt(number, &mut chance, skill),
        _ => chat::attempt(number, &mut chance, skill),
    }
}

/// As models of another family write: thoughts and answer in channels.
fn harmony() -> Attempt {
    let text = "<|channel|>analysis<|message|>The user asks a word problem. I read the numbers, then go step by step. \
                The first quantity is given, the second follows from it, and the third is what is asked. I am not \
                sure whether the last part counts, so I leave it out.<|end|><|start|>assistant<|channel|>final<|message|>\
                I could not settle whether the last part counts. Without it the result is $\\boxed{17}$.<|return|>";
    Attempt {
        messages: vec![answer(text)],
        parts: vec![("correct", 0.0), ("format", 1.0), ("length", 1.0)],
        ..Attempt::default()
    }
}

/// All of the form and nothing of the matter.
fn format_only() -> Attempt {
    let text = "<think>\nThe answer has to be in a box.\n</think>\n\n## Solution\n\n1. Read the question.\n2. Compute the \
                result.\n3. Put it into a box.\n\nThe answer is $\\boxed{0}$.";
    Attempt {
        messages: vec![answer(text)],
        score: 0.2,
        parts: vec![("correct", 0.0), ("format", 1.0), ("length", 1.0)],
        ..Attempt::default()
    }
}

/// Goes round in circles until the tokens are used up.
fn looped(chance: &mut Chance) -> Attempt {
    let round = chance.pick(&[
        "Wait, let me go through this again. The question asks for the number, so I have to find the number. ",
        "Hmm, that does not look right. I should check the first step again, because the first step matters. ",
        "But is that what was asked? Let me read the question once more, word for word, to be sure. ",
    ]);
    let text = format!("<think>\nLet me start with what is known.\n{}", round.repeat(60));
    Attempt {
        messages: vec![answer(text)],
        parts: vec![("correct", 0.0), ("format", 0.0), ("length", 0.0)],
        stop: Stop::Length,
        is_unclosed: true,
        ..Attempt::default()
    }
}

/// The rewards of a group.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    deviation: f64,
    is_flat: bool,
}

impl Spread {
    fn of(scores: &[f64]) -> Self {
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let deviation = (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count).sqrt();
        let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { mean, deviation, is_flat: low == high }
    }
}

/// What the ledger says of a rollout.
struct Fate {
    status: &'static str,
    reason: Option<&'static str>,
    why: Option<&'static str>,
    lag: u64,
}

fn fate(place: Place, attempt: &Attempt, spread: &Spread) -> Fate {
    let group = &mut Chance::of([5, place.step, place.source, 99]);
    // Engines fell behind for a while, which is when the bad patch began.
    let slow = if (36..=40).contains(&place.step) { 0.25 } else { 0.0 };
    let lag = match group.share() + slow {
        share if share < 0.42 => 0,
        share if share < 0.74 => 1,
        share if share < 0.89 => 2,
        share if share < 0.97 => 3,
        _ => 4,
    };
    let is_stale = group.happens(0.03 + slow / 4.0);
    let dropped = |reason, why| Fate { status: "dropped", reason: Some(reason), why, lag };
    match () {
        () if spread.is_flat => dropped("no_variance", None),
        () if attempt.is_nan => dropped("filtered", Some("the reward is not a number")),
        () if is_stale => Fate { lag: lag + 5, ..dropped("stale_step", None) },
        () if place.step == 30 && place.source == 2 => {
            dropped("hook_rejected", Some("the search backend was down for half of the group"))
        }
        () if place.step == 3 && place.source == 3 => dropped("too_few_in_time", None),
        () if attempt.stop == Stop::Length => {
            dropped("filtered", Some("too long: generation ended at the limit"))
        }
        () if place.step >= STEPS - 1 => Fate { status: "held", reason: None, why: None, lag: 0 },
        () => Fate { status: "trained", reason: None, why: None, lag },
    }
}

/// A line of the viewer's format, as the archive of a run writes it.
fn line(place: Place, task: &Task, attempt: &Attempt, spread: &Spread) -> String {
    let Place { step, source, member, number } = place;
    let mut chance = place.chance(4);
    let fate = fate(place, attempt, spread);
    let is_mixed = chance.happens(0.09);
    let group = (step - 1) * SOURCES.len() as u64 + source;
    let asked = [
        json!({"role": "system", "content": task.system}),
        json!({"role": "user", "content": task.question}),
    ];
    let messages: Vec<Value> = asked.iter().chain(&attempt.messages).cloned().collect();
    let advantage = (!attempt.is_nan)
        .then(|| if spread.is_flat { 0.0 } else { (attempt.score - spread.mean) / (spread.deviation + 1e-6) })
        .map(|advantage| (advantage * 1e4).round() / 1e4);
    let source_name = SOURCES.get(source as usize).copied().unwrap_or_default();
    let worker = format!("engine-{}", chance.below(4));
    let seconds = BEGIN_SECS + step as i64 * STEP_SECS + chance.between(0, STEP_SECS - 1);
    let at = jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string();
    let mut attributes = json!({
        "sample_index": member,
        "step": step,
        "rollout_n": group * GROUP + member + 1,
        "reward": reward(attempt),
        "data_source": source_name,
        "experiment_name": NAME,
        "validate": false,
        "group": group,
        "round": 0,
        "epoch": (step - 1) / PROMPTS,
        "advantage": advantage,
        "stop_reason": attempt.stop.name(),
        "status": fate.status,
        "reason": fate.reason,
        "why": fate.why,
        "trained_step": (fate.status == "trained").then_some(step + fate.lag),
        "staleness": (fate.reason == Some("stale_step")).then_some(fate.lag),
        "difficulty": (Chance::of([7, source, number, 0]).noise() * -0.5 + 3.0).round().clamp(1.0, 5.0) as i64,
        "temperature": 1.0,
        "worker_id": worker,
    });
    if let Some(attributes) = attributes.as_object_mut() {
        attributes.retain(|_, value| !value.is_null());
        if !task.truth.is_empty() {
            attributes.insert("ground_truth".to_owned(), json!(task.truth));
        }
    }
    let mut row = Map::new();
    row.insert("uid".to_owned(), json!(format!("{NAME}-{group:04}-{member}")));
    row.insert("instance_id".to_owned(), json!(task.instance));
    row.insert("messages".to_owned(), json!(messages));
    row.insert("attributes".to_owned(), attributes);
    row.insert("timestamp".to_owned(), json!(at));
    row.insert("weight_version".to_owned(), json!(step));
    let chars: usize = messages.iter().map(|message| message.to_string().len()).sum();
    if (step + source).is_multiple_of(2) && !attempt.is_nan && chars < 100_000 {
        let progress = step as f64 / STEPS as f64;
        let sampling = Sampling { version: step, is_mixed, advantage, progress };
        let made = tokens::fields(&messages, asked.len(), sampling, &mut chance);
        row.insert("response_length".to_owned(), json!(made.sampled));
        row.extend(made.fields);
    } else {
        let answers = attempt
            .messages
            .iter()
            .filter(|message| message.get("role").and_then(Value::as_str) == Some("assistant"));
        let chars: usize = answers.map(|message| message.to_string().len()).sum();
        // About what a tokenizer makes of prose.
        row.insert("response_length".to_owned(), json!(chars / 4));
        if is_mixed {
            row.insert("tail_version".to_owned(), json!(step + 1));
        }
    }
    format!("{}\n", Value::from(row)).replace(&format!("\"{NAN}\""), "NaN")
}

/// One number, or an object of its parts with the score that was trained on.
fn reward(attempt: &Attempt) -> Value {
    if attempt.is_nan {
        return json!(NAN);
    }
    let score = (attempt.score * 1e4).round() / 1e4;
    if attempt.parts.is_empty() {
        return json!(score);
    }
    let parts = attempt.parts.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    std::iter::once(("score".to_owned(), json!(score))).chain(parts).collect::<Map<_, _>>().into()
}
