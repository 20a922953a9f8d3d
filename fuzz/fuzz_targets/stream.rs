//! Any bytes as a message of a log on JetStream: refused or read, without a panic, and what is read is inside the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_store::log::jetstream::message::{Held, Piece, blobs_of, entries, payload_of};

fuzz_target!(|bytes: &[u8]| {
    let message = bytes::Bytes::copy_from_slice(bytes);
    if let Ok(piece) = Piece::decode(&message) {
        assert_eq!(Piece::decode(&piece.encode()).as_ref(), Ok(&piece));
        let _cut = entries(&piece.bytes);
    }
    for entry in entries(bytes).unwrap_or_default() {
        assert!(entry.body.len() <= bytes.len());
    }
    let _names = blobs_of(&message);
    for index in [0, 1, 255] {
        if let Ok(Some(Held::Inline(payload))) = payload_of(&message, index) {
            assert!(payload.len() <= bytes.len());
        }
    }
});
