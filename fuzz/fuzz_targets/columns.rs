//! Any bytes as a file of rollouts: refused with a reason, or rows that go in and come out again the same.
//!
//! A stranger's bytes almost never pass the first check. So the bytes are also taken as changes to a file that
//! was written properly: a place, and what stands there instead.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::rollout::{Draft, Rollout};
use rollyard_store::rollouts::columns::{decode, encode};
use rollyard_store::rollouts::{About, OwnedRow, Row};
use std::sync::OnceLock;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut file = proper().clone();
    for change in bytes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
        file[place] = change[2];
    }
    check(&file);
});

fn check(bytes: &[u8]) {
    match decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(decoded) => {
            let rows: Vec<_> = decoded.rows.iter().map(OwnedRow::as_row).collect();
            let again = encode(&rows, &decoded.about).expect("what was read can be written");
            let again = decode(&again).expect("what was written can be read");
            // Printed, because an advantage may be a number that is none.
            assert_eq!(format!("{:?}", again.rows), format!("{:?}", decoded.rows));
            assert!(again.damaged.is_empty() && again.about == decoded.about);
        }
    }
}

fn proper() -> &'static Vec<u8> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let draft = Draft {
            env_name: "maths".into(),
            tokens: vec![1, 2, 3, 4, 5],
            prompt_len: 2,
            logprobs: Some(vec![-0.5, 0.0, -0.25]),
            sampled: Some(vec![true, false, true]),
            versions: Some(vec![3, -1, 4]),
            token_rewards: Some(vec![0.0, 0.0, 1.0]),
            ..Draft::default()
        };
        let rollout = Rollout::try_from(draft).expect("a rollout");
        let row = Row { rollout: &rollout, group: 1, uid: Some("a"), advantage: Some(0.5), used: Some(1) };
        let plain = Row { uid: None, advantage: None, used: None, ..row };
        encode(&[row, plain], &About::default()).expect("two rows")
    })
}
