//! Goes through lessons and finds what every weight is to blame for.

use crate::model::{DecoderError, Tape, Texts, Weights};

use super::lesson::Lesson;

/// One token that is taught.
#[derive(Clone, Copy, Debug)]
pub struct Taught {
    /// Counts the taught tokens of all lessons, in their order.
    pub nth: usize,
    /// Under the weights as they are.
    pub logprob: f32,
    /// Under the weights that sampled it.
    pub sampled: f32,
    pub advantage: f32,
}

/// What a token costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Blame {
    pub loss: f64,
    /// By how much the loss rises with the token's log-probability.
    pub slope: f32,
}

/// What is to be made small: a sum over all taught tokens.
pub trait Objective: Sync {
    fn blame(&self, token: Taught) -> Blame;
}

impl<F: Fn(Taught) -> Blame + Sync> Objective for F {
    fn blame(&self, token: Taught) -> Blame {
        self(token)
    }
}

/// Works on lessons with so many threads.
#[derive(Clone, Copy, Debug)]
pub struct Student {
    pub threads: usize,
}

impl Student {
    pub fn on_all_cores() -> Self {
        Self { threads: std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// The loss over all lessons, and its gradient.
    pub fn study(
        &self,
        weights: &Weights,
        lessons: &[Lesson],
        objective: &impl Objective,
    ) -> Result<(f64, Weights), DecoderError> {
        let parts = self.on_all(lessons, |first, lessons| {
            let mut gradients = Weights::zeros(*weights.shape());
            let loss = study_part(weights, lessons, first, objective, &mut gradients)?;
            Ok((loss, gradients))
        })?;
        let mut sum: Option<(f64, Weights)> = None;
        for (loss, part) in parts {
            match &mut sum {
                None => sum = Some((loss, part)),
                Some((total, gradients)) => {
                    *total += loss;
                    for (gradient, part) in gradients.values_mut().iter_mut().zip(part.values()) {
                        *gradient += part;
                    }
                }
            }
        }
        Ok(sum.unwrap_or_else(|| (0.0, Weights::zeros(*weights.shape()))))
    }

    /// The log-probability of every taught token, in their order.
    pub fn logprobs(&self, weights: &Weights, lessons: &[Lesson]) -> Result<Vec<f32>, DecoderError> {
        let parts = self.on_all(lessons, |_, lessons| {
            let texts = texts(lessons);
            let tape = Tape::record(weights, &texts)?;
            let mut logprobs = Vec::new();
            let mut scratch = Vec::new();
            for_each_taught(lessons, tape.logits(), weights.shape().vocabulary, |row| {
                logprobs.push(row.logprob(&mut scratch));
            });
            Ok(logprobs)
        })?;
        Ok(parts.concat())
    }

    /// Shares the lessons out, so that every thread has as many tokens. What comes back is in the order of the lessons.
    fn on_all<T: Send>(
        &self,
        lessons: &[Lesson],
        work: impl Fn(usize, &[Lesson]) -> Result<T, DecoderError> + Sync,
    ) -> Result<Vec<T>, DecoderError> {
        let shares = shares(lessons, self.threads.max(1));
        std::thread::scope(|scope| {
            let threads: Vec<_> = shares
                .into_iter()
                .map(|(first, share)| {
                    let work = &work;
                    scope.spawn(move || work(first, share))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(DecoderError::Model("a thread panicked".to_owned())))
                })
                .collect()
        })
    }
}

/// Parts of about as many tokens, each with the number of its first taught token.
fn shares(lessons: &[Lesson], parts: usize) -> Vec<(usize, &[Lesson])> {
    let total: usize = lessons.iter().map(|lesson| lesson.tokens.len()).sum();
    let (mut shares, mut rest, mut first, mut done) = (Vec::new(), lessons, 0, 0);
    for part in 1..=parts {
        let mut count = 0;
        for lesson in rest {
            if part < parts && done * parts >= total * part {
                break;
            }
            done += lesson.tokens.len();
            count += 1;
        }
        let (share, further) = rest.split_at(count);
        rest = further;
        if !share.is_empty() {
            shares.push((first, share));
            first += share.iter().map(Lesson::taught).sum::<usize>();
        }
    }
    shares
}

fn texts(lessons: &[Lesson]) -> Texts {
    let mut texts = Texts::default();
    for lesson in lessons {
        texts.push(&lesson.tokens);
    }
    texts
}

/// The logits that foretell a taught token.
struct Row<'a> {
    /// Its place among all rows.
    at: usize,
    logits: &'a [f32],
    token: usize,
    sampled: f32,
    lesson: &'a Lesson,
}

impl Row<'_> {
    /// The token's; leaves the shares of all tokens behind.
    fn logprob(&self, shares: &mut Vec<f32>) -> f32 {
        let scale = 1.0 / self.lesson.temperature;
        let most = self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) * scale;
        shares.clear();
        shares.extend(self.logits.iter().map(|logit| (logit * scale - most).exp()));
        let sum: f32 = shares.iter().sum();
        for share in shares.iter_mut() {
            *share /= sum;
        }
        self.logits.get(self.token).map_or(f32::NEG_INFINITY, |logit| logit * scale - most - sum.ln())
    }
}

fn for_each_taught<'a>(
    lessons: &'a [Lesson],
    logits: &'a [f32],
    vocabulary: usize,
    mut visit: impl FnMut(Row<'a>),
) {
    let mut start = 0;
    for lesson in lessons {
        let followed = lesson.tokens.iter().zip(&lesson.sampled).skip(1).enumerate();
        for (nth, (token, sampled)) in followed {
            let Some(sampled) = *sampled else { continue };
            let at = start + nth;
            let logits = logits.get(at * vocabulary..(at + 1) * vocabulary).unwrap_or_default();
            let token = usize::try_from(*token).unwrap_or_default();
            visit(Row { at, logits, token, sampled, lesson });
        }
        start += lesson.tokens.len();
    }
}

fn study_part(
    weights: &Weights,
    lessons: &[Lesson],
    first: usize,
    objective: &impl Objective,
    gradients: &mut Weights,
) -> Result<f64, DecoderError> {
    let texts = texts(lessons);
    let tape = Tape::record(weights, &texts)?;
    let vocabulary = weights.shape().vocabulary;
    let mut dlogits = vec![0.0; tape.logits().len()];
    let (mut loss, mut nth, mut shares) = (0.0, first, Vec::new());
    for_each_taught(lessons, tape.logits(), vocabulary, |row| {
        let logprob = row.logprob(&mut shares);
        let blame =
            objective.blame(Taught { nth, logprob, sampled: row.sampled, advantage: row.lesson.advantage });
        nth += 1;
        loss += blame.loss;
        let slope = blame.slope / row.lesson.temperature;
        let into = dlogits.get_mut(row.at * vocabulary..(row.at + 1) * vocabulary).unwrap_or_default();
        for (index, (d, share)) in into.iter_mut().zip(&shares).enumerate() {
            *d = slope * (f32::from(u8::from(index == row.token)) - share);
        }
    });
    tape.back(&dlogits, gradients);
    Ok(loss)
}
