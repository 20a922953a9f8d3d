//! A tokenizer.json from anywhere is an encoder or an error, and what it encodes has ends in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::tokens::encode::{Encoder, Path};

fuzz_target!(
    // `tokenizers` may panic on a file it cannot read; the encoder turns that into an error, so the panic that
    // counts is one that escapes.
    init: { std::panic::set_hook(Box::new(|_| {})) },
    |data: &[u8]| {
        if let Ok(encoder) = Encoder::from_json(data)
            && encoder.path() == &Path::Fast
        {
            let encoded = encoder.encode_with_ends("It's 42 e\u{301}\r\n <|im_end|>").unwrap();
            assert!(encoded.ends.is_sorted() && encoded.ends.len() == encoded.ids.len());
        }
    }
);
