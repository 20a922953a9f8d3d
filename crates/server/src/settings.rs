//! What a server is told when it starts. Runs have their own knobs; these are about listening.

use rollyard_engine::generator::folder::IMPORT_WITHIN;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Needed in every request when set; must be set when listening beyond loopback.
    pub token: Option<String>,
    /// Names, besides loopback and the address listened on, that a request may call this server by.
    pub hosts: Vec<String>,
    /// Folders that a path in a request may point into.
    pub roots: Vec<PathBuf>,
    /// Task types whose rollouts come from outside, besides `default`.
    pub task_types: Vec<String>,
    /// The folder of generator files.
    pub generators: Option<PathBuf>,
    /// The interpreter that runs them; `ROLLYARD_PYTHON`, else `python3`, if left out.
    pub python: Option<PathBuf>,
    /// How often a generator that crashes is started again without having written anything.
    pub generator_restarts: u32,
    /// A generator file that is not imported by then is of no use.
    pub import_within: Duration,
    /// Longest body of a request, and longest line of a bulk write.
    pub body_bytes_max: usize,
    pub compress_answers: CompressAnswers,
}

impl Settings {
    /// Whether a path of a request lies in the folders named at start, wherever links lead.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        let roots = self.roots.iter().filter_map(|root| root.canonicalize().ok());
        path.canonicalize().is_ok_and(|real| roots.into_iter().any(|root| real.starts_with(root)))
    }
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
            generators: None,
            python: None,
            generator_restarts: 5,
            import_within: IMPORT_WITHIN,
            body_bytes_max: 64 << 20,
            compress_answers: CompressAnswers::Remote,
        }
    }
}
