//! The answer of the bench: one Markdown row per promise, with its bar and whether it was met.

use std::fmt;

#[derive(Debug)]
pub(crate) struct Row {
    what: String,
    measured: String,
    baseline: String,
    ratio: String,
    bar: Bar,
    /// What the bar is held against: the ratio where there is one, else the measured value.
    judged: f64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
    Below { limit: f64, unit: &'static str },
    None,
}

impl Row {
    /// `measured` against `baseline`, both shown as `show` writes them.
    pub(crate) fn ratio(what: &str, measured: f64, baseline: f64, show: fn(f64) -> String, bar: Bar) -> Self {
        let ratio = measured / baseline;
        Self {
            what: what.to_owned(),
            measured: show(measured),
            baseline: show(baseline),
            ratio: format!("{ratio:.2}"),
            bar,
            judged: ratio,
        }
    }

    /// A speed-up: how many times longer the baseline takes.
    pub(crate) fn speedup(what: &str, seconds: f64, baseline: f64, bar: Bar) -> Self {
        let row = Self::ratio(what, baseline, seconds, millis, bar);
        Self { measured: row.baseline, baseline: row.measured, ..row }
    }

    /// A value with nothing beside it.
    pub(crate) fn value(what: &str, measured: f64, show: fn(f64) -> String, bar: Bar) -> Self {
        let none = || "–".to_owned();
        Self {
            what: what.to_owned(),
            measured: show(measured),
            baseline: none(),
            ratio: none(),
            bar,
            judged: measured,
        }
    }

    fn met(&self) -> &'static str {
        let met = match self.bar {
            Bar::AtLeast(limit) => self.judged >= limit,
            Bar::AtMost(limit) => self.judged <= limit,
            Bar::Below { limit, .. } => self.judged < limit,
            Bar::None => return "–",
        };
        if met { "yes" } else { "missed" }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(out, "≥ {limit}"),
            Self::AtMost(limit) => write!(out, "≤ {limit}"),
            Self::Below { limit, unit } => write!(out, "< {limit} {unit}"),
            Self::None => write!(out, "–"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, baseline, ratio, bar, .. } = self;
        write!(out, "| {what} | {measured} | {baseline} | {ratio} | {bar} | {} |", self.met())
    }
}

pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text =
        "| what | measured | baseline | ratio | bar | met |\n|---|---:|---:|---:|---:|---|\n".to_owned();
    for row in rows {
        text.push_str(&format!("{row}\n"));
    }
    text
}

pub(crate) fn per_sec(value: f64) -> String {
    format!("{value:.0} items/s")
}

pub(crate) fn millis(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

pub(crate) fn seconds(value: f64) -> String {
    format!("{value:.1} s")
}

pub(crate) fn gigabytes(value: f64) -> String {
    format!("{value:.2} GB")
}

pub(crate) fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// The middle of an odd number of measurements, the mean of the two in the middle of an even one.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(below), Some(above)) if sorted.len().is_multiple_of(2) => f64::midpoint(*below, *above),
        (_, Some(value)) => *value,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_its_bar_was_met() {
        let cases = [
            (
                Row::ratio("a", 30.0, 2.0, per_sec, Bar::AtLeast(15.0)),
                "| a | 30 items/s | 2 items/s | 15.00 | ≥ 15 | yes |",
            ),
            (
                Row::ratio("b", 29.0, 2.0, per_sec, Bar::AtLeast(15.0)),
                "| b | 29 items/s | 2 items/s | 14.50 | ≥ 15 | missed |",
            ),
            (
                Row::value("c", 15.0, seconds, Bar::Below { limit: 15.0, unit: "s" }),
                "| c | 15.0 s | – | – | < 15 s | missed |",
            ),
            (
                Row::speedup("e", 0.002, 0.02, Bar::AtLeast(5.0)),
                "| e | 2.0 ms | 20.0 ms | 10.00 | ≥ 5 | yes |",
            ),
            (Row::value("d", 1.0, gigabytes, Bar::None), "| d | 1.00 GB | – | – | – | – |"),
        ];
        for (row, expected) in cases {
            assert_eq!(row.to_string(), expected);
        }
    }

    #[test]
    fn the_median_ignores_one_bad_round() {
        assert_eq!(median(&[3.0, 100.0, 1.0]), 3.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 100.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
