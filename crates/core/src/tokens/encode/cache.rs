//! Remembers what short pieces were merged into.
//!
//! Words that are one token need no memory; this is for those that are two or more. A piece has one place, and
//! a newcomer takes it over, so the cache never grows and never needs cleaning.

use super::table::Key;

const SLOTS: usize = 1 << 13;
/// Pieces of more tokens are not kept.
const IDS_MAX: usize = 7;

/// One thread's memory of pieces.
pub(super) struct PieceCache {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: Key,
    len: u8,
    ids: [u32; IDS_MAX],
}

impl Default for PieceCache {
    fn default() -> PieceCache {
        PieceCache { slots: vec![Slot::default(); SLOTS] }
    }
}

impl std::fmt::Debug for PieceCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceCache").field("slots", &SLOTS).finish()
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
}

#[inline]
fn place(key: Key) -> usize {
    // The table of whole pieces uses the low bits of the same hash; these are still fresh.
    (key.hash() >> 40) as usize % SLOTS
}
