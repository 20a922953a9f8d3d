//! Bytes at rest.
//!
//! The core decides, this crate remembers. It knows nothing of rollouts or groups: what it keeps are
//! opaque bytes, so that the ledger may change its mind about an event without touching a file format.
//!
//! [`log`] is the write-ahead log that every run stands on.

pub mod log;
