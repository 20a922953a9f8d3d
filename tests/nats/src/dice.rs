//! Chance that can be had again.

/// Splitmix.
#[derive(Clone, Debug, Default)]
pub struct Dice(pub u64);

impl Dice {
    /// From 0, and below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Of these, one.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let no = self.roll(from.len() as u64) as usize;
        from.get(no).expect("the roll is below their number")
    }
}
