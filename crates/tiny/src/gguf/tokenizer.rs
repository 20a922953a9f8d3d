//! The tokenizer in a file, as the files that every other part reads tokenizers from.
//!
//! A GGUF file has the tokens, their kinds and the merges, and of how text is cut before merging only a name that
//! llama.cpp gave it. Each name here stands for what the model's own `tokenizer.json` says; one that is not here is
//! refused, since a text that is cut otherwise is another text to the model.

use rollyard_core::tokens::{ModelFiles, Tokenizer};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

use super::error::Fault;
use super::metadata::Metadata;

const TOKENS: &str = "tokenizer.ggml.tokens";
const KINDS: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const PRE: &str = "tokenizer.ggml.pre";

/// Special tokens by the name that templates know them under.
const NAMED: [(&str, &str); 4] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
];

pub(super) fn tokenizer(metadata: &Metadata) -> Result<Tokenizer, Fault> {
    let model = metadata.text("tokenizer.ggml.model")?;
    if model != "gpt2" {
        return Err(unfit("tokenizer.ggml.model", model, "\"gpt2\", the BPE over bytes"));
    }
    let config = config(metadata)?.to_string();
    let files = ModelFiles { tokenizer_config: Some(config.as_bytes()), ..ModelFiles::default() };
    Ok(Tokenizer::new(tokenizer_json(metadata)?.to_string().as_bytes(), files)?)
}

/// As `tokenizer.json` says it.
fn tokenizer_json(metadata: &Metadata) -> Result<Value, Fault> {
    let tokens = metadata.texts(TOKENS)?;
    let cut = Cut::named(metadata.text(PRE)?)?;
    let mut vocabulary = Map::new();
    for (id, token) in tokens.iter().enumerate() {
        if let Some(other) = vocabulary.insert((*token).to_owned(), json!(id)) {
            return Err(unfit(TOKENS, token, &format!("there once, and is {other} and {id}")));
        }
    }
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens(metadata, &tokens)?,
        "normalizer": cut.normalizer(),
        "pre_tokenizer": cut.pre_tokenizer(),
        "post_processor": frame(metadata, &tokens)?,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": cut.ignores_merges(), "vocab": vocabulary, "merges": merges(metadata, &tokens)?},
    }))
}

/// As `tokenizer_config.json` says it.
fn config(metadata: &Metadata) -> Result<Value, Fault> {
    let tokens = metadata.texts(TOKENS)?;
    let mut config = Map::new();
    config.insert("clean_up_tokenization_spaces".to_owned(), json!(false));
    for (name, key) in NAMED {
        if let Some(id) = metadata.maybe_id(key)? {
            config.insert(name.to_owned(), json!(token_of(key, id, &tokens)?));
        }
    }
    if let Some(template) = metadata.maybe_text("tokenizer.chat_template")? {
        config.insert("chat_template".to_owned(), json!(template));
    }
    Ok(Value::Object(config))
}

/// Tokens that are found as a whole: marks of the template, which no reader is shown, and phrases of the users.
fn added_tokens(metadata: &Metadata, tokens: &[&str]) -> Result<Vec<Value>, Fault> {
    let kinds = metadata.maybe_wholes(KINDS)?.ok_or_else(|| Fault::Missing { key: KINDS.to_owned() })?;
    if kinds.len() != tokens.len() {
        return Err(unfit(KINDS, &format!("a list of {}", kinds.len()), &format!("one of {}", tokens.len())));
    }
    let mut added = Vec::new();
    for (id, (token, kind)) in tokens.iter().zip(kinds).enumerate() {
        let special = match kind {
            // As everything else, and those that no text has.
            1 | 5 => continue,
            2 | 3 => true,
            4 => false,
            _ => return Err(unfit(KINDS, &format!("{kind} for {token:?}"), "between 1 and 5")),
        };
        added
            .push(json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special}));
    }
    Ok(added)
}

