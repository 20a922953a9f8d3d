//! The package's exceptions, as Rust raises them.
//!
//! They are Python classes (`rollyard/errors.py`): each is also the builtin that a careful program would
//! catch, they carry fields, and they survive pickling. Here they only get their names.

pyo3::import_exception!(rollyard.errors, BatchError);
