//! Any bytes as a segment of the log: judged without a panic, and every record in it is inside the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::ledger::decode_events;
use rollyard_store::log::segment;

fuzz_target!(|bytes: &[u8]| {
    // The same bytes as the body of a record.
    let _refused = decode_events(bytes);
    if let Ok(scan) = segment::scan(bytes) {
        assert!(scan.end <= bytes.len());
    }
});
