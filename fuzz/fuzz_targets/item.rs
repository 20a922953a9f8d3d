//! Any bytes as a rollout, or as what stands for one: refused with a reason, or taken and given back as the same JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::pipeline::Row;
use rollyard_core::wire::{item, reference, row};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((item, Some(stored))) = item::decode_any(bytes)
        && let Some(told) = reference::encode(&item, stored)
    {
        assert_eq!(item::decode_any(&told), Ok((item, Some(stored))));
    }
    match item::decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(item) => {
            assert!(item.reward.is_finite());
            let shown = Row { member: 0, reward: item.reward, weight: 1.0, copy: None };
            let mut out = Vec::new();
            row::write(&mut out, bytes, &shown, item.reward).expect("what was taken can be given back");
            let again = item::decode(&out).expect("what was given back can be taken");
            assert_eq!(item, again);
            if let Some((told, _)) = reference::of_rollout(bytes, 1).expect("it was taken") {
                assert_eq!(item::decode_any(&told), Ok((item, reference::Stored::of(bytes, 1))));
            }
        }
    }
});
