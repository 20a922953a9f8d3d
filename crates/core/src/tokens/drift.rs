//! Whether the tokens a rollout carries are those its text would give.
//!
//! They often are not: a model may sample `"hel" + "lo"` where the tokenizer says `"hello"`, a tool call
//! comes back with its JSON written otherwise, reasoning is cut off. The sampled tokens stay what is trained
//! on; this only counts where the two part, so that somebody can see it.

use std::ops::Range;

/// Where two rows of tokens differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// The stretches that differ, in order.
    pub regions: Vec<Region>,
}

/// Tokens that stand on one side only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub sampled: Range<usize>,
    pub rendered: Range<usize>,
}

impl Drift {
    /// Compares the sampled tokens with those of the rendered text.
    pub fn between(sampled: &[u32], rendered: &[u32]) -> Self {
        let regions = similar::capture_diff_slices(similar::Algorithm::Myers, sampled, rendered)
            .into_iter()
            .filter(|op| op.tag() != similar::DiffTag::Equal)
            .map(|op| Region { sampled: op.old_range(), rendered: op.new_range() })
            .collect();
        Self { regions }
    }

    pub fn is_none(&self) -> bool {
        self.regions.is_empty()
    }

    /// Sampled tokens that the text would not give.
    pub fn sampled_tokens(&self) -> usize {
        self.regions.iter().map(|region| region.sampled.len()).sum()
    }

    /// Tokens of the text that were not sampled.
    pub fn rendered_tokens(&self) -> usize {
        self.regions.iter().map(|region| region.rendered.len()).sum()
    }

    /// The first sampled place where the two part.
    pub fn first(&self) -> Option<usize> {
        self.regions.first().map(|region| region.sampled.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tokens_do_not_drift() {
        assert!(Drift::between(&[1, 2, 3], &[1, 2, 3]).is_none());
    }

    #[test]
    fn a_word_sampled_in_two_pieces_is_one_region() {
        let drift = Drift::between(&[1, 20, 21, 3, 4], &[1, 2, 3, 4]);
        assert_eq!(drift.regions, [Region { sampled: 1..3, rendered: 1..2 }]);
        assert_eq!((drift.sampled_tokens(), drift.rendered_tokens(), drift.first()), (2, 1, Some(1)));
    }

    #[test]
    fn a_missing_tail_is_counted() {
        let drift = Drift::between(&[1, 2, 3, 4], &[1, 2]);
        assert_eq!((drift.sampled_tokens(), drift.rendered_tokens()), (2, 0));
    }
}
