//! Places in a row, each taken or free, and the n-th taken one in a few nanoseconds.
//!
//! What is sampled is chosen by rank: "the 4,711th of those that are left". Rollouts leave from the middle all
//! the time (used up, too old), so ranks shift with every departure. A bit for each place says whether it is
//! taken; blocks of 512 bits are counted in a Fenwick tree, which finds the block of a rank in as many steps
//! as its number has bits, and the block itself is one cache line.

/// Words in a block.
const WORDS: usize = 8;
/// Places in a block.
const BLOCK: usize = WORDS * 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    words: Vec<u64>,
    /// A Fenwick tree over the taken places of each block, its first element standing for block 1.
    tree: Vec<u32>,
    places: usize,
    taken: usize,
}

impl Shelf {
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Adds a place at the end, free.
    pub(super) fn push(&mut self) -> usize {
        let place = self.places;
        self.places += 1;
        if place.is_multiple_of(BLOCK) {
            self.words.resize(self.words.len() + WORDS, 0);
            self.grow_tree();
        }
        place
    }

    pub(super) fn is_taken(&self, place: usize) -> bool {
        self.words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Takes or frees a place; nothing happens if it is so already.
    pub(super) fn set(&mut self, place: usize, taken: bool) {
        let Some(word) = self.words.get_mut(place / 64) else { return };
        let bit = 1_u64 << (place % 64);
        if (*word & bit != 0) == taken {
            return;
        }
        *word ^= bit;
        let mut node = place / BLOCK + 1;
        while let Some(count) = self.tree.get_mut(node - 1) {
            *count = if taken { *count + 1 } else { *count - 1 };
            node += node & node.wrapping_neg();
        }
        self.taken = if taken { self.taken + 1 } else { self.taken - 1 };
    }

    /// The place of the taken one that has `rank` taken ones before it.
    pub(super) fn select(&self, rank: usize) -> Option<usize> {
        if rank >= self.taken {
            return None;
        }
        let mut rest = rank;
        let mut block = 0;
        let mut stride = self.tree.len().next_power_of_two();
        while stride > 0 {
            if let Some(&count) = self.tree.get(block + stride - 1)
                && count as usize <= rest
            {
                rest -= count as usize;
                block += stride;
            }
            stride /= 2;
        }
        let words = self.words.get(block * WORDS..(block + 1) * WORDS)?;
        for (nth, word) in words.iter().enumerate() {
            let ones = word.count_ones() as usize;
            if rest < ones {
                return Some(block * BLOCK + nth * 64 + nth_one(*word, rest));
            }
            rest -= ones;
        }
        None
    }

    /// How many taken ones come before a place.
    pub(super) fn rank(&self, place: usize) -> usize {
        let (mut node, mut rank) = (place / BLOCK, 0);
        let first_word = node * WORDS;
        while node > 0 {
            rank += self.tree.get(node - 1).copied().unwrap_or_default() as usize;
            node -= node & node.wrapping_neg();
        }
        let words = self.words.get(first_word..place / 64).unwrap_or_default();
        rank += words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let below = (1_u64 << (place % 64)) - 1;
        rank + self.words.get(place / 64).map_or(0, |word| (word & below).count_ones() as usize)
    }

    /// A node for one more block, which is empty still.
    fn grow_tree(&mut self) {
        let node = self.tree.len() + 1;
        // The blocks it stands for beside its own are in the nodes just before it.
        let mut count = 0;
        let mut before = node - 1;
        let first = node - (node & node.wrapping_neg());
        while before > first {
            count += self.tree.get(before - 1).copied().unwrap_or_default();
            before -= before & before.wrapping_neg();
        }
        self.tree.push(count);
    }
}

/// The place of the one that has `rank` ones below it; the word has more than `rank`.
fn nth_one(word: u64, rank: usize) -> usize {
    let mut rest = rank as u32;
    let mut place = 0;
    let mut width = 32;
    while width > 0 {
        let low = (word >> place & ((1_u64 << width) - 1)).count_ones();
        if rest >= low {
            rest -= low;
            place += width;
        }
        width /= 2;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_nth_one_of_a_word_is_found() {
        for word in [1, 0b1011, u64::MAX, 1 << 63, 0x8000_0001_0000_0001, 0xdead_beef_cafe_f00d] {
            let ones: Vec<usize> = (0..64).filter(|bit| word >> bit & 1 == 1).collect();
            for (rank, place) in ones.into_iter().enumerate() {
                assert_eq!(nth_one(word, rank), place, "{rank} of {word:b}");
            }
        }
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_a_plain_list(
            pushes in 1usize..3000,
            flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<bool>()), 0..400),
        ) {
            let mut shelf = Shelf::default();
            let mut model = vec![false; pushes];
            for (nth, taken) in model.iter_mut().enumerate() {
                prop_assert_eq!(shelf.push(), nth);
                *taken = nth % 3 != 0;
                shelf.set(nth, *taken);
            }
            for (place, taken) in flips {
                let place = place.index(pushes);
                shelf.set(place, taken);
                model[place] = taken;
            }
            let taken: Vec<usize> = (0..pushes).filter(|place| model[*place]).collect();
            prop_assert_eq!(shelf.taken(), taken.len());
            for (rank, place) in taken.iter().enumerate() {
                prop_assert_eq!(shelf.select(rank), Some(*place));
                prop_assert!(shelf.is_taken(*place));
                prop_assert_eq!(shelf.rank(*place), rank);
            }
            prop_assert_eq!(shelf.select(taken.len()), None);
        }
    }
}
