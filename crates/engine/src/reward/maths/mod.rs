//! Whether two answers to a maths problem are the same.
//!
//! [`extract`] finds the answer in what a model wrote. [`verify`] reads it and the truth with a small grammar of
//! LaTeX and plain notation (`lex`, `parse` into the tree of `tree`) and compares what they mean (`compare`).
//!
//! Equality is decided by `value`: a rational expression, with or without variables, is calculated in two
//! finite fields, so that equal is equal however large the numbers are; only roots, logarithms and the like
//! fall back to floating point. Where it is in doubt the answer is wrong: a reward that can be fooled is
//! worse than one that misses a form. `docs/reference/rewards.md` lists what is understood.
//!
//! Any text may come in: its length, its depth and the time it takes are bounded.

mod compare;
mod equal;
mod extract;
mod lex;
mod notation;
mod number;
mod parse;
mod primary;
mod reward;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use extract::extract;
pub use reward::MathsReward;

/// How strict to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MathsRules {
    /// How far a decimal may be from another, or from a number that decimals cannot write out (1/3, √2),
    /// relative to it. Whole numbers and fractions are exact.
    pub tolerance: f64,
    /// Lets `50` stand for `50%` too, beside `0.5`.
    pub bare_percent: bool,
    /// Takes the last number of a text that marks no answer.
    pub last_number: bool,
}

impl Default for MathsRules {
    fn default() -> Self {
        Self { tolerance: 1e-6, bare_percent: false, last_number: false }
    }
}

/// Whether the answer is the truth, by the usual rules.
pub fn verify(answer: &str, truth: &str) -> bool {
    MathsRules::default().verify(answer, truth)
}

impl MathsRules {
    pub fn verify(&self, answer: &str, truth: &str) -> bool {
        compare::same(answer, truth, self)
    }

    /// The answer that a text gives: the last that is boxed or otherwise marked.
    pub fn extract<'a>(&self, text: &'a str) -> Option<&'a str> {
        extract(text).or_else(|| extract::last_number(text).filter(|_| self.last_number))
    }
}
