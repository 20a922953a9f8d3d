//! Two hash tables that are filled once and then only read: pieces to tokens, and pairs to merges.
//!
//! A piece of up to 15 bytes is its own key, so that a lookup compares two words and follows no pointer. Probing is
//! linear in a table at most two thirds full.

/// A short piece as a key: its bytes, and its length in the topmost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Key {
    low: u64,
    high: u64,
}

pub(super) const KEY_LEN_MAX: usize = 15;

impl Key {
    /// The key of `text[start..end]`, if it is short enough for one.
    #[inline(always)]
    pub(super) fn of(text: &[u8], start: usize, end: usize) -> Option<Key> {
        let len = end - start;
        if len > KEY_LEN_MAX {
            return None;
        }
        let raw = match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => {
                let mut chunk = [0; 16];
                chunk.iter_mut().zip(text.get(start..end)?).for_each(|(to, from)| *to = *from);
                u128::from_le_bytes(chunk)
            }
        };
        let bytes = raw & ((1 << (8 * len)) - 1);
        Some(Key { low: bytes as u64, high: (bytes >> 64) as u64 | (len as u64) << 56 })
    }

    #[inline(always)]
    pub(super) fn hash(self) -> u64 {
        mix(self.low ^ 0x9e37_79b9_7f4a_7c15, self.high ^ 0xd1b5_4a32_d192_ed03)
    }
}

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// What a pair of tokens becomes, and how early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Merge {
    pub(super) rank: u32,
    pub(super) id: u32,
}

/// Pieces to token ids.
#[derive(Debug)]
pub(super) struct PieceTable(Table<Key, u32>);

impl PieceTable {
    pub(super) fn new(capacity: usize) -> PieceTable {
        PieceTable(Table::new(capacity))
    }

    #[inline(always)]
    pub(super) fn get(&self, key: Key) -> Option<u32> {
        self.0.get(key.hash(), key)
    }

    pub(super) fn insert(&mut self, key: Key, id: u32) {
        self.0.insert(key.hash(), key, id);
    }
}

/// Pairs of tokens to their merge.
#[derive(Debug)]
pub(super) struct MergeTable(Table<u64, Merge>);

impl MergeTable {
    pub(super) fn new(capacity: usize) -> MergeTable {
        MergeTable(Table::new(capacity))
    }

    #[inline(always)]
    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merge> {
        let pair = pair(left, right);
        self.0.get(pair_hash(pair), pair)
    }

    /// A later merge of the same pair takes the place of an earlier one.
    pub(super) fn insert(&mut self, left: u32, right: u32, merge: Merge) {
        let pair = pair(left, right);
        self.0.insert(pair_hash(pair), pair, merge);
    }
}

#[inline(always)]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[inline(always)]
fn pair_hash(pair: u64) -> u64 {
    mix(pair ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03)
}

/// A key with one value that no entry has, which marks a free slot.
trait Slotted: Copy + PartialEq {
    const FREE: Self;
}

impl Slotted for Key {
    // No piece is empty.
    const FREE: Key = Key { low: 0, high: 0 };
}

impl Slotted for u64 {
    // No token has the id `u32::MAX`: a vocabulary with such ids is refused.
    const FREE: u64 = u64::MAX;
}

/// Open addressing; `slots` is a power of two long and never full.
#[derive(Debug)]
struct Table<K, V> {
    slots: Vec<(K, V)>,
    mask: usize,
}

impl<K: Slotted, V: Copy + Default> Table<K, V> {
    fn new(capacity: usize) -> Table<K, V> {
        let len = (capacity + capacity / 2 + 2).next_power_of_two();
        Table { slots: vec![(K::FREE, V::default()); len], mask: len - 1 }
    }

    #[inline(always)]
    fn get(&self, hash: u64, key: K) -> Option<V> {
        let mut at = hash as usize & self.mask;
        loop {
            let (found, value) = self.slots.get(at)?;
            if *found == key {
                return Some(*value);
            }
            if *found == K::FREE {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }

    fn insert(&mut self, hash: u64, key: K, value: V) {
        let mut at = hash as usize & self.mask;
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.0 == key || slot.0 == K::FREE {
                *slot = (key, value);
                return;
            }
            at = (at + 1) & self.mask;
        }
    }
}
