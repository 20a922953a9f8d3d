//! The model's own tokenizer and chat template, as the files that every other part reads them from.
//!
//! A token is a character of ASCII, a mark of the template, or one of the few phrases that tool calls are made of.

use rollyard_core::tokens::{ModelFiles, Tokenizer, TokenizerError};
use serde_json::{Value, json};
use std::path::Path;
use std::{fs, io};

/// Begins what a user, a model, a tool or nobody in particular says.
const ROLES: [&str; 4] = ["<|user|>", "<|assistant|>", "<|tool|>", "<|system|>"];
/// Ends what somebody says; a model that has said it is done.
pub const END: &str = "<|end|>";
/// Stands for every character that has no token.
const UNKNOWN: &str = "<|unknown|>";
/// What calls are made of, each one token: a small model need not learn to spell JSON.
const PHRASES: [&str; 5] =
    ["<tool_call>", "</tool_call>", "{\"name\": \"times\", \"arguments\": {\"a\": ", ", \"b\": ", "}}"];

/// Whoever speaks is named by one token, and [`END`] closes what is said.
pub const CHAT_TEMPLATE: &str = "{%- for message in messages -%}\
{{- '<|' + message['role'] + '|>' -}}\
{%- if message['content'] -%}{{- message['content'] -}}{%- endif -%}\
{%- for call in message['tool_calls'] or [] -%}\
{{- '<tool_call>{\"name\": \"' + call['function']['name'] + '\", \"arguments\": ' -}}\
{%- if call['function']['arguments'] is string -%}{{- call['function']['arguments'] -}}\
{%- else -%}{{- call['function']['arguments'] | tojson -}}{%- endif -%}\
{{- '}</tool_call>' -}}\
{%- endfor -%}\
{{- '<|end|>' -}}\
{%- endfor -%}\
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}";

/// All tokens in the order of their ids.
fn vocabulary() -> Vec<String> {
    let marks = [UNKNOWN, END].into_iter().chain(ROLES).chain(PHRASES).map(str::to_owned);
    let characters = std::iter::once('\n').chain(' '..='~').map(String::from);
    marks.chain(characters).collect()
}

/// How many tokens there are.
pub fn vocabulary_len() -> usize {
    vocabulary().len()
}

/// As `tokenizer.json` says it.
pub fn tokenizer_json() -> Value {
    let vocabulary = vocabulary();
    let added: Vec<Value> = vocabulary
        .iter()
        .enumerate()
        .filter(|(_, token)| token.len() > 1)
        .map(|(id, token)| {
            // A phrase is part of what is said; a mark is not.
            let special = !PHRASES.contains(&token.as_str());
            json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special})
        })
        .collect();
    let ids: serde_json::Map<String, Value> =
        vocabulary.into_iter().enumerate().map(|(id, token)| (token, json!(id))).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "dropout": null, "unk_token": UNKNOWN, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": ids, "merges": []},
    })
}

/// As `tokenizer_config.json` says it.
pub fn tokenizer_config() -> Value {
    json!({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "unk_token": UNKNOWN,
        "clean_up_tokenization_spaces": false, "chat_template": CHAT_TEMPLATE})
}

pub fn tokenizer() -> Result<Tokenizer, TokenizerError> {
    let config = tokenizer_config().to_string();
    let files = ModelFiles { tokenizer_config: Some(config.as_bytes()), ..ModelFiles::default() };
    Tokenizer::new(tokenizer_json().to_string().as_bytes(), files)
}

/// Puts the files where `--model` and `--tokenizer` look for them.
pub fn write(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("tokenizer.json"), serde_json::to_vec_pretty(&tokenizer_json())?)?;
    fs::write(dir.join("tokenizer_config.json"), serde_json::to_vec_pretty(&tokenizer_config())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<u32> {
        tokenizer().unwrap().encoder().encode(text).unwrap()
    }

    #[test]
    fn a_character_is_a_token_and_comes_back() {
        let text = "<|user|>12+34 is?\n<|end|><|assistant|>46<|end|>";
        let ids = ids(text);
        assert_eq!(ids.len(), 16);
        assert_eq!(tokenizer().unwrap().encoder().decode(&ids, false).unwrap(), text);
        assert_eq!(tokenizer().unwrap().encoder().decode(&ids, true).unwrap(), "12+34 is?\n46");
    }

    #[test]
    fn a_call_is_spelt_in_few_tokens_and_stays_in_the_text() {
        let call = "<tool_call>{\"name\": \"times\", \"arguments\": {\"a\": 7, \"b\": 8}}</tool_call>";
        let ids = ids(call);
        assert_eq!(ids.len(), 7);
        assert_eq!(tokenizer().unwrap().encoder().decode(&ids, true).unwrap(), call);
    }

    #[test]
    fn what_has_no_token_is_unknown() {
        assert_eq!(ids("ü"), [0]);
        assert!(ids("{\"name\"").iter().all(|id| *id > 0));
    }
}
