//! Which file wins, and which template is chosen.

use rollyard_core::tokens::config::{ModelConfig, ModelFiles};
use rollyard_core::tokens::template::{Message, Render};

fn parse(config: &str) -> ModelConfig {
    ModelConfig::parse(ModelFiles { tokenizer_config: Some(config.as_bytes()), ..ModelFiles::default() })
        .unwrap()
}

fn rendered(config: &ModelConfig, name: Option<&str>, tools: bool) -> String {
    let messages = Message::list_from_str(r#"[{"role":"user","content":"hi"}]"#).unwrap();
    config.template(name, tools).unwrap().render(&messages, &Render::default()).unwrap().text
}

#[test]
fn tokens_are_strings_or_objects_and_reach_the_template() {
    let config = parse(
        r#"{"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null,
            "image_token": "<img>", "add_bos_token": true, "model_max_length": 4096,
            "additional_special_tokens": ["<a>", {"content": "<b>"}],
            "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ image_token }}"}"#,
    );
    assert_eq!(rendered(&config, None, false), "<s></s><img>");
    assert_eq!(config.special.get("pad_token"), None);
    assert_eq!(config.special.extra, ["<a>", "<b>"]);
    assert_eq!((config.model_max_length, config.add_bos_token), (Some(4096), Some(true)));
}

#[test]
fn the_old_map_of_special_tokens_counts_only_without_added_tokens() {
    for (config, expect) in
        [(r#"{"eos_token": "new", "added_tokens_decoder": {}}"#, "new"), (r#"{"eos_token": "new"}"#, "old")]
    {
        let files = ModelFiles {
            tokenizer_config: Some(config.as_bytes()),
            special_tokens_map: Some(br#"{"eos_token": {"content": "old"}}"#),
            ..ModelFiles::default()
        };
        assert_eq!(ModelConfig::parse(files).unwrap().special.get("eos_token"), Some(expect));
    }
}

#[test]
fn template_files_win_over_the_configuration() {
    let more = [("rag".to_owned(), "documents".to_owned())];
    let files = ModelFiles {
        tokenizer_config: Some(br#"{"chat_template": "configured"}"#),
        chat_template: Some("file"),
        additional_templates: &more,
        ..ModelFiles::default()
    };
    let config = ModelConfig::parse(files).unwrap();
    assert_eq!(rendered(&config, None, true), "file");
    assert_eq!(rendered(&config, Some("rag"), false), "documents");
}

#[test]
fn tools_choose_the_template_for_tools() {
    let config = parse(
        r#"{"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]}"#,
    );
    assert_eq!(rendered(&config, None, false), "plain");
    assert_eq!(rendered(&config, None, true), "tools");
    let error = config.template(Some("rag"), false).unwrap_err().to_string();
    assert!(error.contains("no chat template called \"rag\"; it has default, tool_use"), "{error}");
}

#[test]
fn a_model_without_a_template_says_where_it_looked() {
    let error = parse("{}").template(None, false).unwrap_err().to_string();
    assert!(error.contains("chat_template.jinja") && error.contains("tokenizer_config.json"), "{error}");
    let none = parse(r#"{"chat_template": [{"name": "a", "template": ""}]}"#);
    assert!(none.template(None, false).unwrap_err().to_string().contains("name one of a"));
}

#[test]
fn a_bad_file_is_named() {
    for (config, expect) in [
        ("[]", "tokenizer_config.json is not a JSON object"),
        (r#"{"eos_token": 7}"#, "eos_token in tokenizer_config.json is 7"),
        (r#"{"chat_template": 7}"#, "chat_template in tokenizer_config.json is neither"),
        (r#"{"chat_template": "{% if %}"}"#, "syntax error in line 1"),
    ] {
        let files = ModelFiles { tokenizer_config: Some(config.as_bytes()), ..ModelFiles::default() };
        let error = ModelConfig::parse(files).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}
