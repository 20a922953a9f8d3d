//! Entries sorted by a whole number, so that those below a bound are found without looking at the others.
//!
//! Steps and milliseconds repeat, so entries with the same number form a list through their ids: eight bytes an
//! entry, and leaving costs nothing unless it was the last of its number.

use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    heads: BTreeMap<i64, u32>,
    /// By id.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

impl Buckets {
    pub(super) fn insert(&mut self, key: i64, id: u32) {
        let after = self.heads.insert(key, id).unwrap_or(NONE);
        if let Some(head) = self.links.get_mut(after as usize) {
            head.before = id;
        }
        let link = Link { before: NONE, after };
        if self.links.len() <= id as usize {
            self.links.resize(id as usize + 1, Link { before: NONE, after: NONE });
        }
        if let Some(slot) = self.links.get_mut(id as usize) {
            *slot = link;
        }
    }

    /// Takes out an entry that was put in with this key.
    pub(super) fn remove(&mut self, key: i64, id: u32) {
        let Some(&Link { before, after }) = self.links.get(id as usize) else { return };
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = before;
        }
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None if after == NONE => drop(self.heads.remove(&key)),
            None => drop(self.heads.insert(key, after)),
        }
    }

    pub(super) fn first_key(&self) -> Option<i64> {
        self.heads.first_key_value().map(|(key, _)| *key)
    }

    /// The entries with keys up to and including `key`, smaller keys first.
    pub(super) fn up_to(&self, key: i64) -> impl Iterator<Item = u32> + '_ {
        self.heads.range(..=key).flat_map(|(_, head)| {
            std::iter::successors(Some(*head), |id| {
                self.links.get(*id as usize).map(|link| link.after).filter(|after| *after != NONE)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn entries_below_a_bound_are_those_of_a_sorted_set(
            actions in proptest::collection::vec((0u32..40, 0i64..8, any::<bool>()), 0..300),
        ) {
            let mut buckets = Buckets::default();
            let mut model: BTreeSet<(i64, u32)> = BTreeSet::new();
            for (id, key, insert) in actions {
                let known = model.iter().find(|(_, known)| *known == id).copied();
                match (known, insert) {
                    (None, true) => {
                        buckets.insert(key, id);
                        model.insert((key, id));
                    }
                    (Some((key, id)), false) => {
                        buckets.remove(key, id);
                        model.remove(&(key, id));
                    }
                    _ => {}
                }
                for bound in -1..9 {
                    let found: BTreeSet<u32> = buckets.up_to(bound).collect();
                    let expected = model.iter().filter(|(key, _)| *key <= bound).map(|(_, id)| *id).collect();
                    prop_assert_eq!(found, expected);
                }
                prop_assert_eq!(buckets.first_key(), model.first().map(|(key, _)| *key));
            }
        }
    }
}
