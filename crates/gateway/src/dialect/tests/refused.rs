//! What is refused, by path and value.

use super::*;

pub(super) fn check(dialect: Dialect, body: &str, field: Option<&str>, expect: &str) {
    let refusal = dialect.read(body.as_bytes()).unwrap_err();
    assert!(refusal.message.contains(expect), "{dialect:?} {body}: {}", refusal.message);
    assert_eq!(refusal.field.as_deref(), field, "{dialect:?} {body}");
}

#[test]
fn a_body_is_an_object() {
    for dialect in Dialect::ALL {
        for body in ["", "[]", "5", "{", "{} {}", "null", r#"{"a": }"#] {
            check(dialect, body, None, "the body is not a JSON object");
        }
        assert!(dialect.read(b"{\"\xff\": 1}").unwrap_err().message.contains("invalid utf-8"));
    }
}

#[test]
fn what_is_out_of_range_is_refused_in_every_dialect() {
    for dialect in Dialect::ALL {
        for (field, value, expect) in [
            ("temperature", "2.5", "a number from 0 to 2"),
            ("temperature", "\"hot\"", "a number from 0 to 2"),
            ("top_p", "0", "a number above 0 and up to 1"),
            ("top_k", "-2", "a whole number from 1, or -1"),
            ("min_tokens", "-1", "a whole number from 0"),
            ("frequency_penalty", "3", "a number from -2 to 2"),
            ("presence_penalty", "1e99", "a number from -2 to 2"),
            ("seed", "1.5", "a whole number"),
            ("stop_token_ids", "[-1]", "a list of token ids"),
            ("stream", "1", "true or false"),
            ("model", "1", "a text"),
            ("logit_bias", r#"{"5": 1}"#, "left out"),
        ] {
            let body = body(dialect, &format!("\"{field}\": {value}"));
            check(
                dialect,
                &body,
                Some(field),
                &format!("field \"{field}\" is {value}, but must be {expect}"),
            );
        }
    }
}

#[test]
fn a_chat_names_what_is_wrong() {
    let many = format!("[{}]", vec!["\"a\""; 17].join(","));
    for (field, at, value, expect) in [
        ("messages", "messages", "5", "is 5, but must be a list"),
        ("messages", "messages", "[]", "at least one"),
        ("messages", "messages[0]", "[5]", "is 5, but must be an object"),
        ("messages", "messages[0]", r#"[["user"]]"#, "an object with a role"),
        ("messages", "messages[0].role", r#"[{"content": "a"}]"#, "is missing"),
        ("messages", "messages[0].role", r#"[{"role": "me"}]"#, "is \"me\", but must be one of \"system\""),
        (
            "messages",
            "messages[0].content",
            r#"[{"role": "user", "content": 5}]"#,
            "is 5, but must be a text",
        ),
        (
            "messages",
            "messages[0].content[1]",
            r#"[{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image_url"}]}]"#,
            "messages[0].content[1] is an image, but the model here reads text only",
        ),
        (
            "messages",
            "messages[0].content[0]",
            r#"[{"role": "user", "content": [{"type": "input_audio"}]}]"#,
            "messages[0].content[0] is audio",
        ),
        (
            "messages",
            "messages[0].content[0].type",
            r#"[{"role": "user", "content": [{"type": "smell"}]}]"#,
            "is \"smell\", but must be \"text\"",
        ),
        ("tools", "tools", "{}", "a list of tools"),
        ("tools", "tools[0].type", r#"[{"type": "custom"}]"#, "is \"custom\", but must be \"function\""),
        ("tools", "tools[0].function", r#"[{"type": "function"}]"#, "is missing"),
        ("tools", "tools[0].function.name", r#"[{"type": "function", "function": {"name": ""}}]"#, "is \"\""),
        (
            "tools",
            "tools[0].function.parameters",
            r#"[{"type": "function", "function": {"name": "f", "parameters": "x"}}]"#,
            "is \"x\", but must be a JSON schema",
        ),
        (
            "tools",
            "tools[0].function.parameters.type",
            r#"[{"type": "function", "function": {"name": "f", "parameters": {"type": "text"}}}]"#,
            "is \"text\", but must be \"object\"",
        ),
        (
            "tools",
            "tools[0].function.parameters.properties",
            r#"[{"type": "function", "function": {"name": "f", "parameters": {"properties": []}}}]"#,
            "is [], but must be an object",
        ),
        ("tool_choice", "tool_choice", "\"some\"", "is \"some\", but must be \"none\""),
        ("tool_choice", "tool_choice", "\"required\"", "there are no tools"),
        ("tool_choice", "tool_choice.type", r#"{"type": "allowed_tools"}"#, "must be \"function\""),
        (
            "tool_choice",
            "tool_choice.function.name",
            r#"{"type": "function", "function": {"name": "g"}}"#,
            "is \"g\", but must be one of the tools",
        ),
        ("functions", "functions", "[{}]", "give \"tools\" instead"),
        ("function_call", "function_call", "\"auto\"", "give \"tool_choice\" instead"),
        ("n", "n", "129", "from 1 to 128"),
        ("n", "n", "0", "from 1 to 128"),
        ("max_tokens", "max_tokens", "0", "from 1"),
        ("stop", "stop", &many, "up to 16"),
        ("stop", "stop", "[\"\"]", "none of them empty"),
        ("top_logprobs", "top_logprobs", "5", "is 5, but must be 0 or left out: only the log-prob"),
        ("logprobs", "logprobs", "3", "true or false"),
        ("response_format", "response_format.type", r#"{"type": "xml"}"#, "is \"xml\", but must be"),
        ("response_format", "response_format.json_schema", r#"{"type": "json_schema"}"#, "is missing"),
        (
            "response_format",
            "response_format.json_schema.schema",
            r#"{"type": "json_schema", "json_schema": {"schema": 5}}"#,
            "is 5, but must be a JSON schema",
        ),
        ("chat_template_kwargs", "chat_template_kwargs", "[]", "an object"),
        ("stream_options", "stream_options.include_usage", r#"{"include_usage": 1}"#, "true or false"),
    ] {
        check(Dialect::Chat, &body(Dialect::Chat, &format!("\"{field}\": {value}")), Some(at), expect);
    }
    check(Dialect::Chat, "{}", Some("messages"), "is missing");
    let both = body(Dialect::Chat, r#""max_tokens": 2, "min_tokens": 3"#);
    check(Dialect::Chat, &both, Some("min_tokens"), "is 3, but must be at most 2");
}

#[test]
fn a_completion_names_what_is_wrong() {
    for (field, value, expect) in [
        ("prompt", "5", "is 5, but must be a text or a list of token ids"),
        ("prompt", "\"\"", "not empty"),
        ("prompt", "[]", "not empty"),
        ("prompt", "[-1]", "token ids"),
        ("prompt", r#"["a", "b"]"#, "one prompt, not 2: send a request for each"),
        ("prompt", "[[1], [2]]", "one prompt, not 2"),
        ("echo", "true", "is true, but must be false"),
        ("suffix", "\"x\"", "only continued"),
        ("best_of", "2", "none is chosen"),
        ("logprobs", "5", "0 or 1: only the log-prob of the sampled token is known"),
    ] {
        let body = body(Dialect::Completions, &format!("\"{field}\": {value}"));
        check(Dialect::Completions, &body, Some(field), expect);
    }
    check(Dialect::Completions, "{}", Some("prompt"), "is missing");
}

#[test]
fn a_response_names_what_is_wrong() {
    for (field, at, value, expect) in [
        ("input", "input", "5", "is 5, but must be a text or a list of items"),
        ("input", "input", "[]", "at least one"),
        ("input", "input[0]", "[5]", "an item, which is an object"),
        ("input", "input[0].type", r#"[{"type": "web_search_call"}]"#, "is \"web_search_call\""),
        ("input", "input[0].type", r#"[{"type": "item_reference", "id": "x"}]"#, "previous_response_id"),
        ("input", "input[0].call_id", r#"[{"type": "function_call"}]"#, "is missing"),
        ("input", "input[0].output", r#"[{"type": "function_call_output", "call_id": "x"}]"#, "is missing"),
        ("input", "input[0].role", r#"[{"role": "tool", "content": ""}]"#, "is \"tool\""),
        (
            "input",
            "input[0].content[1]",
            r#"[{"role": "user", "content": [{"type": "input_text", "text": ""}, {"type": "input_image"}]}]"#,
            "input[0].content[1] is an image, but the model here reads text only",
        ),
        (
            "input",
            "input[0].output[0]",
            r#"[{"type": "function_call_output", "call_id": "x", "output": [{"type": "input_file"}]}]"#,
            "input[0].output[0] is a file",
        ),
        ("instructions", "instructions", "[]", "a text"),
        (
            "tools",
            "tools[0].type",
            r#"[{"type": "web_search"}]"#,
            "is \"web_search\", but must be \"function\"",
        ),
        ("tools", "tools[0].name", r#"[{"type": "function"}]"#, "is missing"),
        ("tool_choice", "tool_choice.name", r#"{"type": "function", "name": "g"}"#, "one of the tools"),
        ("text", "text.format.type", r#"{"format": {"type": "xml"}}"#, "is \"xml\""),
        ("text", "text.format.schema", r#"{"format": {"type": "json_schema"}}"#, "is missing"),
        ("background", "background", "true", "given at once"),
        ("conversation", "conversation", "\"c\"", "previous_response_id"),
        ("prompt", "prompt", "{}", "give \"input\""),
        ("max_output_tokens", "max_output_tokens", "0", "from 1"),
        ("top_logprobs", "top_logprobs", "1", "only the log-prob"),
        ("include", "include", "5", "a list of texts"),
        ("reasoning", "reasoning.effort", r#"{"effort": 1}"#, "a text"),
    ] {
        check(
            Dialect::Responses,
            &body(Dialect::Responses, &format!("\"{field}\": {value}")),
            Some(at),
            expect,
        );
    }
    check(Dialect::Responses, r#"{"previous_response_id": "resp_1"}"#, Some("input"), "is missing");
}
