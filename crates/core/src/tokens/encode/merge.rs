//! Merges the bytes of one piece into tokens.
//!
//! The pair of lowest rank goes first, the leftmost among equals. A word is a dozen bytes, for which looking through
//! all pairs each time is quickest; a long piece keeps its pairs in a heap, so that a megabyte without a space takes
//! no more than its share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{Merge, MergeTable};

/// Above this many bytes the heap is quicker; found by measurement.
const LINEAR_MAX: usize = 96;
const NO_RANK: u32 = u32::MAX;

/// Room to merge in, kept from piece to piece.
#[derive(Debug, Default)]
pub(super) struct Merger {
    parts: Vec<Part>,
    links: Vec<Link>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

/// A token, and the merge with its right neighbour.
#[derive(Debug, Clone, Copy)]
struct Part {
    id: u32,
    merge: Merge,
}

/// A token of a long piece; dead once its left neighbour took it in.
#[derive(Debug, Clone, Copy)]
struct Link {
    id: u32,
    previous: u32,
    next: u32,
    alive: bool,
}

const NONE: Merge = Merge { rank: NO_RANK, id: 0 };
const NOWHERE: u32 = u32::MAX;

impl Merger {
    /// Appends the tokens of a piece, given as the tokens of its bytes.
    #[inline]
    pub(super) fn merge(
        &mut self,
        merges: &MergeTable,
        bytes: impl ExactSizeIterator<Item = u32>,
        ids: &mut Vec<u32>,
    ) {
        if bytes.len() > LINEAR_MAX {
            self.merge_long(merges, bytes, ids)
        } else {
            self.merge_short(merges, bytes, ids)
        }
    }

    fn merge_short(&mut self, merges: &MergeTable, bytes: impl Iterator<Item = u32>, ids: &mut Vec<u32>) {
        let pair = |left: u32, right: u32| merges.get(left, right).unwrap_or(NONE);
        let parts = &mut self.parts;
        parts.clear();
        for id in bytes {
            if let Some(last) = parts.last_mut() {
                last.merge = pair(last.id, id);
            }
            parts.push(Part { id, merge: NONE });
        }
        loop {
            let mut best = NO_RANK;
            let mut at = 0;
            for (index, part) in parts.iter().enumerate() {
                if part.merge.rank < best {
                    (best, at) = (part.merge.rank, index);
                }
            }
            if best == NO_RANK {
                break;
            }
            parts.remove(at + 1);
            let right = parts.get(at + 1).map(|part| part.id);
            let Some(part) = parts.get_mut(at) else { break };
            let id = part.merge.id;
            *part = Part { id, merge: right.map_or(NONE, |right| pair(id, right)) };
            if let Some(left) = at.checked_sub(1).and_then(|left| parts.get_mut(left)) {
                left.merge = pair(left.id, id);
            }
        }
        ids.extend(parts.iter().map(|part| part.id));
    }

    fn merge_long(&mut self, merges: &MergeTable, bytes: impl Iterator<Item = u32>, ids: &mut Vec<u32>) {
        let Merger { links, heap, .. } = self;
        links.clear();
        heap.clear();
        for (index, id) in (0u32..).zip(bytes) {
            if let Some(last) = links.last_mut() {
                last.next = index;
                if let Some(merge) = merges.get(last.id, id) {
                    heap.push(Reverse((merge.rank, index - 1)));
                }
            }
            links.push(Link { id, previous: index.wrapping_sub(1), next: NOWHERE, alive: true });
        }
        let link = |links: &[Link], at: u32| links.get(at as usize).copied();
        while let Some(Reverse((rank, at))) = heap.pop() {
            // An entry is stale once either of its two tokens has changed.
            let Some(left) = link(links, at).filter(|link| link.alive) else { continue };
            let Some(right) = link(links, left.next) else { continue };
            let Some(merge) = merges.get(left.id, right.id).filter(|merge| merge.rank == rank) else {
                continue;
            };
            if let Some(right) = links.get_mut(left.next as usize) {
                right.alive = false;
            }
            if let Some(left) = links.get_mut(at as usize) {
                (left.id, left.next) = (merge.id, right.next);
            }
            if let Some(after) = links.get_mut(right.next as usize) {
                after.previous = at;
                if let Some(next) = merges.get(merge.id, after.id) {
                    heap.push(Reverse((next.rank, at)));
                }
            }
            if let Some(before) = link(links, left.previous)
                && let Some(next) = merges.get(before.id, merge.id)
            {
                heap.push(Reverse((next.rank, left.previous)));
            }
        }
        ids.extend(links.iter().filter(|link| link.alive).map(|link| link.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long and short pieces must come out alike: `merge` chooses by length alone.
    #[test]
    fn heap_and_linear_scan_agree() {
        let mut merges = MergeTable::new(64);
        for (rank, (left, right, id)) in
            [(1, 2, 4), (4, 3, 5), (2, 3, 6), (1, 1, 7), (7, 7, 8), (5, 6, 9), (3, 1, 10)]
                .into_iter()
                .enumerate()
        {
            merges.insert(left, right, Merge { rank: rank as u32, id });
        }
        let mut seed = 1u32;
        for len in 0..200 {
            let bytes: Vec<u32> = (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    1 + (seed >> 16) % 3
                })
                .collect();
            let (mut short, mut long) = (Vec::new(), Vec::new());
            Merger::default().merge_short(&merges, bytes.iter().copied(), &mut short);
            Merger::default().merge_long(&merges, bytes.iter().copied(), &mut long);
            assert_eq!(short, long, "for {bytes:?}");
        }
    }
}
