//! One block of the network, forward and back.

use super::matrix::{
    Normed, back_through_norm, back_to_input, back_to_weights, multiply, multiply_add, norm,
};
use super::shape::Shape;
use super::weights::Block;

/// What a block made of its rows on the way, as the way back needs it.
#[derive(Debug)]
pub(super) struct Passed {
    input: Vec<f32>,
    attention_inverse: Vec<f32>,
    attention_input: Vec<f32>,
    pub(super) qkv: Vec<f32>,
    seen: Vec<f32>,
    middle: Vec<f32>,
    mlp_inverse: Vec<f32>,
    mlp_input: Vec<f32>,
    /// Before the squared ReLU.
    raised: Vec<f32>,
    bent: Vec<f32>,
}

/// Sends rows through; `x` becomes what comes out. `attend` makes of all rows' queries, keys and values what they see.
pub(super) fn forward(
    shape: &Shape,
    weights: &Block<&[f32]>,
    x: &mut [f32],
    attend: impl FnOnce(&[f32], &mut [f32]),
) -> Passed {
    let width = shape.width;
    let hidden = shape.hidden();
    let rows = x.len() / width;
    let input = x.to_vec();
    let mut attention_input = vec![0.0; rows * width];
    let attention_inverse = norm(x, weights.attention_norm, &mut attention_input);
    let mut qkv = vec![0.0; rows * 3 * width];
    multiply(&attention_input, width, weights.qkv, 3 * width, &mut qkv);
    let mut seen = vec![0.0; rows * width];
    attend(&qkv, &mut seen);
    multiply_add(&seen, width, weights.out, width, x);

    let middle = x.to_vec();
    let mut mlp_input = vec![0.0; rows * width];
    let mlp_inverse = norm(x, weights.mlp_norm, &mut mlp_input);
    let mut raised = vec![0.0; rows * hidden];
    multiply(&mlp_input, width, weights.up, hidden, &mut raised);
    let bent: Vec<f32> = raised.iter().map(|value| value.max(0.0) * value.max(0.0)).collect();
    multiply_add(&bent, hidden, weights.down, width, x);
    Passed {
        input,
        attention_inverse,
        attention_input,
        qkv,
        seen,
        middle,
        mlp_inverse,
        mlp_input,
        raised,
        bent,
    }
}

/// Goes back: `dx` comes in as what the output is blamed for, and goes out as what the input is. `back_through_seen` makes
/// of the blame of what rows saw that of their queries, keys and values.
pub(super) fn backward(
    shape: &Shape,
    weights: &Block<&[f32]>,
    passed: &Passed,
    dx: &mut [f32],
    gradients: &mut Block<&mut [f32]>,
    back_through_seen: impl FnOnce(&[f32], &mut [f32]),
) {
    let width = shape.width;
    let hidden = shape.hidden();
    let rows = dx.len() / width;

    back_to_weights(&passed.bent, hidden, dx, width, gradients.down);
    let mut draised = vec![0.0; rows * hidden];
    back_to_input(dx, width, weights.down, hidden, &mut draised);
    for (d, value) in draised.iter_mut().zip(&passed.raised) {
        *d *= 2.0 * value.max(0.0);
    }
    back_to_weights(&passed.mlp_input, width, &draised, hidden, gradients.up);
    let mut dnormed = vec![0.0; rows * width];
    back_to_input(&draised, hidden, weights.up, width, &mut dnormed);
    let normed = Normed { x: &passed.middle, inverse: &passed.mlp_inverse, gain: weights.mlp_norm };
    back_through_norm(normed, &dnormed, dx, gradients.mlp_norm);

    back_to_weights(&passed.seen, width, dx, width, gradients.out);
    let mut dseen = vec![0.0; rows * width];
    back_to_input(dx, width, weights.out, width, &mut dseen);
    let mut dqkv = vec![0.0; rows * 3 * width];
    back_through_seen(&dseen, &mut dqkv);
    back_to_weights(&passed.attention_input, width, &dqkv, 3 * width, gradients.qkv);
    dnormed.fill(0.0);
    back_to_input(&dqkv, 3 * width, weights.qkv, width, &mut dnormed);
    let normed =
        Normed { x: &passed.input, inverse: &passed.attention_inverse, gain: weights.attention_norm };
    back_through_norm(normed, &dnormed, dx, gradients.attention_norm);
}
