//! Any bytes as an engine's stream: the same wherever they are cut, refused or with a log-prob for each token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_engine::clients::{Dialect, read_stream};

fuzz_target!(|input: &[u8]| {
    let [low, high, bytes @ ..] = input else { return };
    let cut = usize::from(u16::from_le_bytes([*low, *high]));
    let (head, tail) = bytes.split_at(cut.min(bytes.len()));
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let whole = read_stream(dialect, &[bytes]);
        assert_eq!(read_stream(dialect, &[head, tail]), whole);
        if let Ok(piece) = whole {
            let tokens = piece.tokens.unwrap_or_default();
            assert_eq!(tokens.ids.len(), tokens.logprobs.len());
        }
    }
});
