//! Reads the profiles of `~/.aws/credentials` and `~/.aws/config`.

use super::surroundings::{Surroundings, read};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One profile: what both files say of it, the file of credentials first.
#[derive(Clone, Default)]
pub(super) struct Profile {
    pub(super) name: String,
    credentials: Section,
    config: Section,
    /// The section `[sso-session …]` that the profile names.
    pub(super) sso_session: Section,
}

type Section = BTreeMap<String, String>;

// Sections hold secrets.
impl std::fmt::Debug for Profile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Profile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Profile {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.credentials.get(name).or_else(|| self.config.get(name));
        value.map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Which file has the keys.
    pub(super) fn keys_from(&self) -> &'static str {
        if self.credentials.contains_key("aws_access_key_id") {
            "~/.aws/credentials"
        } else {
            "~/.aws/config"
        }
    }
}

/// The profile that `AWS_PROFILE` names, or else `default`; or what was lacking, as "where (what)".
pub(super) fn find(around: &Surroundings) -> Result<Profile, String> {
    let named = around.setting("AWS_PROFILE").or_else(|| around.setting("AWS_DEFAULT_PROFILE"));
    let name = named.unwrap_or_else(|| "default".to_owned());
    let file = |variable: &str, usual: &str| -> Option<PathBuf> {
        let named = around.setting(variable).map(PathBuf::from);
        named.or_else(|| Some(around.home.as_ref()?.join(".aws").join(usual)))
    };
    let open = |variable: &str, usual: &str| {
        let path = file(variable, usual).ok_or("HOME is not set")?;
        read(&path).map(|text| sections(&text))
    };
    let credentials = open("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config = open("AWS_CONFIG_FILE", "config");
    let lacks = |lack: &Result<BTreeMap<String, Section>, String>| match lack {
        Ok(sections) => format!("no profile `{name}`, only: {}", names(sections)),
        Err(lack) => lack.clone(),
    };
    let (told_credentials, told_config) = (lacks(&credentials), lacks(&config));
    let in_credentials = credentials.ok().and_then(|mut sections| sections.remove(&name));
    let mut of_config = config.unwrap_or_default();
    let in_config = of_config.remove(&format!("profile {name}"));
    // Both ways of writing it are in use for the default profile.
    let in_config = in_config.or_else(|| (name == "default").then(|| of_config.remove("default"))?);
    if in_credentials.is_none() && in_config.is_none() {
        return Err(format!("~/.aws/credentials ({told_credentials}), ~/.aws/config ({told_config})"));
    }
    let config = in_config.unwrap_or_default();
    let session = config.get("sso_session").map(|session| format!("sso-session {session}"));
    let sso_session = session.and_then(|session| of_config.remove(&session)).unwrap_or_default();
    Ok(Profile { name, credentials: in_credentials.unwrap_or_default(), config, sso_session })
}

fn names(sections: &BTreeMap<String, Section>) -> String {
    let names =
        sections.keys().filter(|name| !name.starts_with("sso-session ") && !name.starts_with("services "));
    let names: Vec<_> = names.map(|name| name.strip_prefix("profile ").unwrap_or(name)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Indented lines belong to the setting above them and are none of ours.
fn sections(text: &str) -> BTreeMap<String, Section> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let words: Vec<_> =
                name.0.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
            let name = words.join(" ");
            sections.entry(name.clone()).or_default();
            current = Some(name);
            continue;
        }
        let is_nested = line.starts_with([' ', '\t']);
        let section = current.as_ref().and_then(|name| sections.get_mut(name));
        if let (Some(section), Some((name, value)), false) = (section, trimmed.split_once('='), is_nested) {
            let value = value.split_once(" #").map_or(value, |(value, _)| value);
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_the_tools_of_aws_read_them() {
        let text = "ignored = 1\n[default]\nregion = eu-west-1 # near\ns3 =\n  endpoint_url = nested\n\
                    [profile  \"two words\"]\n; a comment\nRole_Arn=arn:x=y\n[sso-session s]\nsso_region=us-east-1\n";
        let sections = sections(text);
        let cases = [
            ("default", "region", Some("eu-west-1")),
            ("default", "endpoint_url", None),
            ("profile two words", "role_arn", Some("arn:x=y")),
            ("sso-session s", "sso_region", Some("us-east-1")),
        ];
        for (section, name, value) in cases {
            assert_eq!(sections[section].get(name).map(String::as_str), value, "{section} {name}");
        }
    }
}
