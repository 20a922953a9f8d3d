//! Which grammar is meant, and how its calls are counted.

use super::{Grammar, asked, listen};

#[test]
fn ids_go_on_counting() {
    let call = "<tool_call>{\"name\":\"add\"}</tool_call>";
    let (_, heard) = listen(asked("qwen"), [call, call]);
    let ids: Vec<_> = heard.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call00007", "call00008"]);
}

#[test]
fn a_template_tells_its_grammar() {
    for (template, expect) in [
        ("{{ messages }}", "none"),
        ("{{ '<think>\\n' }}", "think"),
        ("<tool_call></tool_call>", "hermes"),
        ("<tool_call></tool_call> {{ content.split('</think>') }}", "qwen"),
        ("<tool_call>\\n<function=example><parameter=a>", "qwen3_coder"),
        ("<tool_call>{name}<arg_key>{k}</arg_key> <think>", "glm45"),
        ("{{- '<|python_tag|>' }}", "llama3"),
        ("<|start_header_id|> {\"name\": function name, \"parameters\": dictionary}", "llama3"),
        ("[TOOL_CALLS]", "mistral"),
        ("<|tool_calls_section_begin|>", "kimi_k2"),
        ("<｜tool▁calls▁begin｜> ```json", "deepseek_v3"),
        ("<｜tool▁calls▁begin｜> ```json </think>", "deepseek_r1"),
        ("<｜tool▁calls▁begin｜> <think>", "deepseek_v31"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "harmony"),
    ] {
        assert_eq!(Grammar::of_template(template).name(), expect, "{template}");
    }
}

#[test]
fn an_unknown_grammar_is_told_the_known_ones() {
    let error = Grammar::named("auto").unwrap_err().to_string();
    assert!(error.contains("\"auto\"") && error.contains("qwen3_coder, llama3"), "{error}");
}
