//! One Markdown row per number, in the manner of the bench.

use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    what: String,
    measured: String,
    baseline: String,
    ratio: Option<f64>,
}

/// How far what was simulated may be from what was reckoned.
const TOLERANCE: f64 = 0.05;

impl Row {
    /// What was simulated beside what the arithmetic says.
    pub(crate) fn held_to(what: &str, measured: f64, reckoned: f64, unit: &str) -> Self {
        Self {
            what: what.to_owned(),
            measured: format!("{} {unit}", number(measured)),
            baseline: format!("{} {unit}", number(reckoned)),
            ratio: Some(measured / reckoned),
        }
    }

    /// A number with nothing beside it.
    pub(crate) fn value(what: &str, measured: f64, unit: &str) -> Self {
        Self {
            what: what.to_owned(),
            measured: format!("{} {unit}", number(measured)),
            baseline: "–".to_owned(),
            ratio: None,
        }
    }

    pub(crate) fn count(what: &str, count: u64) -> Self {
        Self { measured: apart(&count.to_string()), ..Self::value(what, 0.0, "") }
    }

    pub(crate) fn is_met(&self) -> bool {
        self.ratio.is_none_or(|ratio| (ratio - 1.0).abs() <= TOLERANCE)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, baseline, ratio } = self;
        match ratio {
            None => write!(out, "| {what} | {measured} | {baseline} | – | – | – |"),
            Some(ratio) => {
                let met = if self.is_met() { "yes" } else { "missed" };
                write!(
                    out,
                    "| {what} | {measured} | {baseline} | {ratio:.3} | within {TOLERANCE} of 1 | {met} |"
                )
            }
        }
    }
}

pub(crate) fn markdown(rows: &[Row]) -> String {
    let head = "| what | simulated | arithmetic | ratio | bar | met |\n|---|---:|---:|---:|---:|---|\n";
    rows.iter().fold(head.to_owned(), |text, row| format!("{text}{row}\n"))
}

/// With as many digits as say something, and thousands apart.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    apart(whole) + rest
}

fn apart(whole: &str) -> String {
    let mut apart = String::new();
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}
