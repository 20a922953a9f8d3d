//! The three places that settings come from, each read into the same shape: name and value.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::SettingsError;
use super::table::{Section, Setting, settings};

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "rollyard.toml";

/// The variable that names the file.
const FILE_VARIABLE: &str = "ROLLYARD_CONFIG";

/// Variables that begin like settings and are not: other commands read them.
const OTHER_VARIABLES: [&str; 2] = [FILE_VARIABLE, "ROLLYARD_URL"];

pub(crate) type Given = BTreeMap<&'static str, Value>;

/// What was given in each place.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) flags: Given,
    pub(crate) environment: Given,
    pub(crate) file: Given,
    /// The file that was read, if any.
    pub(crate) path: Option<PathBuf>,
    /// Variables that look like settings, but are none.
    pub(crate) strays: Vec<String>,
}

impl Sources {
    /// Reads the environment and the file; the flags were read by whoever calls.
    ///
    /// `config` is the file that must be there; without it, `rollyard.toml` is read where there is one.
    pub(crate) fn read(
        flags: Given,
        config: Option<&Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let mut sources = Self { flags, ..Self::default() };
        let variables: BTreeMap<String, String> =
            variables.into_iter().filter(|(name, _)| name.starts_with("ROLLYARD_")).collect();
        let named = config.map(Path::to_owned).or_else(|| variables.get(FILE_VARIABLE).map(PathBuf::from));
        let all = settings();
        for (variable, text) in variables {
            match all.iter().find(|setting| setting.variable() == variable) {
                Some(setting) => drop(sources.environment.insert(setting.name, in_words(setting, &text))),
                None if OTHER_VARIABLES.contains(&variable.as_str()) => {}
                None => sources.strays.push(variable),
            }
        }
        let path = named.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                sources.file = parse_file(&path, &text, &all)?;
                sources.path = Some(path);
            }
            Err(cause) if named.is_none() && cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => return Err(SettingsError::Unreadable { path, cause }),
        }
        Ok(sources)
    }
}

/// A value as the environment has it: text, and commas between the values of a list.
fn in_words(setting: &Setting, text: &str) -> Value {
    if !setting.is_list() {
        return Value::from(text);
    }
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect()
}

fn parse_file(path: &Path, text: &str, all: &[Setting]) -> Result<Given, SettingsError> {
    let file: toml::Table = text.parse().map_err(|error: toml::de::Error| SettingsError::NotToml {
        path: path.to_owned(),
        why: error.to_string().trim().replace('\n', " "),
    })?;
    let mut given = Given::new();
    for (name, content) in file {
        let (Some(section), toml::Value::Table(content)) = (Section::of(&name), content) else {
            return Err(SettingsError::UnknownSection { name, path: path.to_owned() });
        };
        let known: Vec<&Setting> = all.iter().filter(|setting| setting.section == section).collect();
        for (name, value) in content {
            let Some(setting) = known.iter().find(|setting| setting.name == name) else {
                let known = known.iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ");
                return Err(SettingsError::UnknownSetting { name, section, known, path: path.to_owned() });
            };
            given.insert(setting.name, to_json(value));
        }
    }
    Ok(given)
}

fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => Value::from(number),
        // JSON has no infinity; as a word it gets refused with its name.
        toml::Value::Float(number) if !number.is_finite() => Value::from(number.to_string()),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(truth) => Value::from(truth),
        toml::Value::Array(values) => values.into_iter().map(to_json).collect(),
        toml::Value::String(text) => Value::from(text),
        other @ (toml::Value::Datetime(_) | toml::Value::Table(_)) => Value::from(other.to_string()),
    }
}
