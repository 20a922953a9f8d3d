//! Any bytes as a row: a summary in any case, and a rollout with all its text or a reason why there is none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_store::records::{Body, Place, Summarizer};

fuzz_target!(|bytes: &[u8]| {
    let body = Body { raw: bytes.to_vec().into(), url: "/runs/12.jsonl".into(), line: 1, offset: 0 };
    let summary = Summarizer::default().summarize(bytes, &Place::of(&body.url));
    let (rollout, pieces) = (body.rollout(), body.pieces());
    assert_eq!(rollout.is_err(), summary.problem.is_some());
    assert_eq!(pieces.is_err(), summary.problem.is_some());
    if let Ok(rollout) = rollout {
        assert_eq!(Some(rollout.messages.len() as i64), summary.message_count);
        assert!(rollout.messages.iter().all(|message| message.get("role").is_some() && message.get("content").is_some()));
    }
});
