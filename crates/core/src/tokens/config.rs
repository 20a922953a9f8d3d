//! What a model's files say about its special tokens and chat templates.
//!
//! The facts lie in several files, some old, some new, and the order in which they win is that of transformers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::template::{ChatTemplate, TemplateError};

/// The files that matter, as bytes: the core opens none. All may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelFiles<'a> {
    pub tokenizer_config: Option<&'a [u8]>,
    pub special_tokens_map: Option<&'a [u8]>,
    /// `chat_template.jinja`.
    pub chat_template: Option<&'a str>,
    /// Name and text of `additional_chat_templates/NAME.jinja`.
    pub additional_templates: &'a [(String, String)],
    /// `chat_template.json` of older processors; read when nothing else has a template.
    pub chat_template_json: Option<&'a [u8]>,
}

/// Special tokens by the name of the variable that templates know them under, and those without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    named: BTreeMap<String, String>,
    pub extra: Vec<String>,
}

impl SpecialTokens {
    /// For example `get("eos_token")`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named.get(name).map(String::as_str)
    }

    pub fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(name, token)| (name.as_str(), token.as_str()))
    }
}

#[derive(Debug)]
pub struct ModelConfig {
    pub special: SpecialTokens,
    templates: BTreeMap<String, ChatTemplate>,
    pub model_max_length: Option<u64>,
    /// As written in the configuration; a fast tokenizer goes by its own post-processor.
    pub add_bos_token: Option<bool>,
    pub add_eos_token: Option<bool>,
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{file} is not a JSON object: {detail}; download it again or correct it")]
    NotAnObject { file: &'static str, detail: String },
    #[error("{field} in {file} is {found}, neither a string nor a token object with a content; correct it")]
    BadToken { file: &'static str, field: String, found: String },
    #[error("chat_template in {file} is neither a string nor a list of {{name, template}}; correct it")]
    BadTemplate { file: &'static str },
    #[error(
        "the model has no chat template: looked for chat_template.jinja, additional_chat_templates/*.jinja, \
         chat_template in tokenizer_config.json and chat_template.json; \
         add one of them to the folder, or pass a template"
    )]
    NoTemplate,
    #[error("the model has no chat template called {name:?}; it has {known}")]
    UnknownTemplate { name: String, known: String },
    #[error("the model has several chat templates and none is the default; name one of {known}")]
    NoDefault { known: String },
    #[error(transparent)]
    Template(#[from] TemplateError),
}

const NAMED: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
const CONFIG: &str = "tokenizer_config.json";
const SPECIAL_MAP: &str = "special_tokens_map.json";
const OLD_TEMPLATE: &str = "chat_template.json";

impl ModelConfig {
    pub fn parse(files: ModelFiles) -> Result<Self, ConfigError> {
        let config = object(CONFIG, files.tokenizer_config)?;
        let special = special_tokens(&config, files.special_tokens_map)?;
        let mut templates = BTreeMap::new();
        for (name, source) in template_sources(&files, &config)? {
            let template = ChatTemplate::new(&name, &source, special.named())?;
            templates.insert(name, template);
        }
        let flag = |name: &str| config.get(name).and_then(Value::as_bool);
        Ok(Self {
            templates,
            // "No limit" is written as a float of 1e30.
            model_max_length: config.get("model_max_length").and_then(Value::as_u64),
            add_bos_token: flag("add_bos_token"),
            add_eos_token: flag("add_eos_token"),
            special,
        })
    }

    /// The named template; without a name the one for tools if there are any, or else the default.
    pub fn template(&self, name: Option<&str>, tools: bool) -> Result<&ChatTemplate, ConfigError> {
        if self.templates.is_empty() {
            return Err(ConfigError::NoTemplate);
        }
        let known = || self.template_names().collect::<Vec<_>>().join(", ");
        if let Some(name) = name {
            let unknown = || ConfigError::UnknownTemplate { name: name.to_owned(), known: known() };
            return self.templates.get(name).ok_or_else(unknown);
        }
        let for_tools = self.templates.get("tool_use").filter(|_| tools);
        for_tools
            .or_else(|| self.templates.get("default"))
            .ok_or_else(|| ConfigError::NoDefault { known: known() })
    }

    pub fn template_names(&self) -> impl Iterator<Item = &str> {
        self.templates.keys().map(String::as_str)
    }
}

fn object(file: &'static str, bytes: Option<&[u8]>) -> Result<Map<String, Value>, ConfigError> {
    let Some(bytes) = bytes else { return Ok(Map::new()) };
    let not_object = |detail: String| ConfigError::NotAnObject { file, detail };
    match serde_json::from_slice(bytes).map_err(|error| not_object(error.to_string()))? {
        Value::Object(map) => Ok(map),
        other => Err(not_object(other.to_string().chars().take(60).collect())),
    }
}

fn token(file: &'static str, field: &str, value: &Value) -> Result<Option<String>, ConfigError> {
    let content = match value {
        Value::Null => return Ok(None),
        Value::Object(added) => added.get("content"),
        other => Some(other),
    };
    let bad = || ConfigError::BadToken { file, field: field.to_owned(), found: value.to_string() };
    content.and_then(Value::as_str).map(|text| Some(text.to_owned())).ok_or_else(bad)
}

fn special_tokens(config: &Map<String, Value>, map: Option<&[u8]>) -> Result<SpecialTokens, ConfigError> {
    let mut special = SpecialTokens::default();
    take_tokens(&mut special, CONFIG, config)?;
    // The map is of old: transformers reads it only where the configuration lists no added tokens.
    if !config.contains_key("added_tokens_decoder") {
        take_tokens(&mut special, SPECIAL_MAP, &object(SPECIAL_MAP, map)?)?;
    }
    Ok(special)
}

fn take_tokens(
    special: &mut SpecialTokens,
    file: &'static str,
    fields: &Map<String, Value>,
) -> Result<(), ConfigError> {
    for (field, value) in fields {
        let extra = field == "extra_special_tokens" || field == "additional_special_tokens";
        match value {
            Value::Object(named) if extra || field == "model_specific_special_tokens" => {
                for (name, value) in named {
                    let found = token(file, name, value)?;
                    special.named.extend(found.map(|found| (name.clone(), found)));
                }
            }
            Value::Array(list) if extra => {
                for value in list {
                    let found = token(file, field, value)?.filter(|found| !special.extra.contains(found));
                    special.extra.extend(found);
                }
            }
            _ if NAMED.contains(&field.as_str()) => match token(file, field, value)? {
                Some(found) => drop(special.named.insert(field.clone(), found)),
                None => drop(special.named.remove(field)),
            },
            // Tokens of the model's own, such as `image_token`; flags such as `add_bos_token` are no strings.
            Value::String(_) | Value::Object(_) if field.ends_with("_token") => {
                let found = token(file, field, value)?;
                special.named.extend(found.map(|found| (field.clone(), found)));
            }
            _ => {}
        }
    }
    Ok(())
}

fn template_sources(
    files: &ModelFiles,
    config: &Map<String, Value>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let default = files.chat_template.map(|source| ("default".to_owned(), source.to_owned()));
    let in_files: Vec<_> = default.into_iter().chain(files.additional_templates.iter().cloned()).collect();
    if !in_files.is_empty() {
        return Ok(in_files);
    }
    let in_config = templates_in(CONFIG, config)?;
    if !in_config.is_empty() {
        return Ok(in_config);
    }
    templates_in(OLD_TEMPLATE, &object(OLD_TEMPLATE, files.chat_template_json)?)
}

fn templates_in(file: &'static str, map: &Map<String, Value>) -> Result<Vec<(String, String)>, ConfigError> {
    let bad = || ConfigError::BadTemplate { file };
    match map.get("chat_template") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(source)) => Ok(vec![("default".to_owned(), source.clone())]),
        Some(Value::Array(list)) => {
            let text = |entry: &Value, field: &str| entry.get(field)?.as_str().map(str::to_owned);
            list.iter()
                .map(|entry| text(entry, "name").zip(text(entry, "template")).ok_or_else(bad))
                .collect()
        }
        Some(Value::Object(map)) => {
            let entry = |(name, source): (&String, &Value)| Some((name.clone(), source.as_str()?.to_owned()));
            map.iter().map(|pair| entry(pair).ok_or_else(bad)).collect()
        }
        Some(_) => Err(bad()),
    }
}
