//! What is read.

use super::*;
use crate::ask::{Sampling, ToolChoice};
use serde_json::json;

#[test]
fn every_way_to_sample_is_read() {
    let ask = read(
        Dialect::Chat,
        r#""model": "m", "max_tokens": 9, "max_completion_tokens": 8, "min_tokens": 2, "temperature": 0.5,
           "top_p": 0.25, "top_k": 3, "n": 2, "stop": ["a", "b"], "stop_token_ids": [5], "seed": -1,
           "frequency_penalty": 0.5, "presence_penalty": -1, "logprobs": true, "top_logprobs": 0, "stream": true,
           "stream_options": {"include_usage": true}, "reasoning_effort": "low", "user": "u", "store": false,
           "chat_template_kwargs": {"enable_thinking": false}, "logit_bias": {}, "metadata": {"a": "b"},
           "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "x"}}}"#,
    );
    let sampling = Sampling {
        max_tokens: Some(8),
        min_tokens: Some(2),
        temperature: Some(0.5),
        top_p: Some(0.25),
        top_k: Some(3),
        frequency_penalty: Some(0.5),
        presence_penalty: Some(-1.0),
        stop: vec!["a".into(), "b".into()],
        stop_token_ids: vec![5],
        seed: Some(u64::MAX),
        json_schema: Some(r#"{"type": "x"}"#.into()),
    };
    assert_eq!(ask.sampling, sampling);
    assert_eq!((ask.model.as_deref(), ask.choices.get()), (Some("m"), 2));
    assert!(ask.logprobs && ask.streams && ask.usage_in_stream);
    assert_eq!(json!(ask.template_kwargs), json!({"enable_thinking": false, "reasoning_effort": "low"}));
}

#[test]
fn what_is_null_is_as_if_left_out() {
    for dialect in Dialect::ALL {
        let nulls =
            ["model", "temperature", "stop", "tools", "stream", "n", "logprobs", "tool_choice", "text"];
        let nulls: Vec<String> = nulls.iter().map(|name| format!("\"{name}\": null")).collect();
        let ask = read(dialect, &nulls.join(", "));
        assert_eq!(ask.sampling, super::ask(dialect).sampling, "{dialect:?}");
        assert!(!ask.streams && !ask.logprobs);
    }
}

#[test]
fn messages_of_a_chat_stay_as_they_were_written() {
    let body = br#"{"messages": [{"role":"developer", "content": "be", "x" : 1.50},
        {"content": [{"type": "text", "text": "a\u0041"}], "role": "\u0075ser"},
        {"role": "assistant", "content": null, "tool_calls": [ ]}, {"role": "tool", "tool_call_id": "1"}]}"#;
    let ask = Dialect::Chat.read(body).unwrap();
    let messages: Vec<&str> = chat(&ask).messages.iter().map(|message| message.get()).collect();
    let expect = [
        r#"{"role":"system", "content": "be", "x" : 1.50}"#,
        r#"{"content": [{"type": "text", "text": "a\u0041"}], "role": "\u0075ser"}"#,
        r#"{"role": "assistant", "content": null, "tool_calls": [ ]}"#,
        r#"{"role": "tool", "tool_call_id": "1"}"#,
    ];
    assert_eq!(messages, expect);
}

