//! Equal neighbours, counted instead of repeated.
//!
//! The weight version, the mask and the rewards of a sequence change a few times in thousands of tokens.
//! A run is a value and the place where it ends, so a lookup is a binary search and a token costs nothing.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs<T> {
    /// No two neighbours are equal; ends grow.
    runs: Vec<Run<T>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run<T> {
    value: T,
    end: u32,
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self { runs: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Runs<T> {
    pub fn repeat(value: T, count: usize) -> Self {
        let mut runs = Self::default();
        runs.push(value, count);
        runs
    }

    /// Adds `count` times the value. Sequences are bounded far below 2^32 by whoever makes them.
    pub fn push(&mut self, value: T, count: usize) {
        if count == 0 {
            return;
        }
        let end = u32::try_from(self.len() + count).expect("a sequence has fewer than 2^32 tokens");
        match self.runs.last_mut() {
            Some(last) if last.value == value => last.end = end,
            _ => self.runs.push(Run { value, end }),
        }
    }

    pub fn len(&self) -> usize {
        self.runs.last().map_or(0, |run| run.end as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<T> {
        let at = self.runs.partition_point(|run| run.end as usize <= index);
        self.runs.get(at).map(|run| run.value)
    }

    /// Each run as the places it covers and its value.
    pub fn spans(&self) -> impl Iterator<Item = (Range<usize>, T)> + '_ {
        self.runs.iter().scan(0, |start, run| {
            let span = *start..run.end as usize;
            *start = span.end;
            Some((span, run.value))
        })
    }

    /// Every value, one by one.
    pub fn values(&self) -> impl Iterator<Item = T> + '_ {
        self.spans().flat_map(|(span, value)| span.map(move |_| value))
    }

    /// The spans of the first `len` places.
    pub fn spans_within(&self, len: usize) -> impl Iterator<Item = (Range<usize>, T)> + '_ {
        self.spans()
            .take_while(move |(span, _)| span.start < len)
            .map(move |(span, value)| (span.start..span.end.min(len), value))
    }

    /// Gives back memory that growing took.
    pub fn shrink(&mut self) {
        self.runs.shrink_to_fit();
    }

    /// How many runs there are.
    pub fn count(&self) -> usize {
        self.runs.len()
    }
}

impl<T: Copy + PartialEq> FromIterator<T> for Runs<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut runs = Self::default();
        let mut values = values.into_iter();
        let Some(mut current) = values.next() else { return runs };
        let mut count = 1;
        for value in values {
            if value == current {
                count += 1;
                continue;
            }
            runs.push(current, count);
            (current, count) = (value, 1);
        }
        runs.push(current, count);
        runs.shrink();
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_hold_what_was_put_in(values in prop::collection::vec(0u8..3, 0..50), within in 0usize..60) {
            let runs: Runs<u8> = values.iter().copied().collect();
            prop_assert_eq!(runs.len(), values.len());
            prop_assert_eq!(runs.values().collect::<Vec<_>>(), values.clone());
            for index in 0..values.len() + 1 {
                prop_assert_eq!(runs.get(index), values.get(index).copied());
            }
            let cut: Vec<u8> =
                runs.spans_within(within).flat_map(|(span, value)| span.map(move |_| value)).collect();
            prop_assert_eq!(&cut, &values[..within.min(values.len())]);
            prop_assert!(runs.spans().all(|(span, _)| !span.is_empty()));
            prop_assert!(runs.runs.windows(2).all(|pair| pair[0].value != pair[1].value));
        }
    }
}
