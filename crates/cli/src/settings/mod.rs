//! What the server is told, put together once.
//!
//! A setting can be given as a flag, in the environment, or in `rollyard.toml`; the first of these that has it
//! wins, and a default stands behind them. [`table`] lists the settings, [`sources`] reads the three places,
//! [`resolve`] picks, [`show`] prints what was picked and from where.

mod cluster;
mod gateway;
#[cfg(test)]
mod page;
mod resolve;
mod show;
mod sources;
mod table;

pub(crate) use cluster::ClusterServing;
pub(crate) use gateway::GatewayServing;
pub(crate) use resolve::{Resolved, Serving};
pub(crate) use show::show;
pub(crate) use sources::Sources;
pub(crate) use table::{Section, settings};

use std::path::PathBuf;

/// A setting that cannot be used. The user's mistake, so the program ends with the code for wrong usage.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("cannot read the settings: {cause}: {}", .path.display())]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("not TOML: {why}: {}", .path.display())]
    NotToml { path: PathBuf, why: String },
    #[error("unknown section {name:?}; known are [server] and [run]: {}", .path.display())]
    UnknownSection { name: String, path: PathBuf },
    #[error("unknown setting {name:?} in [{section}]; known are: {known}: {}", .path.display())]
    UnknownSetting { name: String, section: Section, known: String, path: PathBuf },
    #[error("{name} = {value} is not {expected} (from {origin})")]
    Invalid { name: String, value: String, expected: String, origin: String },
    #[error("both token and token_file come from {origin}; give one of them")]
    TwoTokens { origin: String },
    #[error("cannot read the token: {cause}: {}", .path.display())]
    TokenFile { path: PathBuf, cause: std::io::Error },
    #[error(
        "listening on {listen} lets other machines in, so it needs a token: give --token-file FILE or --token TOKEN, \
         or listen on 127.0.0.1"
    )]
    NeedsToken { listen: std::net::SocketAddr },
    #[error(
        "archive and log cannot be used together yet: leave out one of them; a run can be archived by copying it to a \
         data folder first (rollyard ledger copy)"
    )]
    ArchiveWithLog,
    #[error(
        "{name} = {value} has no effect without log (from {origin}); give --log nats://HOST:4222 too, or leave it out"
    )]
    NeedsLog { name: String, value: String, origin: String },
    #[error(
        "other nodes cannot reach this one at {listen}: say where they can with --advertise http://HOST:{}",
        .listen.port()
    )]
    NeedsAdvertise { listen: std::net::SocketAddr },
}
