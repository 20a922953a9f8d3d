//! How far a refresh has come.

/// How far indexing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files_done: u64,
    pub files: u64,
    pub bytes_done: u64,
    pub bytes: u64,
    /// In the catalog, with those of earlier times.
    pub rows: u64,
    pub bad_rows: u64,
    /// Another process is indexing the same place, and is waited for.
    pub waiting: bool,
}
