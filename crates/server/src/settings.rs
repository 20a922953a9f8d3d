//! What a server is told when it starts. Runs have their own knobs; these are about listening.

use rollyard_core::tokens::Tokenizer;
use rollyard_engine::generator::folder::IMPORT_WITHIN;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Needed in every request when set; must be set when listening beyond loopback.
    pub token: Option<String>,
    /// Names, besides loopback and the address listened on, that a request may call this server by.
    pub hosts: Vec<String>,
    /// Folders that a path in a request may point into.
    pub roots: Vec<PathBuf>,
    /// Prefixes of buckets, as `s3://bucket/prefix`, that a view may read besides `roots`.
    pub buckets: Vec<String>,
    /// Where the summaries of views are kept; the user's cache folder if left out.
    pub cache: Option<PathBuf>,
    /// Who grades rollouts, if anybody does.
    pub grader: Option<Grader>,
    /// Says what text the tokens of a rollout are, where the rollout does not say it itself.
    pub tokenizer: Option<Arc<Tokenizer>>,
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
    /// A folder with the built page, for whoever works on it; the one in the program if left out.
    pub page: Option<PathBuf>,
}

impl Settings {
    /// Whether a path of a request lies in the folders named at start, wherever links lead.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        let roots = self.roots.iter().filter_map(|root| root.canonicalize().ok());
        path.canonicalize().is_ok_and(|real| roots.into_iter().any(|root| real.starts_with(root)))
    }
}

/// Models that grade rollouts, behind an endpoint that speaks OpenAI's chat completions.
#[derive(Clone, PartialEq, Eq)]
pub struct Grader {
    /// The first is asked unless a request names another of them; `/v1` at the end is not needed.
    pub urls: Vec<String>,
    /// Sent as a bearer token to these URLs, and told to nobody else.
    pub key: Option<String>,
    /// Asked for unless a request names another; the endpoint's first if left out.
    pub model: Option<String>,
    /// Questions under way at the same time.
    pub at_once: usize,
}

impl Grader {
    pub fn of(url: impl Into<String>) -> Self {
        Self { urls: vec![url.into()], key: None, model: None, at_once: 8 }
    }
}

impl fmt::Debug for Grader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys end up in logs through Debug.
        let key = self.key.as_ref().map(|_| "hidden");
        let Self { urls, model, at_once, .. } = self;
        let mut shown = f.debug_struct("Grader");
        shown.field("urls", urls).field("key", &key).field("model", model).field("at_once", at_once).finish()
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
            buckets: Vec::new(),
            cache: None,
            grader: None,
            tokenizer: None,
            task_types: Vec::new(),
            generators: None,
            python: None,
            generator_restarts: 5,
            import_within: IMPORT_WITHIN,
            body_bytes_max: 64 << 20,
            compress_answers: CompressAnswers::Remote,
            page: None,
        }
    }
}
