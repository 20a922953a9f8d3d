//! A call that cannot be understood is text, and its reason is told.

use super::{asked, calls, listen};

#[test]
fn a_malformed_call_is_text_with_a_reason() {
    for (grammar, text, reason) in [
        ("qwen", "<tool_call>{\"name\": \"add\"", "close it with </tool_call>"),
        ("qwen", "<tool_call>add(1)</tool_call>", "not JSON"),
        ("qwen", "<tool_call>{\"arguments\": {}}</tool_call>", "no \"name\""),
        ("qwen", "<tool_call>{\"name\": \"add\", \"arguments\": [1]}</tool_call>", "not a JSON object"),
        ("qwen", "<tool_call>{\"name\": \"add\", \"arguments\": \"{\"}</tool_call>", "not JSON"),
        ("qwen3_coder", "<tool_call>{\"name\": \"add\"}</tool_call>", "<function=…>"),
        ("qwen3_coder", "<tool_call><function=add><parameter=a>1</function></tool_call>", "</parameter>"),
        ("qwen3_coder", "<tool_call><function=add>a=1</function></tool_call>", "<parameter=…>"),
        (
            "qwen3_coder",
            "<tool_call><function=add><parameter=a>1</parameter><parameter=a>2</parameter></function></tool_call>",
            "a is given twice",
        ),
        ("qwen3_coder", "<tool_call><function=></function></tool_call>", "no name"),
        ("glm45", "<tool_call>add 1</tool_call>", "<arg_key>"),
        ("glm45", "<tool_call>add<arg_key>a</arg_key></tool_call>", "<arg_value>"),
        ("glm45", "<tool_call></tool_call>", "no name"),
        ("llama3", "<|python_tag|>print(1)", "not JSON"),
        ("llama3", "<|python_tag|>{\"name\": \"add\"", "cut off"),
        ("llama3", "{\"name\": \"add\", \"parameters\": {\"a\"", "cut off"),
        ("llama3", "{\"name\": \"add\", \"parameters\": {'a': 1}}", "not JSON"),
        ("deepseek_v31", "<｜tool▁call▁begin｜>add<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
        ("deepseek_v31", "<｜tool▁call▁begin｜>add<｜tool▁sep｜>[1]<｜tool▁call▁end｜>", "not a JSON object"),
        (
            "deepseek_v3",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{}<｜tool▁call▁end｜>",
            "fence",
        ),
        ("kimi_k2", "<|tool_call_begin|>functions.add:0<|tool_call_end|>", "<|tool_call_argument_begin|>"),
        ("kimi_k2", "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{", "<|tool_call_end|>"),
        ("mistral", "[TOOL_CALLS] [{]", "cut off"),
        ("mistral", "[TOOL_CALLS] []", "empty"),
        ("mistral", "[TOOL_CALLS] [{\"name\": \"add\"}, 1]", "not a JSON object"),
        ("mistral", "[TOOL_CALLS]add", "cut off"),
        ("mistral", "[TOOL_CALLS]add\nand more", "no arguments"),
        ("harmony", " to=functions.add<|channel|>commentary<|message|>{\"a\":", "not a JSON object"),
        ("harmony", " to=functions.add<|channel|>commentary<|message|>", "cut off"),
        ("harmony", " to=python<|channel|>analysis<|message|>print(1)<|call|>", "not a JSON object"),
        ("harmony", " to=functions.add", "no <|message|>"),
    ] {
        let (_, heard) = listen(asked(grammar), [text]);
        assert_eq!(heard.content, text);
        assert_eq!(calls(&heard), [""; 0], "{text}");
        assert!(heard.malformed.len() == 1 && heard.malformed[0].contains(reason), "{text}: {heard:?}");
    }
}

#[test]
fn calls_beside_a_malformed_one_are_heard() {
    let text = "<tool_call>{\"name\": \"add\"}</tool_call>\n<tool_call>{</tool_call>\n<tool_call>{\"name\": \"add\"}</tool_call>";
    let (_, heard) = listen(asked("qwen"), [text]);
    assert_eq!(calls(&heard), ["add {}", "add {}"]);
    assert_eq!(heard.content, "<tool_call>{</tool_call>");
    assert_eq!(heard.malformed.len(), 1);
}

#[test]
fn deep_nesting_is_malformed_and_no_crash() {
    let deep = "{\"function\":".repeat(50_000);
    for (grammar, text) in [
        ("qwen", format!("<tool_call>{deep}1{}</tool_call>", "}".repeat(50_000))),
        ("llama3", format!("<|python_tag|>{deep}1{}", "}".repeat(50_000))),
        ("mistral", format!("[TOOL_CALLS]add{deep}1{}", "}".repeat(50_000))),
    ] {
        let (_, heard) = listen(asked(grammar), [text.as_str()]);
        assert_eq!(heard.malformed.len(), 1);
        assert_eq!(heard.content, text);
    }
}
