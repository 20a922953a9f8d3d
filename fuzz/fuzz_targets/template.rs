//! Any text as a chat template over a small conversation: refused, or rendered within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_core::tokens::template::{ChatTemplate, Limits, Message, Render};

const MESSAGES: &str = r#"[{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},
    {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}]"#;

fuzz_target!(|source: &str| {
    let limits = Limits { fuel: 20_000, text_bytes: 1 << 20 };
    let special = [("bos_token", "<s>"), ("eos_token", "</s>")];
    let Ok(template) = ChatTemplate::with_limits("fuzz", source, special, limits) else { return };
    let messages = Message::list_from_str(MESSAGES).expect("the messages are valid");
    for continue_final_message in [None, Some("content")] {
        let how = Render { continue_final_message, ..Render::default() };
        match template.render(&messages, &how) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(rendered) => {
                assert!(rendered.text.len() <= limits.text_bytes);
                let mut end = 0;
                for span in rendered.generation {
                    assert!(span.start >= end && rendered.text.get(span.clone()).is_some());
                    end = span.end;
                }
            }
        }
    }
});
