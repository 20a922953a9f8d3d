//! What can be wrong with a question.

use crate::catalog::CatalogError;
use std::ops::Range;

/// A mistake in what the user typed, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    pub message: String,
    /// Bytes of the text it is about.
    pub at: Range<usize>,
    /// What could stand there instead: fields, operators.
    pub expected: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Mistake(#[from] Mistake),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("{0}")]
    Sql(String),
    #[error("cancelled")]
    Cancelled,
}

impl From<rusqlite::Error> for QueryError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) {
            return Self::Cancelled;
        }
        Self::Sql(error.to_string())
    }
}
