//! Losses have the gradients that small steps show, a checkpoint is what was saved, and a policy learns.

use std::sync::Arc;

use super::*;
use crate::model::{Shape, Weights};

fn shape() -> Shape {
    Shape { vocabulary: 9, width: 8, layers: 2, heads: 2, context: 12 }
}

fn lessons() -> Vec<Lesson> {
    let mut lessons = vec![
        Lesson::answer(&[1, 2, 3], &[4, 5]),
        Lesson::answer(&[2], &[8, 7, 6]),
        Lesson::answer(&[0, 5], &[1]),
    ];
    // A tool's answer in the middle, which nobody is taught.
    lessons.push(Lesson {
        tokens: vec![1, 2, 3, 4, 5, 6],
        sampled: vec![None, Some(-1.0), None, None, Some(-2.0), Some(-0.5)],
        advantage: -1.5,
        temperature: 0.7,
    });
    for (nth, lesson) in lessons.iter_mut().enumerate() {
        if nth < 3 {
            lesson.advantage = [0.8, -1.2, 0.4][nth];
            for sampled in lesson.sampled.iter_mut().flatten() {
                *sampled = -1.8 - 0.2 * nth as f32;
            }
        }
    }
    lessons
}

/// That the gradient of a loss is what a small step along it, and along others, shows.
fn check(what: &str, weights: &Weights, loss: impl Fn(&Weights) -> (f64, Weights)) {
    let (_, gradients) = loss(weights);
    let directions =
        [gradients.clone(), Weights::random(*weights.shape(), 21), Weights::random(*weights.shape(), 22)];
    for (nth, direction) in directions.iter().enumerate() {
        let length = direction.values().iter().map(|value| value * value).sum::<f32>().sqrt();
        let moved = |step: f32| {
            let mut moved = weights.clone();
            for (weight, along) in moved.values_mut().iter_mut().zip(direction.values()) {
                *weight += step * along / length;
            }
            loss(&moved).0
        };
        let seen = (moved(4e-3) - moved(-4e-3)) / 8e-3;
        let along = gradients.values().iter().zip(direction.values());
        let told = along.map(|(a, b)| f64::from(a * b)).sum::<f64>() / f64::from(length);
        assert!((seen - told).abs() < 1e-2 * told.abs().max(0.05), "{what} {nth}: {seen} seen, {told} told");
    }
}

#[test]
fn the_gradient_of_every_loss_is_what_a_small_step_shows() {
    let weights = Weights::random(shape(), 4);
    let lessons = lessons();
    let student = Student { threads: 2 };
    check("imitate", &weights, |weights| imitate(student, weights, &lessons).unwrap());
    // Measured from other weights than those being trained, so that some ratios are clipped and some are not.
    let near = student.logprobs(&Weights::random(shape(), 5), &lessons).unwrap();
    let first = student.logprobs(&Weights::random(shape(), 6), &lessons).unwrap();
    for (what, grpo) in [
        ("grpo", Grpo::default()),
        ("kl", Grpo { kl: 0.3, ..Grpo::default() }),
        ("uncorrected", Grpo { correct: false, clip_low: 0.9, clip_high: 9.0, ..Grpo::default() }),
    ] {
        check(what, &weights, |weights| {
            student.study(weights, &lessons, &grpo.pass(&near, &first, near.len())).unwrap()
        });
    }
}

#[test]
fn the_loss_of_a_token_follows_the_formula() {
    let grpo = Grpo { clip_low: 0.2, clip_high: 0.3, importance_max: 2.0, correct: true, kl: 0.0 };
    let ln = |value: f32| value.ln();
    // ratio, importance, advantage => loss, slope
    for (ratio, importance, advantage, loss, slope) in [
        (1.0, 1.0, 2.0, -2.0, -2.0),
        (1.5, 1.0, 2.0, -2.6, 0.0),
        (1.5, 1.0, -2.0, 3.0, 3.0),
        (0.5, 1.0, 2.0, -1.0, -1.0),
        (0.5, 1.0, -2.0, 1.6, 0.0),
        (1.0, 1.5, 2.0, -3.0, -3.0),
        (1.0, 9.0, 2.0, -4.0, -4.0),
    ] {
        let near = [ln(0.1)];
        let token = Taught { nth: 0, logprob: ln(0.1 * ratio), sampled: ln(0.1 / importance), advantage };
        let Blame { loss: found, slope: found_slope } = grpo.pass(&near, &[], 1).blame(token);
        assert!((found - loss).abs() < 1e-4, "{ratio} {importance} {advantage}: {found}");
        assert!((found_slope - slope).abs() < 1e-4, "{ratio} {importance} {advantage}: {found_slope}");
    }
}