fn merges(metadata: &Metadata, tokens: &[&str]) -> Result<Vec<Value>, Fault> {
    let known: HashSet<&str> = tokens.iter().copied().collect();
    let pair = |merge: &str| {
        let pair = merge.split_once(' ').filter(|(left, right)| {
            known.contains(left) && known.contains(right) && known.contains(format!("{left}{right}").as_str())
        });
        let (left, right) = pair.ok_or_else(|| unfit(MERGES, merge, "two tokens that make a third"))?;
        Ok(json!([left, right]))
    };
    metadata.texts(MERGES)?.into_iter().map(pair).collect()
}

/// What is set around a text that is no conversation.
fn frame(metadata: &Metadata, tokens: &[&str]) -> Result<Value, Fault> {
    let mut specials = Map::new();
    let mut set = |flag: &str, key: &str| -> Result<Vec<Value>, Fault> {
        let Some(id) = metadata.maybe_id(key)?.filter(|_| metadata.flag(flag).is_ok_and(|flag| flag)) else {
            return Ok(Vec::new());
        };
        let token = token_of(key, id, tokens)?;
        specials.insert(token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]}));
        Ok(vec![json!({"SpecialToken": {"id": token, "type_id": 0}})])
    };
    let before = set("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id")?;
    let after = set("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id")?;
    if before.is_empty() && after.is_empty() {
        return Ok(Value::Null);
    }
    let text = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
    let single = [before.as_slice(), &[text("A")], after.as_slice()].concat();
    let pair = [before.as_slice(), &[text("A"), text("B")], after.as_slice()].concat();
    Ok(json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials}))
}

fn token_of<'a>(key: &str, id: usize, tokens: &[&'a str]) -> Result<&'a str, Fault> {
    let token = tokens.get(id).copied();
    token.ok_or_else(|| unfit(key, &id.to_string(), &format!("one of {} tokens", tokens.len())))
}

fn unfit(key: &str, found: &str, want: &str) -> Fault {
    Fault::Unfit { key: key.to_owned(), found: format!("{found:?}"), want: want.to_owned() }
}

/// How a text is cut into what BPE may not merge across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Gpt2,
    /// Every digit by itself, then as GPT-2.
    Smollm,
    Llama3,
    Qwen2,
    /// What llama.cpp takes for a tokenizer that it does not know.
    Default,
}

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEFAULT: [&str; 4] = [
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    "[0-9][0-9][0-9]",
];

impl Cut {
    fn named(name: &str) -> Result<Self, Fault> {
        match name {
            "gpt-2" | "gpt2" => Ok(Self::Gpt2),
            "smollm" => Ok(Self::Smollm),
            "llama-bpe" | "llama3" | "llama-v3" => Ok(Self::Llama3),
            "qwen2" => Ok(Self::Qwen2),
            "default" => Ok(Self::Default),
            other => {
                let known = "\"smollm\", \"gpt-2\", \"llama-bpe\", \"qwen2\" or \"default\"";
                Err(unfit(PRE, other, known))
            }
        }
    }

    fn normalizer(self) -> Value {
        if self == Self::Qwen2 { json!({"type": "NFC"}) } else { Value::Null }
    }

    fn ignores_merges(self) -> bool {
        self == Self::Llama3
    }

    fn pre_tokenizer(self) -> Value {
        let bytes = |cuts: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": cuts});
        let split = |regex: &&str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
        let splits = |regexes: &[&str]| regexes.iter().map(split).chain([bytes(false)]).collect();
        let steps: Vec<Value> = match self {
            Self::Gpt2 => return bytes(true),
            Self::Smollm => vec![json!({"type": "Digits", "individual_digits": true}), bytes(true)],
            Self::Llama3 => splits(&[LLAMA3]),
            Self::Qwen2 => splits(&[QWEN2]),
            Self::Default => splits(&DEFAULT),
        };
        json!({"type": "Sequence", "pretokenizers": steps})
    }
}
