//! Picks a token.
//!
//! The log-probability is that of the model at the temperature. What else decides about a token, that is `top_p`,
//! `top_k`, a penalty, or that it would end the text too early, only cuts what there is to choose from: so a trainer,
//! who knows none of it, finds the same number.

use rollyard_engine::generate::GenerationConfig;

use super::ask::Alternative;

/// Colder than this, the likeliest token always wins.
const COLDEST: f32 = 1e-5;

/// How a request chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    greedy: bool,
    /// Of the logits: one over the temperature.
    scale: f32,
    top_p: f32,
    top_k: usize,
    penalty: f32,
}

impl Choice {
    pub(super) fn new(sampling: &GenerationConfig) -> Self {
        let greedy = sampling.greedy || sampling.temperature < COLDEST;
        Self {
            greedy,
            scale: if greedy { 1.0 } else { 1.0 / sampling.temperature },
            top_p: if greedy { 1.0 } else { sampling.top_p },
            top_k: sampling.top_k.filter(|_| !greedy).map_or(usize::MAX, |top_k| top_k as usize),
            penalty: sampling.frequency_penalty,
        }
    }
}

/// What one token is picked from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odds<'a> {
    pub(super) logits: &'a [f32],
    /// Not to be picked now.
    pub(super) barred: &'a [i32],
    /// What was sampled before, for the penalty.
    pub(super) before: &'a [i32],
    /// In [0, 1).
    pub(super) noise: f64,
    pub(super) tops: usize,
}

/// Room to compute in, used again for every token.
#[derive(Debug, Default)]
pub(super) struct Picker {
    /// Of the likeliest token's probability.
    shares: Vec<f32>,
    order: Vec<usize>,
}

impl Picker {
    /// `None` if the logits are not numbers.
    pub(super) fn pick(
        &mut self,
        choice: &Choice,
        odds: Odds<'_>,
        tops: &mut Vec<Alternative>,
    ) -> Option<Alternative> {
        let Odds { logits, barred, before, noise, tops: tops_len } = odds;
        let scale = choice.scale;
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) * scale;
        self.shares.clear();
        self.shares.extend(logits.iter().map(|logit| (logit * scale - most).exp()));
        let sum: f32 = self.shares.iter().sum();
        if !sum.is_finite() {
            return None;
        }
        let whole = most + sum.ln();
        let told = |at: usize| Alternative {
            token: i32::try_from(at).unwrap_or(i32::MAX),
            logprob: logits.get(at).map_or(f32::NEG_INFINITY, |logit| logit * scale - whole),
        };
        if tops_len > 0 {
            self.likeliest(tops_len);
            tops.extend(self.order.iter().map(|at| told(*at)));
        }
        self.bar(barred);
        if choice.penalty != 0.0 {
            self.punish((-choice.penalty * scale).exp(), before);
        }
        let picked = if choice.greedy { self.argmax() } else { self.draw(choice, noise) };
        Some(told(picked))
    }

    fn bar(&mut self, tokens: &[i32]) {
        for token in tokens {
            if let Some(share) = usize::try_from(*token).ok().and_then(|token| self.shares.get_mut(token)) {
                *share = 0.0;
            }
        }
    }

    fn punish(&mut self, factor: f32, tokens: &[i32]) {
        for token in tokens {
            if let Some(share) = usize::try_from(*token).ok().and_then(|token| self.shares.get_mut(token)) {
                *share = (*share * factor).min(f32::MAX);
            }
        }
    }

    fn argmax(&self) -> usize {
        let first = (0, f32::NEG_INFINITY);
        let larger = |best: (usize, f32), (at, share): (usize, &f32)| {
            if *share > best.1 { (at, *share) } else { best }
        };
        self.shares.iter().enumerate().fold(first, larger).0
    }

    /// The places of so many largest shares, the largest first, and of equal ones the first.
    fn likeliest(&mut self, count: usize) {
        let shares = &self.shares;
        let share = |at: &usize| shares.get(*at).copied().unwrap_or_default();
        let by_share = |one: &usize, other: &usize| share(other).total_cmp(&share(one)).then(one.cmp(other));
        self.order.clear();
        self.order.extend(0..shares.len());
        if count < shares.len() {
            self.order.select_nth_unstable_by(count, by_share);
            self.order.truncate(count);
        }
        self.order.sort_unstable_by(by_share);
    }

    fn draw(&mut self, choice: &Choice, noise: f64) -> usize {
        if choice.top_k >= self.shares.len() && choice.top_p >= 1.0 {
            return drawn(self.shares.iter().copied().enumerate(), noise).unwrap_or_else(|| self.argmax());
        }
        // SGLang cuts by `top_k` first and takes `top_p` of what all tokens had together.
        let total: f64 = self.shares.iter().map(|share| f64::from(*share)).sum();
        self.likeliest(choice.top_k.min(self.shares.len()));
        let mut kept = 0;
        let mut seen = 0.0;
        for at in &self.order {
            if kept > 0 && seen >= f64::from(choice.top_p) * total {
                break;
            }
            seen += f64::from(self.shares.get(*at).copied().unwrap_or_default());
            kept += 1;
        }
        let shares = &self.shares;
        let kept = self.order.iter().take(kept).map(|at| (*at, shares.get(*at).copied().unwrap_or_default()));
        drawn(kept, noise).unwrap_or_else(|| self.argmax())
    }
}

/// `None` if there is nothing to draw from.
fn drawn(shares: impl Iterator<Item = (usize, f32)> + Clone, noise: f64) -> Option<usize> {
    let total: f64 = shares.clone().map(|(_, share)| f64::from(share)).sum();
    let aim = noise * total;
    let mut seen = 0.0;
    let mut last = None;
    for (at, share) in shares.filter(|(_, share)| *share > 0.0) {
        seen += f64::from(share);
        last = Some(at);
        if seen > aim {
            break;
        }
    }
    last
}
