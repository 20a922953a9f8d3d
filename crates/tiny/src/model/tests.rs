//! What is sampled is what is trained, and gradients are what a small step shows them to be.

use std::sync::Arc;

use super::*;

fn shape() -> Shape {
    Shape { vocabulary: 11, width: 12, layers: 2, heads: 3, context: 16 }
}

fn texts() -> Texts {
    let mut texts = Texts::default();
    texts.push(&[1, 2, 3, 4, 5]);
    texts.push(&[7]);
    texts.push(&[10, 0, 10, 3, 2, 9, 8]);
    texts
}

/// A loss that needs every logit.
fn loss(weights: &Weights) -> (f64, Vec<f32>) {
    let texts = texts();
    let tape = Tape::record(weights, &texts).unwrap();
    let aim = |at: usize| ((at * 37 % 19) as f32 - 9.0) / 9.0;
    let dlogits: Vec<f32> =
        tape.logits().iter().enumerate().map(|(at, logit)| (logit - aim(at)).tanh()).collect();
    let loss =
        tape.logits().iter().enumerate().map(|(at, logit)| f64::from(logit - aim(at)).cosh().ln()).sum();
    (loss, dlogits)
}

#[test]
fn every_gradient_is_what_a_small_step_shows() {
    let weights = Weights::random(shape(), 3);
    let (_, dlogits) = loss(&weights);
    let texts = texts();
    let mut gradients = Weights::zeros(shape());
    Tape::record(&weights, &texts).unwrap().back(&dlogits, &mut gradients);
    for (name, range) in weights.names() {
        // Along the gradient of this part alone, so that one wrong part cannot hide among the others.
        let part = &gradients.values()[range.clone()];
        let length = part.iter().map(|value| value * value).sum::<f32>().sqrt();
        assert!(length > 0.0, "{name}");
        let moved = |step: f32| {
            let mut moved = weights.clone();
            for (weight, gradient) in moved.values_mut()[range.clone()].iter_mut().zip(part) {
                *weight += step * gradient / length;
            }
            loss(&moved).0
        };
        let seen = (moved(2e-3) - moved(-2e-3)) / 4e-3;
        let told = f64::from(length);
        assert!((seen - told).abs() < 2e-2 * told.max(0.1), "{name}: {seen} seen, {told} told");
    }
}

#[test]
fn a_text_fed_in_pieces_beside_others_gives_the_logits_of_the_whole() {
    let weights = Arc::new(Weights::random(shape(), 5));
    let mut whole = Texts::default();
    let text = [1, 2, 3, 4, 5, 6];
    whole.push(&text);
    let tape = Tape::record(&weights, &whole).unwrap();
    let expected = tape.logits();
    let mut policy = Policy::new(Arc::clone(&weights));
    let (slot, other) = (policy.begin(), policy.begin());
    for (pieces, end) in [(0..3, 3), (3..4, 4), (4..6, 6)] {
        let feeds = [Feed { slot: other, tokens: &[9] }, Feed { slot, tokens: &text[pieces] }];
        let logits = policy.forward(&feeds).unwrap();
        for (got, expected) in logits[11..].iter().zip(&expected[(end - 1) * 11..end * 11]) {
            assert!((got - expected).abs() < 1e-5, "{got} {expected}");
        }
    }
}

#[test]
fn what_a_text_gives_does_not_depend_on_its_company() {
    let weights = Arc::new(Weights::random(Shape::demo(64), 5));
    let mut policy = Policy::new(weights);
    let alone = {
        let slot = policy.begin();
        let logits = policy.forward(&[Feed { slot, tokens: &[5, 6, 7] }]).unwrap();
        policy.end(slot);
        logits
    };
    let slots: Vec<SlotId> = (0..33).map(|_| policy.begin()).collect();
    let feeds: Vec<Feed<'_>> = slots.iter().map(|slot| Feed { slot: *slot, tokens: &[5, 6, 7] }).collect();
    let together = policy.forward(&feeds).unwrap();
    for logits in together.chunks_exact(64) {
        assert_eq!(logits, alone);
    }
}

#[test]
fn new_weights_forget_what_was_cached_under_the_old() {
    let (first, second) = (Arc::new(Weights::random(shape(), 1)), Arc::new(Weights::random(shape(), 2)));
    let mut policy = Policy::new(first);
    let slot = policy.begin();
    policy.forward(&[Feed { slot, tokens: &[1, 2, 3] }]).unwrap();
    policy.set_weights(Arc::clone(&second));
    let again = policy.forward(&[Feed { slot, tokens: &[1, 2, 3, 4] }]).unwrap();
    let mut fresh = Policy::new(second);
    let slot = fresh.begin();
    assert_eq!(again, fresh.forward(&[Feed { slot, tokens: &[1, 2, 3, 4] }]).unwrap());
}

#[test]
fn a_token_or_text_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut policy = Policy::new(Arc::new(Weights::random(shape(), 1)));
    let slot = policy.begin();
    for (tokens, expect) in [
        (vec![3, 11], "token 11 is none of the model's, which has 11"),
        (vec![-1], "token -1 is none"),
        (vec![1; 17], "a text of 17 tokens is longer than the model's context of 16"),
    ] {
        let error = policy.forward(&[Feed { slot, tokens: &tokens }]).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
    }
    policy.forward(&[Feed { slot, tokens: &[1; 16] }]).unwrap();
}

#[test]
fn a_shape_that_cannot_be_is_refused_by_name() {
    for (shape, expect) in [
        (Shape { width: 0, ..shape() }, "\"width\" of the model's shape is 0"),
        (Shape { heads: 5, ..shape() }, "multiple of \"heads\", which is 5"),
        (Shape { vocabulary: usize::MAX, ..shape() }, "too large"),
    ] {
        assert!(shape.check().unwrap_err().to_string().contains(expect));
    }
    assert_eq!(shape().weights(), Weights::zeros(shape()).names().last().unwrap().1.end);
}
