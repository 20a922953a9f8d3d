//! What was measured, over all rounds.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};

/// How the cores are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    One,
    /// Candle shares every product out.
    Two,
    /// Candle goes through two halves of the batch side by side, as we do.
    TwoHalves,
}

impl Ways {
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::TwoHalves];

    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one thread",
            Self::Two => "two threads",
            Self::TwoHalves => "two threads, halves",
        }
    }

    pub fn threads(self) -> usize {
        if self == Self::One { 1 } else { 2 }
    }

    pub fn candle_threads(self) -> usize {
        if self == Self::Two { 2 } else { 1 }
    }

    pub fn candle_parts(self) -> usize {
        if self == Self::TwoHalves { 2 } else { 1 }
    }
}

impl FromStr for Ways {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|ways| ways.name() == name).ok_or_else(|| anyhow!("no such way: {name}"))
    }
}

#[derive(Default)]
pub struct Table {
    rows: Vec<(String, Vec<(f64, f64)>)>,
}

impl Table {
    /// What, and the tokens a second of both, as a round prints them.
    pub fn add(&mut self, line: &str) -> Result<()> {
        let mut fields = line.split('\t');
        let mut field = || fields.next().with_context(|| format!("too few fields: {line}"));
        let what = field()?;
        let rates = (field()?.parse()?, field()?.parse()?);
        match self.rows.iter_mut().find(|(name, _)| name == what) {
            Some((_, all)) => all.push(rates),
            None => self.rows.push((what.to_owned(), vec![rates])),
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | by hand, tokens/s | candle, tokens/s | by hand / candle | least | most |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|")?;
        for (what, rates) in &self.rows {
            let ours = sorted(rates.iter().map(|(ours, _)| *ours));
            let candle = sorted(rates.iter().map(|(_, candle)| *candle));
            let ratios = sorted(rates.iter().map(|(ours, candle)| ours / candle));
            writeln!(
                f,
                "| {what} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} |",
                middle(&ours),
                middle(&candle),
                middle(&ratios),
                ratios.first().unwrap_or(&f64::NAN),
                ratios.last().unwrap_or(&f64::NAN),
            )?;
        }
        Ok(())
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn middle(values: &[f64]) -> f64 {
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
