//! Any two texts as an answer and its truth: judged the same in either order, and equal to themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_engine::reward::maths::{extract, verify};

fuzz_target!(|texts: (&str, &str)| {
    let (answer, truth) = texts;
    assert_eq!(verify(answer, truth), verify(truth, answer));
    if let Some(boxed) = extract(answer) {
        assert!(answer.contains(boxed));
    }
    if answer.contains(|c: char| c.is_ascii_alphanumeric()) {
        assert!(verify(answer, answer));
    }
});
