//! Answers as the models write them.

use super::{Asked, asked, calls, listen};

/// (text, reasoning, content, calls)
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

fn check_asked(asked: Asked<'_>, cases: &[Case<'_>]) {
    for (text, reasoning, content, expect) in cases {
        let (_, heard) = listen(asked, [*text]);
        assert_eq!(heard.reasoning.clone().unwrap_or_default(), *reasoning, "{text}");
        assert_eq!(heard.content, *content, "{text}");
        assert_eq!(calls(&heard), *expect, "{text}");
        assert_eq!(heard.malformed, [""; 0], "{text}");
        let chars: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(listen(asked, chars.iter().map(String::as_str)).1, heard, "{text}");
    }
}

fn check(grammar: &str, cases: &[Case<'_>]) {
    check_asked(asked(grammar), cases);
}

#[test]
fn qwen_writes_objects_between_marks() {
    let cases: &[Case<'_>] = &[
        ("Just text.\n", "", "Just text.\n", &[]),
        (
            "<think>\nAdd them.\n\nNow.\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            "Add them.\n\nNow.",
            "Let me see.",
            &[r#"add {"a": 1}"#],
        ),
        ("<think>\n\n</think>\n\nHi", "", "Hi", &[]),
        ("<think>a</think>\n \nHi", "a", " \nHi", &[]),
        (
            "<tool_call>{\"name\":\"mcp__git-log\"}</tool_call>\n<tool_call>{\"name\":\"nobody\",\"arguments\":\"{\\\"x\\\":2}\"}</tool_call>\n",
            "",
            "",
            &["mcp__git-log {}", r#"nobody {"x":2}"#],
        ),
        (
            "One.\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":12345678901234567890123}}</tool_call>\nTwo.",
            "",
            "One.\n\nTwo.",
            &[r#"add {"a":12345678901234567890123}"#],
        ),
        (
            "<think>maybe <tool_call>{\"name\":\"add\"}</tool_call>?</think>No.",
            "maybe <tool_call>{\"name\":\"add\"}</tool_call>?",
            "No.",
            &[],
        ),
        ("<think>cut off\n", "cut off\n", "", &[]),
        ("a < b and <tool", "", "a < b and <tool", &[]),
        ("<think>a</think>b<think>c</think>d", "a\nc", "bd", &[]),
    ];
    check("qwen", cases);
    check("hermes", cases);
}

#[test]
fn a_prompt_may_have_opened_the_thought() {
    for prompt_end in ["<|im_start|>assistant\n<think>\n", "<｜Assistant｜><think>"] {
        for grammar in ["qwen", "deepseek_r1", "think"] {
            let asked = Asked { grammar, tools: true, prompt_end };
            check_asked(
                asked,
                &[
                    ("Hm.\n</think>\n\nYes.", "Hm.", "Yes.", &[]),
                    ("<think>\nHm, <think>.</think>Yes.", "Hm, <think>.", "Yes.", &[]),
                    ("Hm.", "Hm.", "", &[]),
                ],
            );
        }
    }
    let asked = Asked { grammar: "mistral", tools: true, prompt_end: "[/INST][THINK]" };
    check_asked(asked, &[("Hm.[/THINK]Yes.", "Hm.", "Yes.", &[])]);
}

#[test]
fn qwen3_coder_writes_tags() {
    check(
        "qwen3_coder",
        &[
            (
                "I'll add.\n<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=code>\n    return \"1\"\n\n</parameter>\n<parameter=list>\n[1, 2]\n</parameter>\n<parameter=other>\nTrue story\n</parameter>\n</function>\n</tool_call>",
                "",
                "I'll add.",
                &[r#"add {"a": 1, "code": "    return \"1\"\n", "list": [1, 2], "other": "True story"}"#],
            ),
            ("<tool_call>\n<function=mcp__git-log>\n</function>\n</tool_call>", "", "", &["mcp__git-log {}"]),
        ],
    );
}

#[test]
fn glm_writes_keys_and_values() {
    check(
        "glm45",
        &[
            (
                "\n<think>Add.</think>\nSure.\n<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>note</arg_key>\n<arg_value>null</arg_value>\n</tool_call>\n<tool_call>mcp__git-log\n</tool_call>",
                "Add.",
                "Sure.",
                &[r#"add {"a": 1, "note": null}"#, "mcp__git-log {}"],
            ),
            (
                "<tool_call>add<arg_key>code</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>1.50</arg_value></tool_call>",
                "",
                "",
                &[r#"add {"code": "1", "b": 1.50}"#],
            ),
        ],
    );
}

#[test]
fn llama_writes_json_bare_or_behind_a_tag() {
    check(
        "llama3",
        &[
            (r#"{"name": "add", "parameters": {"a": 1}}"#, "", "", &[r#"add {"a": 1}"#]),
            (r#"{"name": "add", "parameters": {"code": "\"}\\"}}"#, "", "", &[r#"add {"code": "\"}\\"}"#]),
            (
                r#"<|python_tag|>{"type": "function", "name": "add", "parameters": {"code": "x; y}"}}; {"name": "mcp__git-log", "parameters": {}}"#,
                "",
                "",
                &[r#"add {"code": "x; y}"}"#, "mcp__git-log {}"],
            ),
            ("<think>a</think>\n{\"name\": \"add\", \"parameters\": {}}", "a", "", &["add {}"]),
            (r#"{"answer": 42}"#, "", r#"{"answer": 42}"#, &[]),
            (r#"{"name": "Bob", "age": 3}"#, "", r#"{"name": "Bob", "age": 3}"#, &[]),
            (r#"{"name": "Bob"#, "", r#"{"name": "Bob"#, &[]),
            ("{", "", "{", &[]),
            (
                r#"Write {"name": "add", "parameters": {}}."#,
                "",
                r#"Write {"name": "add", "parameters": {}}."#,
                &[],
            ),
            (r#"{"name": "add", "parameters": {}} ; done"#, "", " ; done", &["add {}"]),
        ],
    );
}

#[test]
fn deepseek_writes_sections() {
    let v3 = "Let me.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>mcp__git-log\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
    let v31 = "Let me.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>mcp__git-log<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
    for grammar in ["deepseek_v3", "deepseek_v31", "deepseek_r1"] {
        for text in [v3, v31] {
            check(grammar, &[(text, "", "Let me.", &[r#"add {"a": 1}"#, "mcp__git-log {}"])]);
        }
    }
    check("deepseek_r1", &[("<think>\nHm.\n</think>\n\nYes.", "Hm.", "Yes.", &[])]);
    check("deepseek_v3", &[("Use <think>.", "", "Use <think>.", &[])]);
}

#[test]
fn kimi_writes_ids_and_json() {
    check(
        "kimi_k2",
        &[(
            "<think>Hm.</think>OK.<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_call_begin|>functions.mcp__git-log:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            "Hm.",
            "OK.",
            &[r#"add {"a": 1}"#, "mcp__git-log {}"],
        )],
    );
}

#[test]
fn mistral_writes_lists_or_names() {
    check(
        "mistral",
        &[
            (
                r#"[TOOL_CALLS] [{"name": "add", "arguments": {"code": "]"}}, {"name": "mcp__git-log", "arguments": {}}]"#,
                "",
                "",
                &[r#"add {"code": "]"}"#, "mcp__git-log {}"],
            ),
            (
                r#"Hm. [TOOL_CALLS]add[CALL_ID]abcdefghi[ARGS]{"a": 1}[TOOL_CALLS]mcp__git-log{}"#,
                "",
                "Hm.",
                &[r#"add {"a": 1}"#, "mcp__git-log {}"],
            ),
            ("[THINK]Hm.[/THINK]Yes [1].", "Hm.", "Yes [1].", &[]),
        ],
    );
}

#[test]
fn harmony_writes_messages_on_channels() {
    check(
        "harmony",
        &[
            (
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
                "Hm.",
                "Yes.",
                &[],
            ),
            (
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Let me.<|end|><|start|>assistant<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}<|call|>",
                "Hm.",
                "Let me.",
                &[r#"add {"a": 1}"#],
            ),
            // The mark that ends the answer is left out.
            (" to=functions.add<|channel|>commentary json<|message|>{\"a\":1}", "", "", &[r#"add {"a":1}"#]),
            (
                "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>analysis<|message|>Two, cut",
                "One.\nTwo, cut",
                "",
                &[],
            ),
            (
                "<|channel|>commentary<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>Two.",
                "",
                "One.\nTwo.",
                &[],
            ),
            ("No marks at all.", "", "No marks at all.", &[]),
        ],
    );
    let prompt_end = "<|start|>assistant<|channel|>analysis<|message|>";
    check_asked(Asked { prompt_end, ..asked("harmony") }, &[("Hm.<|end|>", "Hm.", "", &[])]);
}

#[test]
fn without_tools_nothing_is_a_call() {
    for (grammar, text) in [
        ("qwen", "<tool_call>{\"name\":\"add\"}</tool_call>"),
        ("llama3", r#"{"name": "add", "parameters": {}}"#),
        ("llama3", r#"<|python_tag|>{"name": "add", "parameters": {}}"#),
        ("mistral", "[TOOL_CALLS]add{}"),
        ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>"),
        ("none", "<think>a</think><tool_call>"),
    ] {
        check_asked(Asked { tools: false, ..asked(grammar) }, &[(text, "", text, &[])]);
    }
    let text = " to=functions.add<|channel|>commentary<|message|>{}";
    check_asked(Asked { tools: false, ..asked("harmony") }, &[(text, "", text, &[])]);
}
