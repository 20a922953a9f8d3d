//! Remembers what pieces were merged into.
//!
//! Words that are one token need no memory; this is for those that are two or more. A piece has one place, and
//! a newcomer takes it over, so the cache never grows and never needs cleaning.

use xxhash_rust::xxh3::xxh3_64;

use super::table::Key;

/// Places for short pieces, 48 bytes each.
const SLOTS: usize = 1 << 15;
/// Short pieces of more tokens are not kept.
const IDS_MAX: usize = 7;
/// Places for pieces without a key.
const LONG_SLOTS: usize = 1 << 12;
/// Longer pieces hardly come again.
const LONG_LEN_MAX: usize = 96;

/// One thread's memory of pieces.
pub(super) struct PieceCache {
    slots: Vec<Slot>,
    long: Vec<LongSlot>,
}

#[derive(Clone, Default)]
struct LongSlot {
    piece: Vec<u8>,
    ids: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: Key,
    len: u8,
    ids: [u32; IDS_MAX],
}

impl Default for PieceCache {
    fn default() -> PieceCache {
        PieceCache { slots: vec![Slot::default(); SLOTS], long: vec![LongSlot::default(); LONG_SLOTS] }
    }
}

impl std::fmt::Debug for PieceCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceCache").field("slots", &SLOTS).field("long", &LONG_SLOTS).finish()
    }
}

impl PieceCache {
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&[u32]> {
        let slot = self.slots.get(place(key)).filter(|slot| slot.key == key)?;
        slot.ids.get(..usize::from(slot.len))
    }

    #[inline]
    pub(super) fn put(&mut self, key: Key, ids: &[u32]) {
        if let Some(slot) = self.slots.get_mut(place(key))
            && let Some(room) = slot.ids.get_mut(..ids.len())
        {
            room.copy_from_slice(ids);
            (slot.key, slot.len) = (key, ids.len() as u8);
        }
    }

    #[inline]
    pub(super) fn get_long(&self, piece: &[u8]) -> Option<&[u32]> {
        let slot = self.long.get(long_place(piece))?;
        (slot.piece == piece).then_some(slot.ids.as_slice())
    }

    #[inline]
    pub(super) fn put_long(&mut self, piece: &[u8], ids: &[u32]) {
        if piece.len() > LONG_LEN_MAX {
            return;
        }
        if let Some(slot) = self.long.get_mut(long_place(piece)) {
            slot.piece.clear();
            slot.piece.extend_from_slice(piece);
            slot.ids.clear();
            slot.ids.extend_from_slice(ids);
        }
    }
}

#[inline]
fn place(key: Key) -> usize {
    // The table of whole pieces uses the low bits of the same hash; these are still fresh.
    (key.hash() >> 40) as usize % SLOTS
}

#[inline]
fn long_place(piece: &[u8]) -> usize {
    xxh3_64(piece) as usize % LONG_SLOTS
}
