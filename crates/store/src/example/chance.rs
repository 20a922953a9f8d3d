//! Numbers that look thrown and are the same on every machine.

/// SplitMix64: small, and good enough for prose.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// The same parts always give the same numbers, whatever was drawn elsewhere.
    pub(super) fn of(parts: [u64; 4]) -> Self {
        let mut chance = Self(0x5eed);
        for part in parts {
            chance.0 ^= part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chance.next();
        }
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.share() * end as f64) as usize
    }

    /// Both ends included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.share() * (high - low + 1) as f64) as i64
    }

    pub(super) fn happens(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// Roughly normal, around 0 with a deviation of 1.
    pub(super) fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    pub(super) fn pick<T: Copy + Default>(&mut self, list: &[T]) -> T {
        list.get(self.below(list.len())).copied().unwrap_or_default()
    }

    /// Some of a list, in its order and none twice.
    pub(super) fn some<T: Copy>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut left = count.min(list.len());
        let mut chosen = Vec::with_capacity(left);
        for (nth, item) in list.iter().enumerate() {
            if left > 0 && self.happens(left as f64 / (list.len() - nth) as f64) {
                chosen.push(*item);
                left -= 1;
            }
        }
        chosen
    }
}
