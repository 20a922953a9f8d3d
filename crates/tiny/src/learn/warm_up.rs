//! A few seconds of imitation, so that the policy knows what an answer looks like.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rollyard_core::tokens::Tokenizer;

use super::course::LearnError;
use super::plan::Plan;
use crate::model::Weights;
use crate::task::below;
use crate::train::{Adam, AdamSettings, Lesson, Student, imitate};

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp {
    pub step: usize,
    pub steps: usize,
    /// Of the step.
    pub loss: f64,
}

/// Imitates the teacher of the plan's task. `told` hears of every step, and stops it by returning false; then there
/// are no weights.
pub fn warm_up(
    plan: &Plan,
    tokenizer: &Tokenizer,
    student: Student,
    mut told: impl FnMut(WarmUp) -> bool,
) -> Result<Option<Weights>, LearnError> {
    let task = plan.check()?;
    let problems = task.problems(plan.seed);
    let mut weights = Weights::random(plan.shape, plan.seed);
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut adam = Adam::new(AdamSettings::default(), weights.values().len());
    let steps = plan.warm_up_steps;
    for step in 0..steps {
        // Careful at first, so that the right way is learnt at all, and then less and less.
        let careless_percent = plan.careless_percent * step / steps;
        let lesson = |_| {
            let problem = problems.train.get(below(&mut rng, problems.train.len()))?;
            Some(task.lesson(tokenizer, problem, careless_percent, &mut rng))
        };
        let lessons: Vec<Lesson> = (0..plan.warm_up_lessons).filter_map(lesson).collect();
        // Down to a tenth: the last steps are for settling.
        let left = 1.0 - 0.9 * step as f32 / steps as f32;
        adam.settings.learning_rate = plan.warm_up_learning_rate * left;
        let (loss, gradients) = imitate(student, &weights, &lessons)?;
        adam.step(&mut weights, &gradients);
        if !told(WarmUp { step: step + 1, steps, loss }) {
            return Ok(None);
        }
    }
    Ok(Some(weights))
}
