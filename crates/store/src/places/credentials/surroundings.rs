//! What a process knows from outside: variables and a home folder.

use super::dotenv;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// Long enough for a server to restart, short enough to be told that it does not.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// Everything that connections to a store depend on, given by hand so that nothing else has a say.
#[derive(Clone)]
pub struct Surroundings {
    pub vars: BTreeMap<String, String>,
    pub home: Option<PathBuf>,
    /// After that no failed request is tried again.
    pub retry_for: Duration,
}

// Variables hold secrets.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.vars.keys().filter(|name| name.starts_with("AWS_")).collect();
        formatter.debug_struct("Surroundings").field("set", &names).field("home", &self.home).finish()
    }
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let vars: BTreeMap<_, _> = std::env::vars_os().filter_map(text).collect();
        let home = vars.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        Self { vars, home, retry_for: RETRY_FOR }
    }

    /// A variable of the environment, or else of `~/.env`.
    pub(in super::super) fn setting(&self, name: &str) -> Option<String> {
        let own = self.vars.get(name).filter(|value| !value.is_empty());
        own.cloned().or_else(|| self.dotenv().ok()?.remove(name)).filter(|value| !value.is_empty())
    }

    /// All variables, those of the environment before those of `~/.env`.
    pub(in super::super) fn settings(&self) -> BTreeMap<String, String> {
        let mut all = self.dotenv().unwrap_or_default();
        all.extend(self.vars.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// The variables of `~/.env`, or why there are none.
    pub(super) fn dotenv(&self) -> Result<BTreeMap<String, String>, String> {
        let home = self.home.as_ref().ok_or("HOME is not set")?;
        read(&home.join(".env")).map(|text| dotenv::parse(&text))
    }
}

pub(super) fn read(path: &std::path::Path) -> Result<String, String> {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| match error
        .kind()
    {
        ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    })
}
