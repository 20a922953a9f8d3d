//! How the numbers of a field are spread under a filter.

use super::choice::field;
use super::columns::Column;
use super::filter::tree::{Source, Type};
use super::steps::column;
use super::sum::Sum;
use super::{Choice, Mistake, Query, QueryError};

/// Numbers `from <= x < to`; of the last bin, `to` itself too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    pub from: f64,
    pub to: f64,
    pub count: u64,
}

/// `n`, `nulls` and `not_numbers` together are all rows that the filter lets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub field: String,
    /// Numbers, which are in the bins.
    pub n: u64,
    /// Rows that do not have the field.
    pub nulls: u64,
    /// Values that are text or infinite, which an extra may be.
    pub not_numbers: u64,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// From the lowest number to the highest, of the same width each.
    pub bins: Vec<Bin>,
}

impl Query {
    /// Of a column of numbers or an extra. Whole numbers that span fewer than `bins` have a bin each.
    pub fn histogram(&self, filter: &str, name: &str, bins: usize) -> Result<Histogram, QueryError> {
        let names = self.fields()?;
        let found = match field(&names, name) {
            Err(_) if self.learn(name)? => field(&*self.fields()?, name)?,
            found => found?,
        };
        if !found.kind.is_number() && !matches!(found.source, Source::Extra(_)) {
            let message =
                format!("{name} is text, and a histogram is of numbers; its facets count its values");
            return Err(Mistake { message, at: 0..name.len(), expected: Vec::new() }.into());
        }
        let choice = Choice { filter: filter.to_owned(), sort: Vec::new() };
        let chosen = self.choose(&choice, std::slice::from_ref(&found.source))?;
        let column = column(&chosen, &found.source)?;
        let mut sum = Sum::default();
        let mut nulls = 0;
        for at in chosen.positions.iter() {
            let at = *at as usize;
            let number = column.number(at);
            sum.add(number.filter(|number| number.is_finite()));
            nulls += u64::from(number.is_none() && column.value(at).is_null());
        }
        let is_whole = matches!(column, Column::Tiny(_) | Column::Int(_) | Column::Long(_));
        let mut scale = Scale::new(&sum, bins, is_whole && found.kind != Type::Time);
        for at in chosen.positions.iter() {
            if let Some(number) = column.number(*at as usize).filter(|number| number.is_finite()) {
                scale.count(number);
            }
        }
        Ok(Histogram {
            field: name.to_owned(),
            n: sum.n,
            nulls,
            not_numbers: chosen.positions.len() as u64 - sum.n - nulls,
            min: sum.least,
            max: sum.most,
            mean: sum.mean(),
            bins: scale.bins,
        })
    }
}

struct Scale {
    low: f64,
    high: f64,
    bins: Vec<Bin>,
}

impl Scale {
    fn new(sum: &Sum, bins: usize, is_whole: bool) -> Self {
        let (Some(low), Some(high)) = (sum.least, sum.most) else {
            return Self { low: 0.0, high: 0.0, bins: Vec::new() };
        };
        let whole = is_whole && low < high;
        // As many whole numbers in every bin, or the bins would wave where the data does not.
        let width = ((high - low + 1.0) / bins as f64).ceil();
        let (count, end) = if whole {
            let count = ((high - low + 1.0) / width).ceil();
            (count as usize, low + width * count)
        } else {
            (if low == high { 1 } else { bins }, high)
        };
        let edge = |nth: usize| {
            let share = nth as f64 / count as f64;
            match nth {
                _ if whole => low + width * nth as f64,
                _ if nth == count => end,
                // Parts of both, because the distance of two large numbers may be infinite.
                _ => low * (1.0 - share) + end * share,
            }
        };
        let bins = (0..count).map(|nth| Bin { from: edge(nth), to: edge(nth + 1), count: 0 }).collect();
        Self { low, high: end, bins }
    }

    fn count(&mut self, number: f64) {
        let last = self.bins.len().saturating_sub(1);
        let share = (number / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        let mut nth = ((share * self.bins.len() as f64) as usize).min(last);
        // Rounding may be off by one, and who asks for the rows of a bin compares with its edges.
        let edge = |nth: usize| self.bins.get(nth).map_or(f64::INFINITY, |bin| bin.from);
        while nth > 0 && number < edge(nth) {
            nth -= 1;
        }
        while nth < last && number >= edge(nth + 1) {
            nth += 1;
        }
        if let Some(bin) = self.bins.get_mut(nth) {
            bin.count += 1;
        }
    }
}
