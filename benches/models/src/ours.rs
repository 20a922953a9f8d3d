//! The model as it is: `rollyard_tiny::model`.

use std::sync::Arc;

use anyhow::Result;
use rollyard_tiny::model::{Decoder, Feed, Policy, Weights};
use rollyard_tiny::train::{Lesson, Student, imitate};

/// The likeliest tokens, of all texts at once.
pub fn sample(weights: &Weights, prompts: &[Vec<i32>], answer: usize) -> Result<Vec<Vec<i32>>> {
    let mut policy = Policy::new(Arc::new(weights.clone()));
    let slots: Vec<_> = prompts.iter().map(|_| policy.begin()).collect();
    let mut next: Vec<Vec<i32>> = prompts.to_vec();
    let mut said = vec![Vec::new(); prompts.len()];
    for _ in 0..answer {
        let feeds: Vec<_> =
            slots.iter().zip(&next).map(|(slot, tokens)| Feed { slot: *slot, tokens }).collect();
        let logits = policy.forward(&feeds)?;
        let rows = logits.chunks_exact(policy.vocabulary());
        for ((row, next), said) in rows.zip(&mut next).zip(&mut said) {
            let token = likeliest(row);
            *next = vec![token];
            said.push(token);
        }
    }
    Ok(said)
}

pub fn train(weights: &Weights, lessons: &[Lesson], threads: usize) -> Result<(f64, Weights)> {
    Ok(imitate(Student { threads }, weights, lessons)?)
}

pub fn likeliest(row: &[f32]) -> i32 {
    let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(token, _)| token as i32)
}
