//! Any text as a filter: refused at a place within it, or SQL with as many parameters as it has question marks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_store::query::filter::{Fields, Filter};

fuzz_target!(|text: &str| {
    let fields = Fields::new(["difficulty".to_owned()]);
    match Filter::parse(text, &fields) {
        Ok(filter) => {
            let sql = filter.sql();
            assert_eq!(sql.text.matches('?').count(), sql.params.len(), "{}", sql.text);
        }
        Err(mistake) => {
            assert!(!mistake.message.is_empty());
            assert!(text.get(mistake.at.clone()).is_some(), "{:?}", mistake.at);
        }
    }
});
