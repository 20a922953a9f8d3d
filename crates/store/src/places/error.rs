//! Why a place could not be read or written, in words that tell what to do next.

/// How many names an error about a missing one shows.
const NAMES_SHOWN: usize = 8;

/// What went wrong, with the place last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The words do not name a place at all, or name one of another kind than was asked for.
    #[error("{why}: {place}")]
    NotAPlace { why: String, place: String },
    #[error("there is nothing under this name; {near}: {place}")]
    NotFound {
        /// What there is instead.
        near: String,
        place: String,
    },
    /// There is such a folder, and nothing in it is of use here.
    #[error("no file here can hold rollouts (.jsonl, .ndjson, .json, .parquet); {near}: {place}")]
    NoRollouts { near: String, place: String },
    /// Outside of what the server was told to show.
    #[error("this is outside of the folders that may be read ({allowed}): {place}")]
    NotAllowed { allowed: String, place: String },
    /// The disk or the store says no to who we are.
    #[error("access is denied: {why}: {place}")]
    Denied { why: String, place: String },
    /// The store gave no answer, or none that could be used, for as long as we were willing to try.
    #[error("cannot reach the store: {why}: {place}")]
    Unreachable { why: String, place: String },
    /// Another file has taken its name since it was opened.
    #[error("the file was replaced while it was read; open it again: {place}")]
    Changed { place: String },
    #[error("cannot {what}: {why}: {place}")]
    Io { what: &'static str, why: String, place: String },
}

impl PlaceError {
    /// A short name that does not change, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAPlace { .. } => "not_a_place",
            Self::NotFound { .. } => "not_found",
            Self::NoRollouts { .. } => "no_rollouts",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Denied { .. } => "denied",
            Self::Unreachable { .. } => "unreachable",
            Self::Changed { .. } => "changed",
            Self::Io { .. } => "io",
        }
    }

    /// Without the place, for those who name it themselves.
    pub(crate) fn reason(&self) -> String {
        let text = self.to_string();
        text.rsplit_once(": ").map_or_else(|| text.clone(), |(reason, _)| reason.to_owned())
    }

    pub(super) fn not_a_place(why: impl Into<String>, place: impl Into<String>) -> Self {
        Self::NotAPlace { why: why.into(), place: place.into() }
    }

    /// What the disk said.
    pub(super) fn disk(what: &'static str, error: &std::io::Error, path: &std::path::Path) -> Self {
        let place = path.display().to_string();
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Self::Denied { why: format!("cannot {what}; ask its owner, or run as a user who may"), place }
            }
            _ => Self::Io { what, why: error.to_string(), place },
        }
    }
}

/// What a folder has, for an error about a name that it does not have.
pub(super) fn in_words(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    names.truncate(NAMES_SHOWN);
    match (names.is_empty(), more) {
        (true, _) => "the folder is empty".to_owned(),
        (false, 0) => format!("in the folder there are: {}", names.join(", ")),
        (false, more) => format!("in the folder there are: {} and {more} more", names.join(", ")),
    }
}
