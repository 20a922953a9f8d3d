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

/// Comparing two rows in full takes up to this many steps; rows that differ more are one region. A file that
/// was sampled with another tokenizer has nothing in common, and looking for it would take minutes.
const STEPS_MAX: usize = 64_000_000;

impl Drift {
    /// Compares the sampled tokens with those of the rendered text.
    pub fn between(sampled: &[u32], rendered: &[u32]) -> Self {
        let pairs = || sampled.iter().zip(rendered);
        let head = pairs().take_while(|(a, b)| a == b).count();
        let rest = sampled.len().min(rendered.len()) - head;
        let ends = sampled.iter().rev().zip(rendered.iter().rev()).take(rest);
        let tail = ends.take_while(|(a, b)| a == b).count();
        let (sampled_end, rendered_end) = (sampled.len() - tail, rendered.len() - tail);
        let steps = (sampled_end - head).saturating_mul(rendered_end - head);
        if steps > STEPS_MAX {
            let whole = Region { sampled: head..sampled_end, rendered: head..rendered_end };
            return Self { regions: vec![whole] };
        }
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
        assert_eq!((drift.sampled_tokens(), drift.rendered_tokens()), (2, 1));
    }

    #[test]
    fn rows_with_nothing_in_common_are_one_region_at_once() {
        let sampled: Vec<u32> = [7, 8].into_iter().chain(1_000..200_000).chain([9]).collect();
        let rendered: Vec<u32> = [7, 8].into_iter().chain(500_000..700_000).chain([9]).collect();
        let drift = Drift::between(&sampled, &rendered);
        assert_eq!(drift.regions, [Region { sampled: 2..199_002, rendered: 2..200_002 }]);
    }

    #[test]
    fn a_missing_tail_is_counted() {
        let drift = Drift::between(&[1, 2, 3, 4], &[1, 2]);
        assert_eq!((drift.sampled_tokens(), drift.rendered_tokens()), (2, 0));
    }
}
