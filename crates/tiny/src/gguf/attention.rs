//! What the newest tokens of texts see of them: as in the small model, but that several heads share keys and values.

use rayon::prelude::*;

use super::dims::Dims;
use crate::model::matrix::{add_scaled, dot, softmax};

/// A token and what it may look at: the keys and values of its text up to itself, `2 · kv_width` numbers a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) query: &'a [f32],
    pub(super) past: &'a [f32],
}

/// Multiplications that are worth waking another thread for.
const WORTH_SHARING: usize = 1 << 20;

/// A row of `query_width` for every view. Each is computed on one thread, whatever the others are.
pub(super) fn attend(dims: &Dims, views: &[View<'_>], out: &mut [f32]) {
    let width = dims.query_width();
    let work: usize = views.iter().map(|view| view.past.len() / dims.kv_heads * dims.heads).sum();
    if work >= WORTH_SHARING {
        let rows = out.par_chunks_exact_mut(width).zip(views);
        rows.for_each_init(Vec::new, |scores, (out, view)| look(dims, *view, scores, out));
    } else {
        let mut scores = Vec::new();
        for (out, view) in out.chunks_exact_mut(width).zip(views) {
            look(dims, *view, &mut scores, out);
        }
    }
}

fn look(dims: &Dims, view: View<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    let Dims { head_width, .. } = *dims;
    let kv_width = dims.kv_width();
    let sharing = dims.heads / dims.kv_heads;
    let scale = 1.0 / (head_width as f32).sqrt();
    let heads = view.query.chunks_exact(head_width).zip(out.chunks_exact_mut(head_width));
    for (head, (query, out)) in heads.enumerate() {
        let key_at = head / sharing * head_width;
        let tokens = view.past.chunks_exact(2 * kv_width);
        scores.clear();
        scores.extend(
            tokens
                .clone()
                .map(|row| scale * dot(query, row.get(key_at..key_at + head_width).unwrap_or_default())),
        );
        softmax(scores);
        let value_at = kv_width + key_at;
        for (share, row) in scores.iter().zip(tokens) {
            add_scaled(out, *share, row.get(value_at..value_at + head_width).unwrap_or_default());
        }
    }
}
