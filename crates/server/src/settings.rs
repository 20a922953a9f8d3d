//! What a server is told when it starts. Runs have their own knobs; these are about listening.

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Needed in every request when set; must be set when listening beyond loopback.
    pub token: Option<String>,
    /// Names, besides loopback and the address listened on, that a request may call this server by.
    pub hosts: Vec<String>,
    /// Folders that a path in a request may point into.
    pub roots: Vec<PathBuf>,
    /// Task types that `/start_rollout` knows, besides `math` and `default`.
    pub task_types: Vec<String>,
    /// Longest body of a request, and longest line of a bulk write.
    pub body_bytes_max: usize,
    pub compress_answers: CompressAnswers,
}

/// Whether answers are compressed for clients that accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressAnswers {
    /// Not for clients on this machine: copying is cheaper than packing.
    Remote,
    Always,
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            hosts: Vec::new(),
            roots: Vec::new(),
            task_types: Vec::new(),
            body_bytes_max: 64 << 20,
            compress_answers: CompressAnswers::Remote,
        }
    }
}
