//! Bytes at rest.
//!
//! [`log`] is the write-ahead log that every run stands on. It knows nothing of rollouts or groups: what it
//! keeps are opaque bytes, so that the ledger may change its mind about an event without touching a file
//! format. [`yard`] is an open run: the core decides, the log remembers, and callers are answered in between.
//! A [`journal`] is a log of records whose owners come and go.
//! [`rollouts`] keeps batches of rollouts as files, on a disk or on S3, without a server in between.
//! [`example`] is a run to look at before there is one. [`model_folder`] reads the files that say how a model's text becomes tokens.

pub mod archive;
pub mod catalog;
pub mod example;
pub mod journal;
pub mod log;
pub mod model_folder;
pub mod places;
pub mod query;
pub mod records;
pub mod rollouts;
pub mod yard;
