//! The policy while it learns from its own answers.

use std::sync::Arc;

use super::adam::{Adam, AdamSettings};
use super::grpo::{Grpo, GrpoReport};
use super::lesson::Lesson;
use super::student::Student;
use crate::model::{DecoderError, Weights};

#[derive(Clone, Debug)]
pub struct Trainer {
    pub weights: Arc<Weights>,
    pub adam: Adam,
    pub grpo: Grpo,
    pub student: Student,
    /// Steps of the optimiser that a batch is divided into.
    pub minibatches: usize,
    /// What the policy is not to go far from, where there is a KL term.
    pub first: Option<Arc<Weights>>,
}

impl Trainer {
    pub fn new(weights: Arc<Weights>, settings: AdamSettings, student: Student) -> Self {
        let adam = Adam::new(settings, weights.values().len());
        Self { weights, adam, grpo: Grpo::default(), student, minibatches: 1, first: None }
    }

    /// Learns from a batch. Lessons without an advantage teach nothing and cost nothing.
    pub fn step(&mut self, lessons: &[Lesson]) -> Result<GrpoReport, DecoderError> {
        let lessons: Vec<Lesson> = lessons.iter().filter(|lesson| lesson.advantage != 0.0).cloned().collect();
        let tokens: usize = lessons.iter().map(Lesson::taught).sum();
        if tokens == 0 {
            return Ok(GrpoReport::default());
        }
        // The start of the step is what ratios are measured from, and what drift is told by.
        let near = self.student.logprobs(&self.weights, &lessons)?;
        let first = match self.first.as_ref().filter(|_| self.grpo.kl > 0.0) {
            Some(first) => self.student.logprobs(first, &lessons)?,
            None => Vec::new(),
        };
        let mut report = self.grpo.report(&lessons, &near);
        let mut weights = Weights::clone(&self.weights);
        let mut begin = 0;
        for part in lessons.chunks(lessons.len().div_ceil(self.minibatches.max(1))) {
            let end = begin + part.iter().map(Lesson::taught).sum::<usize>();
            let of_part = |all| -> &[f32] { <[f32]>::get(all, begin..end).unwrap_or_default() };
            let pass = self.grpo.pass(of_part(&near), of_part(&first), end - begin);
            let (loss, gradients) = self.student.study(&weights, part, &pass)?;
            report.loss += loss * (end - begin) as f64 / tokens as f64;
            report.length = self.adam.step(&mut weights, &gradients).max(report.length);
            begin = end;
        }
        self.weights = Arc::new(weights);
        Ok(report)
    }
}