#[test]
fn threads_change_nothing_but_the_time() {
    let weights = Weights::random(shape(), 4);
    let lessons: Vec<Lesson> = std::iter::repeat_n(lessons(), 5).flatten().collect();
    let (one, two) = (Student { threads: 1 }, Student { threads: 3 });
    assert_eq!(one.logprobs(&weights, &lessons).unwrap(), two.logprobs(&weights, &lessons).unwrap());
    let (loss_one, gradients_one) = imitate(one, &weights, &lessons).unwrap();
    let (loss_two, gradients_two) = imitate(two, &weights, &lessons).unwrap();
    assert!((loss_one - loss_two).abs() < 1e-9);
    for (a, b) in gradients_one.values().iter().zip(gradients_two.values()) {
        assert!((a - b).abs() < 1e-5);
    }
}

#[test]
fn what_is_rewarded_becomes_likelier_and_what_is_not_does_not() {
    let settings = AdamSettings { learning_rate: 1e-2, ..AdamSettings::default() };
    let mut trainer = Trainer::new(Arc::new(Weights::random(shape(), 9)), settings, Student { threads: 1 });
    let (mut good, mut bad) = (Lesson::answer(&[1, 2], &[3]), Lesson::answer(&[1, 2], &[4]));
    (good.advantage, bad.advantage) = (1.0, -1.0);
    let pair = [good, bad];
    let before = trainer.student.logprobs(&trainer.weights, &pair).unwrap();
    for _ in 0..20 {
        let now = trainer.student.logprobs(&trainer.weights, &pair).unwrap();
        let mut lessons = pair.clone();
        for (lesson, logprob) in lessons.iter_mut().zip(now) {
            lesson.sampled[2] = Some(logprob);
        }
        let report = trainer.step(&lessons).unwrap();
        assert!(report.drift.abs() < 1e-5 && report.capped == 0.0);
    }
    let after = trainer.student.logprobs(&trainer.weights, &pair).unwrap();
    assert!(after[0] > before[0] + 0.5 && after[1] < before[1] - 0.5, "{before:?} {after:?}");

    let untouched = Arc::clone(&trainer.weights);
    trainer.step(&[Lesson { advantage: 0.0, ..pair[0].clone() }]).unwrap();
    assert_eq!(untouched, trainer.weights);
}

#[test]
fn a_checkpoint_is_read_as_it_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.safetensors");
    let weights = Weights::random(shape(), 4);
    let mut adam = Adam::new(AdamSettings::default(), weights.values().len());
    let (_, gradients) = imitate(Student { threads: 1 }, &weights, &lessons()).unwrap();
    adam.step(&mut weights.clone(), &gradients);
    let mut checkpoint = Checkpoint { weights, adam: Some(adam), notes: serde_json::Map::new() };
    checkpoint.notes.insert("step".into(), 12.into());
    checkpoint.save(&path).unwrap();
    assert_eq!(Checkpoint::load(&path, Some(&shape())).unwrap(), checkpoint);
    checkpoint.adam = None;
    checkpoint.save(&path).unwrap();
    assert_eq!(Checkpoint::load(&path, None).unwrap(), checkpoint);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_checkpoint_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.safetensors");
    let missing = Checkpoint::load(&path, None).unwrap_err();
    assert!(missing.to_string().starts_with("there is no checkpoint here: /"), "{missing}");
    let checkpoint =
        Checkpoint { weights: Weights::random(shape(), 4), adam: None, notes: serde_json::Map::new() };
    checkpoint.save(&path).unwrap();
    let wanted = Shape { width: 16, ..shape() };
    let other = Checkpoint::load(&path, Some(&wanted)).unwrap_err();
    assert!(other.to_string().contains("its width is 8, but 16 is wanted"), "{other}");
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 4, 100, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = Checkpoint::load(&path, None).unwrap_err();
        assert!(error.to_string().contains("this is no checkpoint"), "{cut}: {error}");
    }
    let nowhere = checkpoint.save(&dir.path().join("no/such/folder")).unwrap_err();
    assert!(nowhere.to_string().contains("cannot be read or written"), "{nowhere}");
}
