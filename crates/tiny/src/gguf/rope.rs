//! Positions: pairs of numbers of a query or key turn by an angle that grows with their place in the text.

use std::io::{Read, Seek};

use super::dims::Dims;
use super::error::Fault;
use super::file::Contents;
use super::matrix::vector;

/// Slows the turning of some pairs in models that were trained on longer texts later.
const FACTORS: &str = "rope_freqs.weight";

#[derive(Debug)]
pub(super) struct Rope {
    head_width: usize,
    /// Pairs of a head that turn.
    pairs: usize,
    /// Cosine and sine for every pair, place after place.
    turns: Vec<[f32; 2]>,
}

impl Rope {
    pub(super) fn load<R: Read + Seek>(dims: &Dims, contents: &mut Contents<R>) -> Result<Self, Fault> {
        let pairs = dims.turning / 2;
        let factors = match contents.has(FACTORS) {
            true => vector(contents, FACTORS, pairs)?,
            false => vec![1.0; pairs],
        };
        let step = |(pair, factor): (usize, f32)| {
            dims.turn_base.powf(-2.0 * pair as f64 / dims.turning as f64) / f64::from(factor)
        };
        let steps: Vec<f64> = factors.into_iter().enumerate().map(step).collect();
        let places = 0..dims.context;
        let turns = places
            .flat_map(|place| steps.iter().map(move |step| (place as f64 * step).sin_cos()))
            .map(|(sine, cosine)| [cosine as f32, sine as f32])
            .collect();
        Ok(Self { head_width: dims.head_width, pairs, turns })
    }

    /// Turns all heads of a row that stands at this place. In a Llama's file neighbours are a pair.
    pub(super) fn turn(&self, row: &mut [f32], place: usize) {
        let at = place * self.pairs;
        let turns = self.turns.get(at..at + self.pairs).unwrap_or_default();
        for head in row.chunks_exact_mut(self.head_width) {
            for (pair, [cosine, sine]) in head.chunks_exact_mut(2).zip(turns) {
                if let [first, second] = pair {
                    (*first, *second) = (*first * cosine - *second * sine, *first * sine + *second * cosine);
                }
            }
        }
    }
}