#[test]
fn tools_of_every_dialect_become_the_same() {
    let schema = r#"{"type": "object", "properties": {}}"#;
    let nested = r#"{"type":"function","function":{"name":"f","description":"d","parameters":S}}"#;
    let form = nested.replace('S', schema);
    for (dialect, tool, named) in [
        (Dialect::Chat, nested, r#"{"type": "function", "function": {"name": "f"}}"#),
        (
            Dialect::Responses,
            r#"{"type":"function","name":"f","description":"d","parameters":S,"strict":true}"#,
            r#"{"type": "function", "name": "f"}"#,
        ),
        (
            Dialect::Messages,
            r#"{"name":"f","description":"d","input_schema":S,"cache_control":{"type":"ephemeral"}}"#,
            r#"{"type": "tool", "name": "f", "disable_parallel_tool_use": true}"#,
        ),
    ] {
        let tool = tool.replace('S', schema);
        let other = tool.replace("\"f\"", "\"g\"");
        let words = match dialect {
            Dialect::Messages => [r#"{"type":"auto"}"#, r#"{"type":"none"}"#, r#"{"type":"any"}"#],
            _ => [r#""auto""#, r#""none""#, r#""required""#],
        };
        let both = format!("[{form},{}]", form.replace("\"f\"", "\"g\""));
        let only = format!("[{form}]");
        let [auto, none, any] = words;
        for (choice, expect, tools) in [
            (auto, ToolChoice::Auto, Some(&both)),
            (none, ToolChoice::None, None),
            (any, ToolChoice::Required, Some(&both)),
            (named, ToolChoice::Named("f".into()), Some(&only)),
        ] {
            let ask = read(dialect, &format!(r#""tools": [{tool}, {other}], "tool_choice": {choice}"#));
            let chat = chat(&ask);
            assert_eq!(chat.tool_choice, expect, "{dialect:?}");
            assert_eq!(
                chat.tools.as_ref().map(|tools| tools.get()),
                tools.map(String::as_str),
                "{dialect:?}"
            );
        }
        assert!(chat(&read(dialect, r#""tools": []"#)).tools.is_none());
    }
}

#[test]
fn a_prompt_is_a_text_or_tokens() {
    for (prompt, text, tokens) in [
        (r#""a\nb""#, Some("a\nb"), None),
        (r#"["a"]"#, Some("a"), None),
        ("[1, 2]", None, Some(vec![1, 2])),
        ("[3]", None, Some(vec![3])),
        ("[[1, 2]]", None, Some(vec![1, 2])),
    ] {
        let body =
            format!(r#"{{"prompt": {prompt}, "echo": false, "suffix": "", "best_of": 1, "logprobs": 0}}"#);
        let ask = Dialect::Completions.read(body.as_bytes()).unwrap();
        match ask.prompt {
            Prompt::Text(read) => assert_eq!(Some(read.as_str()), text, "{prompt}"),
            Prompt::Tokens(read) => assert_eq!(Some(read), tokens, "{prompt}"),
            Prompt::Chat(chat) => panic!("{chat:?}"),
        }
        assert!(ask.logprobs);
    }
}

#[test]
fn a_response_follows_another() {
    let ask = read(
        Dialect::Responses,
        r#""instructions": "be", "previous_response_id": "resp_4", "max_output_tokens": 3, "truncation": "auto",
           "reasoning": {"effort": "high", "summary": "auto"}, "include": ["message.output_text.logprobs"],
           "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}, "parallel_tool_calls": false"#,
    );
    assert_eq!(chat(&ask).follows.as_deref(), Some("4"));
    assert_eq!(chat(&ask).messages.first().unwrap().get(), r#"{"role":"system","content":"be"}"#);
    assert_eq!(ask.sampling.max_tokens, Some(3));
    assert_eq!(ask.sampling.json_schema.as_deref(), Some("{}"));
    assert_eq!(json!(ask.template_kwargs), json!({"reasoning_effort": "high"}));
    assert!(ask.logprobs);
}

#[test]
fn anthropic_says_whether_to_think() {
    for (thinking, expect) in [
        (r#"{"type": "enabled", "budget_tokens": 1024}"#, json!({"enable_thinking": true})),
        (r#"{"type": "disabled"}"#, json!({"enable_thinking": false})),
        (r#"{"type": "adaptive"}"#, json!({})),
    ] {
        let more = format!(r#""thinking": {thinking}, "stop_sequences": ["a"], "top_k": -1"#);
        let ask = read(Dialect::Messages, &more);
        assert_eq!(json!(ask.template_kwargs), expect);
        assert_eq!(ask.sampling.stop, ["a"]);
        assert_eq!((ask.sampling.max_tokens, ask.sampling.top_k), (Some(9), None));
    }
}
