//! The package's exceptions, as Rust raises them.
//!
//! They are Python classes (`rollyard/errors.py`): each is also the builtin that a careful program would
//! catch, they carry fields, and they survive pickling. Here they only get their names.

use pyo3::PyErr;
use std::fmt::Display;

macro_rules! exceptions {
    ($($name:ident),*) => { $(
        pyo3::import_exception!(rollyard.errors, $name);

        impl $name {
            /// With the words of one of our own errors.
            #[allow(dead_code, reason = "not every one has an error of ours behind it")]
            pub(crate) fn of(error: impl Display) -> PyErr {
                Self::new_err(error.to_string())
            }
        }
    )* };
}

exceptions!(
    BatchError,
    EngineError,
    EngineTimeoutError,
    EngineUnreachableError,
    EpisodeError,
    ExecutorError,
    MaskError,
    NotEnoughError,
    NotExactError,
    PacedError,
    QueryError,
    ReplayError,
    RequestError,
    RolloutError,
    StorageError,
    TemplateError,
    TokenizerError,
    WaitTimeoutError,
    WorkerError,
    WorkflowError
);
