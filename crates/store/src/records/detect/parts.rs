//! What a reward is made of.
//!
//! A reward of parts that is above 0 only by how the answer looks teaches how to look. Parts are told apart by the
//! words in their names.

use super::super::fields::REWARDS;
use super::super::json::{Node, Said};
use super::super::summary::number;

#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Those that say whether the answer is right.
    correct: Vec<(String, f64)>,
    format: Vec<(String, f64)>,
    other: Vec<(String, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Correct,
    Format,
    Total,
    Other,
}

/// Objects whose numbers are parts of a reward.
const OBJECTS: [&str; 6] =
    ["rewards", "reward_parts", "reward_components", "reward_breakdown", "reward_info", "metrics"];

impl Parts {
    pub(super) fn clear(&mut self) {
        self.correct.clear();
        self.format.clear();
        self.other.clear();
    }

    /// A field of the row.
    pub(super) fn hear(&mut self, name: &str, node: Node<'_>) {
        if REWARDS.contains(&name) || OBJECTS.contains(&name) {
            if matches!(node.said(), Said::Object) {
                node.entries().for_each(|(part, value)| self.add(part, value));
            }
            return;
        }
        // Beside a reward that is one number, only what plainly says it.
        match name {
            "acc" | "accuracy" | "correct" | "is_correct" | "correctness" | "exact_match"
            | "format_reward" | "accuracy_reward" | "correctness_reward" => self.add(name, node),
            _ => {}
        }
    }

    fn add(&mut self, name: &str, node: Node<'_>) {
        let Some(value) = number(node).map(super::super::fields::Number::float) else { return };
        let list = match about(name) {
            About::Correct => &mut self.correct,
            About::Format => &mut self.format,
            About::Other => &mut self.other,
            About::Total => return,
        };
        list.push((name.to_owned(), value));
    }

    /// Why the reward is one for the format alone.
    pub(super) fn format_only(&self, reward: Option<f64>) -> Option<String> {
        let all = self.correct.iter().chain(&self.format).chain(&self.other);
        let total = reward.unwrap_or_else(|| all.map(|(_, value)| value).sum());
        if total.is_nan() || total <= 0.0 {
            return None;
        }
        if let Some((name, _)) = self.correct.first() {
            let is_wrong = self.correct.iter().all(|(_, value)| *value <= 0.0);
            return is_wrong.then(|| format!("the reward is {total}, but {name} says that it is wrong"));
        }
        let is_lone = self.other.iter().all(|(_, value)| *value <= 0.0);
        let (name, value) = self.format.iter().find(|(_, value)| *value > 0.0)?;
        is_lone.then(|| format!("the reward is {total}, and only {name} ({value}) is above 0"))
    }
}

fn about(name: &str) -> About {
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "score" | "reward" | "total" | "overall") {
        return About::Total;
    }
    let words = || lower.split(|char: char| !char.is_ascii_alphanumeric());
    let is_correct = |word| {
        matches!(
            word,
            "acc"
                | "accuracy"
                | "correct"
                | "correctness"
                | "solved"
                | "success"
                | "pass"
                | "passed"
                | "em"
                | "exact"
        )
    };
    let is_format = |word| {
        matches!(
            word,
            "format"
                | "formatting"
                | "fmt"
                | "structure"
                | "template"
                | "tag"
                | "tags"
                | "xml"
                | "think"
                | "thinking"
                | "style"
                | "length"
                | "brevity"
                | "language"
        )
    };
    // `format_correct` is about the format.
    if words().any(is_format) {
        About::Format
    } else if words().any(is_correct) {
        About::Correct
    } else {
        About::Other
    }
}
