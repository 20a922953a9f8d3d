//! Which reward is meant by a text, as on a command line.

use std::sync::Arc;

use super::{CommandReward, ExactReward, HttpReward, HttpRewardConfig, MathsReward, NoReward, SharedReward};
use crate::command::Program;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewardSpec {
    Maths,
    Exact,
    None,
    /// A line for the shell.
    Command(String),
    Http(String),
    /// `module.function`: whoever hosts Python takes it from here.
    Python(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewardSpecError {
    #[error(
        "no reward is called {0:?}; there are math, exact, none, cmd:COMMAND, http://…, https://… and \
         module.function for a Python function"
    )]
    Unknown(String),
    #[error("cmd: has no command behind it; write cmd:COMMAND, for example cmd:./grade.py")]
    NoCommand,
    #[error("{0}")]
    Http(String),
    #[error("{0} is a Python function, which needs a host for Python")]
    NeedsPython(String),
}

impl RewardSpec {
    pub fn parse(spec: &str) -> Result<Self, RewardSpecError> {
        let spec = spec.trim();
        match spec {
            "math" | "maths" => return Ok(Self::Maths),
            "exact" => return Ok(Self::Exact),
            "none" => return Ok(Self::None),
            _ => {}
        }
        if let Some(line) = spec.strip_prefix("cmd:") {
            let line = line.trim();
            let command = (!line.is_empty()).then(|| Self::Command(line.to_owned()));
            return command.ok_or(RewardSpecError::NoCommand);
        }
        if spec.starts_with("http://") || spec.starts_with("https://") {
            return Ok(Self::Http(spec.to_owned()));
        }
        match is_python_path(spec) {
            true => Ok(Self::Python(spec.to_owned())),
            false => Err(RewardSpecError::Unknown(spec.to_owned())),
        }
    }

    /// The reward itself, where no Python is needed.
    pub fn build(&self) -> Result<SharedReward, RewardSpecError> {
        Ok(match self {
            Self::Maths => Arc::new(MathsReward::default()),
            Self::Exact => Arc::new(ExactReward),
            Self::None => Arc::new(NoReward),
            Self::Command(line) => Arc::new(CommandReward::new(line, Program::shell(line))),
            Self::Http(url) => {
                let reward = HttpReward::new(url, HttpRewardConfig::default());
                Arc::new(reward.map_err(RewardSpecError::Http)?)
            }
            Self::Python(path) => return Err(RewardSpecError::NeedsPython(path.clone())),
        })
    }
}

/// The reward that a text names.
pub fn named(spec: &str) -> Result<SharedReward, RewardSpecError> {
    RewardSpec::parse(spec)?.build()
}

/// At least two names with dots, or a colon before the last, between them.
fn is_python_path(spec: &str) -> bool {
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_alphabetic() || c == '_';
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_numeric())
    };
    let names: Vec<&str> = spec.split(['.', ':']).collect();
    names.len() > 1 && names.into_iter().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Data;
    use crate::reward::tests::score;

    #[test]
    fn a_text_names_a_reward() {
        for (spec, expect) in [
            ("math", RewardSpec::Maths),
            ("exact", RewardSpec::Exact),
            (" none ", RewardSpec::None),
            ("cmd: ./grade.py --fast", RewardSpec::Command("./grade.py --fast".into())),
            ("http://localhost:8000/score", RewardSpec::Http("http://localhost:8000/score".into())),
            ("my.rewards.length", RewardSpec::Python("my.rewards.length".into())),
            ("my.rewards:length", RewardSpec::Python("my.rewards:length".into())),
        ] {
            assert_eq!(RewardSpec::parse(spec), Ok(expect), "{spec}");
        }
    }

    #[test]
    fn an_unknown_reward_lists_what_there_is() {
        for (spec, expect) in [
            ("maht", "no reward is called \"maht\"; there are math, exact, none, cmd:COMMAND"),
            ("", "no reward is called \"\""),
            ("./grade.py", "no reward is called"),
            ("cmd:", "cmd: has no command behind it"),
            ("http://", "not a URL"),
            ("my.reward", "needs a host for Python"),
        ] {
            let error = named(spec).unwrap_err().to_string();
            assert!(error.contains(expect), "{spec}: {error}");
        }
    }

    #[test]
    fn a_named_reward_scores() {
        let data = Data::parse(r#"{"answer": "0.5"}"#).unwrap();
        for (spec, completion, expect) in [
            ("math", r"\boxed{1/2}", 1.0),
            ("exact", " 0.5\n", 1.0),
            ("exact", "1/2", 0.0),
            ("none", "0.5", 0.0),
            ("cmd:echo 0.75", "", 0.75),
        ] {
            assert_eq!(score(&*named(spec).unwrap(), &data, completion), Ok(expect), "{spec}");
        }
    }
}
