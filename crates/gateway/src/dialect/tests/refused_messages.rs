//! What is refused of Anthropic's messages, by path and value.

use super::refused::check;
use super::*;

#[test]
fn a_message_names_what_is_wrong() {
    for (field, at, value, expect) in [
        ("messages", "messages", "[]", "at least one"),
        ("messages", "messages[0].role", r#"[{"role": "tool"}]"#, "is \"tool\", but must be one of"),
        ("messages", "messages[0].content", r#"[{"role": "user"}]"#, "is missing"),
        (
            "messages",
            "messages[0].content[0]",
            r#"[{"role": "user", "content": [{"type": "image", "source": {}}]}]"#,
            "messages[0].content[0] is an image, but the model here reads text only",
        ),
        (
            "messages",
            "messages[0].content[0]",
            r#"[{"role": "user", "content": [{"type": "document"}]}]"#,
            "is a document",
        ),
        (
            "messages",
            "messages[0].content[0].content[0]",
            r#"[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}]}]"#,
            "is an image",
        ),
        (
            "messages",
            "messages[0].content[0].input",
            r#"[{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "x"}]}]"#,
            "is \"x\", but must be an object",
        ),
        (
            "messages",
            "messages[0].content[0].type",
            r#"[{"role": "assistant", "content": [{"type": "server_tool_use"}]}]"#,
            "is \"server_tool_use\"",
        ),
        ("system", "system", "5", "is 5, but must be a text"),
        (
            "tools",
            "tools[0].type",
            r#"[{"type": "web_search_20250305", "name": "w"}]"#,
            "no tools are run here",
        ),
        ("tools", "tools[0].input_schema", r#"[{"name": "w"}]"#, "is missing"),
        ("tools", "tools[0].input_schema", r#"[{"name": "w", "input_schema": 5}]"#, "is 5"),
        ("tool_choice", "tool_choice", "\"auto\"", "is \"auto\", but must be an object"),
        ("tool_choice", "tool_choice.type", r#"{"type": "any"}"#, "there are no tools"),
        ("tool_choice", "tool_choice.name", r#"{"type": "tool", "name": "g"}"#, "one of the tools"),
        ("thinking", "thinking.type", r#"{"type": "deep"}"#, "is \"deep\""),
        ("stop_sequences", "stop_sequences", "[\"\"]", "none of them empty"),
        ("mcp_servers", "mcp_servers", "[{}]", "no tools are run here"),
        ("max_tokens", "max_tokens", "0", "is 0, but must be a whole number from 1"),
        ("thread", "thread.type", r#"{"type": "fork"}"#, "is \"fork\""),
        (
            "thread",
            "thread.previous_message_id",
            r#"{"type": "continue", "previous_message_id": "msg_1"}"#,
            "is \"msg_1\", but no threads are kept here: send the whole conversation",
        ),
    ] {
        check(
            Dialect::Messages,
            &body(Dialect::Messages, &format!("\"{field}\": {value}")),
            Some(at),
            expect,
        );
    }
    check(Dialect::Messages, r#"{"messages": []}"#, Some("max_tokens"), "is missing");
}
