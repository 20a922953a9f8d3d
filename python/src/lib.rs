//! The native part of the Python package `rollyard`.
//!
//! Read in this order: [`array`] lends Rust's memory to numpy, [`errors`] names what can go wrong.
//! Python sees all of it as `rollyard._rollyard`, and gives it better names in `rollyard/__init__.py`.

mod array;
mod errors;

use pyo3::prelude::*;

/// Filled once, at import; starts nothing, so a process may fork afterwards.
#[pymodule]
mod _rollyard {
    #[pymodule_export]
    use crate::array::aligned_zeros;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python looks for")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
