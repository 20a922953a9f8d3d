//! Any JSON object as settings: refused by name, or taken into a configuration that holds together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::run_config::RunConfig;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Object(changes)) = serde_json::from_slice(bytes) else { return };
    if let Ok(config) = RunConfig::default().patched(&changes) {
        let size = config.group_len();
        for share in [config.finished_size(), config.timeout_size(), config.valid_items()] {
            assert!((1..=size).contains(&share));
        }
        assert_eq!(config.patched(&config.to_map()).as_ref(), Ok(&config));
    }
});
