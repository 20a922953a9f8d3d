//! Any bytes as an engine's answer: refused with a reason, or tokens that each have a log-prob.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_engine::clients::{Dialect, Flaw, read_answer};

fuzz_target!(|bytes: &[u8]| {
    for dialect in Dialect::ALL {
        for exact in [true, false] {
            match read_answer(dialect, bytes, exact) {
                Err(Flaw::Bad(reason)) => assert!(!reason.is_empty()),
                Err(Flaw::NotExact { .. }) => assert!(exact),
                Err(Flaw::Refused { .. }) => {}
                Ok(piece) => match piece.tokens {
                    Some(tokens) => assert_eq!(tokens.ids.len(), tokens.logprobs.len()),
                    None => assert!(!exact || dialect == Dialect::Openai),
                },
            }
        }
    }
});
