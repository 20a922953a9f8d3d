//! Causal attention of one text over itself.

use super::matrix::{add_scaled, dot, softmax};
use super::shape::Shape;

/// Keys and values of the tokens read so far, `2 · width` numbers each: the keys of all heads, then their values.
pub(super) type Past = [f32];

/// The newest `queries` of a text look at everything up to themselves. `qkv` has their rows; `past` has the whole
/// text, theirs included. Writes what each saw to `out`, and, where they are kept, its shares to `shares`.
pub(super) fn attend(
    shape: &Shape,
    qkv: &[f32],
    past: &Past,
    out: &mut [f32],
    mut shares: Option<&mut Vec<f32>>,
) {
    let width = shape.width;
    let head_width = shape.head_width();
    let scale = 1.0 / (head_width as f32).sqrt();
    let queries = qkv.len() / (3 * width);
    let before = past.len() / (2 * width) - queries;
    let mut scores = Vec::new();
    out.fill(0.0);
    for (nth, (qkv, out)) in qkv.chunks_exact(3 * width).zip(out.chunks_exact_mut(width)).enumerate() {
        let seen = past.chunks_exact(2 * width).take(before + nth + 1);
        let heads = qkv.chunks_exact(head_width).zip(out.chunks_exact_mut(head_width)).take(shape.heads);
        for (head, (query, out)) in heads.enumerate() {
            let (key_at, value_at) = (head * head_width, width + head * head_width);
            scores.clear();
            scores.extend(seen.clone().map(|past| scale * dot(query, part(past, key_at, head_width))));
            softmax(&mut scores);
            for (share, past) in scores.iter().zip(seen.clone()) {
                add_scaled(out, *share, part(past, value_at, head_width));
            }
            if let Some(kept) = shares.as_deref_mut() {
                kept.extend_from_slice(&scores);
            }
        }
    }
}

/// What goes back through [`attend`] for a whole text: `shares` as it was kept, `dout` what comes back. Adds to `dqkv`.
pub(super) fn back_through_attention(
    shape: &Shape,
    qkv: &[f32],
    shares: &mut std::slice::Iter<'_, f32>,
    dout: &[f32],
    dqkv: &mut [f32],
) {
    let width = shape.width;
    let head_width = shape.head_width();
    let scale = 1.0 / (head_width as f32).sqrt();
    let mut dshares: Vec<f32> = Vec::new();
    for (nth, dout) in dout.chunks_exact(width).enumerate() {
        for (head, dout) in dout.chunks_exact(head_width).enumerate() {
            let (key_at, value_at) = (width + head * head_width, 2 * width + head * head_width);
            let shares_here = shares.as_slice().get(..=nth).unwrap_or_default();
            shares.nth(nth);
            let seen = qkv.chunks_exact(3 * width).take(nth + 1);
            dshares.clear();
            dshares.extend(seen.clone().map(|row| dot(dout, part(row, value_at, head_width))));
            let mean: f32 = dshares.iter().zip(shares_here).map(|(d, share)| d * share).sum();
            let mut dquery = [0.0_f32; 256];
            let dquery = dquery.get_mut(..head_width).expect("heads are narrow");
            let query_row = qkv.chunks_exact(3 * width).nth(nth).unwrap_or_default();
            let query = part(query_row, head * head_width, head_width);
            let rows = seen.zip(dqkv.chunks_exact_mut(3 * width));
            for (((row, drow), share), dshare) in rows.zip(shares_here).zip(&dshares) {
                add_scaled(part_mut(drow, value_at, head_width), *share, dout);
                let dscore = scale * share * (dshare - mean);
                add_scaled(dquery, dscore, part(row, key_at, head_width));
                add_scaled(part_mut(drow, key_at, head_width), dscore, query);
            }
            let drow = dqkv.chunks_exact_mut(3 * width).nth(nth).unwrap_or_default();
            add_scaled(part_mut(drow, head * head_width, head_width), 1.0, dquery);
        }
    }
}

fn part(row: &[f32], at: usize, length: usize) -> &[f32] {
    row.get(at..at + length).unwrap_or_default()
}

fn part_mut(row: &mut [f32], at: usize, length: usize) -> &mut [f32] {
    row.get_mut(at..at + length).unwrap_or_default()
}
