//! What stands in for a model.
//!
//! The next token is a hash of all tokens before it and the seed. So a generation that is interrupted and
//! sent back as a longer prompt goes on exactly as if nothing had happened. The log-prob of a token is a
//! function of the token and the weights' version, so a test sees whether the two were kept together.

/// Ends a generation.
pub const STOP_TOKEN: i32 = 0;

/// All tokens so far, in 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Sequence(u64);

impl Sequence {
    pub fn new(prompt: &[i32], seed: u64) -> Self {
        let mut sequence = Self(mix(seed));
        for token in prompt {
            sequence.push(*token);
        }
        sequence
    }

    pub fn push(&mut self, token: i32) {
        self.0 = mix(self.0 ^ u64::from(token.cast_unsigned()));
    }

    /// Never the stop token.
    pub fn next(self, vocabulary: i32) -> i32 {
        let among = u64::from(vocabulary.max(2).cast_unsigned()) - 1;
        i32::try_from(1 + self.0 % among).unwrap_or(1)
    }

    /// Whether it ends here, which one in so many does; 0 is never.
    pub fn stops(self, one_in: u64) -> bool {
        one_in > 0 && mix(self.0 ^ 0x5709).is_multiple_of(one_in)
    }
}

/// What comes after a prompt, uninterrupted; the stop token included.
pub fn continuation(prompt: &[i32], seed: u64, vocabulary: i32, stop_one_in: u64, count: usize) -> Vec<i32> {
    let mut sequence = Sequence::new(prompt, seed);
    let mut tokens = Vec::with_capacity(count);
    while tokens.len() < count {
        let token = if sequence.stops(stop_one_in) { STOP_TOKEN } else { sequence.next(vocabulary) };
        tokens.push(token);
        if token == STOP_TOKEN {
            break;
        }
        sequence.push(token);
    }
    tokens
}

/// With three digits behind the point, so that it survives JSON.
pub fn logprob(token: i32, version: i32) -> f32 {
    let both = u64::from(token.cast_unsigned()) << 32 | u64::from(version.cast_unsigned());
    -((mix(both) % 20_000) as f32) / 1000.0
}

/// Spreads any change of the input over all bits (the finaliser of splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continued_sequence_is_the_uninterrupted_one() {
        let whole = continuation(&[5, 6, 7], 3, 1000, 0, 40);
        for cut in 0..40 {
            let prompt = [&[5, 6, 7][..], &whole[..cut]].concat();
            assert_eq!(continuation(&prompt, 3, 1000, 0, 40 - cut), whole[cut..], "cut at {cut}");
        }
    }

    #[test]
    fn one_in_so_many_tokens_is_the_last() {
        let lengths = (0..2000).map(|prompt| continuation(&[prompt], 0, 1000, 50, 100_000).len());
        let mean = lengths.sum::<usize>() / 2000;
        assert!((40..60).contains(&mean), "{mean}");
    }
}
