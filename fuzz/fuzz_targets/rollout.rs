//! Any bytes as a rollout with tokens: refused with a reason, or a rollout whose parts fit together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::batch::{Layout, sequences};
use rollyard_core::wire::rollout;

fuzz_target!(|bytes: &[u8]| {
    match rollout::decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(rollout) => {
            assert_eq!(rollout.sampled().len(), rollout.response_len());
            assert_eq!(rollout.versions().len(), rollout.response_len());
            let batch = sequences([&rollout], &Layout::default()).expect("one rollout makes a batch");
            assert_eq!(batch["input_ids"].shape(), [1, rollout.tokens().len()]);
        }
    }
});
