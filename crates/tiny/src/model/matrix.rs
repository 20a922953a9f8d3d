//! Products of matrices that lie in slices, row by row.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

fn view(values: &[f32], columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((values.len() / columns, columns), values).expect("rows are whole")
}

fn view_mut(values: &mut [f32], columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((values.len() / columns, columns), values).expect("rows are whole")
}

/// `out = a · b`, where `a` has `inner` columns and `b` has `columns`.
pub(super) fn multiply(a: &[f32], inner: usize, b: &[f32], columns: usize, out: &mut [f32]) {
    general_mat_mul(1.0, &view(a, inner), &view(b, columns), 0.0, &mut view_mut(out, columns));
}

/// `out += a · b`.
pub(super) fn multiply_add(a: &[f32], inner: usize, b: &[f32], columns: usize, out: &mut [f32]) {
    general_mat_mul(1.0, &view(a, inner), &view(b, columns), 1.0, &mut view_mut(out, columns));
}

/// What goes back through `y = x · w`: `dx += dy · wᵀ`.
pub(super) fn back_to_input(dy: &[f32], columns: usize, w: &[f32], inner: usize, dx: &mut [f32]) {
    general_mat_mul(1.0, &view(dy, columns), &view(w, columns).t(), 1.0, &mut view_mut(dx, inner));
}

/// What goes back through `y = x · w`: `dw += xᵀ · dy`.
pub(super) fn back_to_weights(x: &[f32], inner: usize, dy: &[f32], columns: usize, dw: &mut [f32]) {
    general_mat_mul(1.0, &view(x, inner).t(), &view(dy, columns), 1.0, &mut view_mut(dw, columns));
}

/// Keeps a row of zeros from being divided by nothing.
const EPSILON: f32 = 1e-5;

/// `out = x / rms(x) · gain` for every row; gives `1 / rms(x)`.
pub(super) fn norm(x: &[f32], gain: &[f32], out: &mut [f32]) -> Vec<f32> {
    let width = gain.len();
    let rows = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
    rows.map(|(x, out)| {
        let inverse = 1.0 / (dot(x, x) / width as f32 + EPSILON).sqrt();
        for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
            *out = x * inverse * gain;
        }
        inverse
    })
    .collect()
}

/// What goes back through [`norm`]: adds to `dx` and `dgain`.
pub(super) fn back_through_norm(
    Normed { x, inverse, gain }: Normed<'_>,
    dy: &[f32],
    dx: &mut [f32],
    dgain: &mut [f32],
) {
    let width = gain.len();
    let rows = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(inverse);
    for (((x, dy), dx), inverse) in rows {
        let mut along = 0.0;
        for (((x, dy), gain), dgain) in x.iter().zip(dy).zip(gain).zip(dgain.iter_mut()) {
            let scaled = x * inverse;
            along += scaled * gain * dy;
            *dgain += scaled * dy;
        }
        along /= width as f32;
        for (((dx, x), dy), gain) in dx.iter_mut().zip(x).zip(dy).zip(gain) {
            *dx += inverse * (gain * dy - x * inverse * along);
        }
    }
}

pub(super) struct Normed<'a> {
    pub(super) x: &'a [f32],
    pub(super) inverse: &'a [f32],
    pub(super) gain: &'a [f32],
}

/// In eight sums, which a compiler may keep side by side.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// `out += factor · x`.
pub(crate) fn add_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += factor * x;
    }
}

/// Makes of scores their shares of one.
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}
