//! Seeds as engines take them.

/// Engines keep a seed in 64 bits with a sign and refuse what is larger.
pub(super) fn signed(seed: u64) -> u64 {
    seed & (i64::MAX as u64)
}

/// For an engine whose noise begins anew with each request: a continued answer would see the noise of its
/// beginning a second time, so each continuation has a seed of its own, and always the same one.
pub(super) fn continued(seed: u64, tokens_so_far: usize) -> u64 {
    if tokens_so_far == 0 {
        return signed(seed);
    }
    let mut mixed = seed ^ (tokens_so_far as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    signed(mixed ^ (mixed >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_continuation_has_a_seed_of_its_own() {
        let seeds: std::collections::HashSet<u64> = (0..1000).map(|sampled| continued(7, sampled)).collect();
        assert_eq!(seeds.len(), 1000);
        assert_eq!(continued(7, 0), 7);
        assert!(seeds.iter().all(|seed| i64::try_from(*seed).is_ok()));
        assert!(i64::try_from(continued(u64::MAX, 0)).is_ok());
    }
}
