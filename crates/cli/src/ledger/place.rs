//! Where runs are kept: a data folder, or the streams of NATS servers.

use anyhow::{Result, bail};
use clap::Args;
use rollyard_store::log::jetstream::{Blobs, Connection, Settings};
use std::path::PathBuf;

/// What is said about a yard on NATS, in the words of `rollyard serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogArguments {
    /// Name of the yard on the NATS servers
    #[arg(
        long,
        value_name = "NAME",
        default_value = "rollyard",
        env = "ROLLYARD_LOG_YARD",
        global = true,
        hide_env = true
    )]
    log_yard: String,
    /// File of NATS credentials, as `nsc` makes it; a user or token can also stand in the URL
    #[arg(long, value_name = "FILE", env = "ROLLYARD_LOG_CREDENTIALS", global = true, hide_env = true)]
    log_credentials: Option<PathBuf>,
    /// Who keeps rollouts above 64 kB of a yard on NATS: `jetstream`, or s3://bucket/prefix
    #[arg(
        long,
        value_name = "PLACE",
        default_value = "jetstream",
        env = "ROLLYARD_BLOBS",
        global = true,
        hide_env = true
    )]
    blobs: Blobs,
}

impl LogArguments {
    /// Whether blobs are in a bucket, where the streams of two servers would get into each other's way.
    pub(super) fn has_bucket(&self) -> bool {
        self.blobs != Blobs::JetStream
    }

    pub(super) fn connect(&self, servers: &str, replicas: usize) -> Result<Connection> {
        let settings = Settings {
            credentials: self.log_credentials.clone(),
            yard: self.log_yard.clone(),
            replicas,
            blobs: self.blobs.clone(),
            ..Settings::new(servers)
        };
        Ok(Connection::open(settings)?)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    /// The addresses of servers.
    Servers(String),
}

impl Place {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if !text.contains("://") {
            return Ok(Self::Folder(PathBuf::from(text)));
        }
        if !Settings::are_servers(text) {
            let told = Settings::new(text).servers_told();
            bail!("{told:?} is no place of runs; write a data folder like ./yard-data, or nats://host:4222");
        }
        Ok(Self::Servers(text.to_owned()))
    }

    /// For messages: without passwords.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Folder(path) => path.display().to_string(),
            Self::Servers(servers) => Settings::new(servers).servers_told(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_folders_or_servers() {
        assert_eq!(Place::parse("./yard-data").unwrap(), Place::Folder("./yard-data".into()));
        assert_eq!(Place::parse("nats://a:1,nats://b:2").unwrap().told(), "nats://a:1,nats://b:2");
        assert_eq!(Place::parse("nats://u:secret@a:1").unwrap().told(), "nats://a:1");
        for wrong in ["http://u:secret@a:1", "s3://bucket", "nats://"] {
            let error = Place::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("no place of runs") && !error.contains("secret"), "{error}");
        }
    }
}
