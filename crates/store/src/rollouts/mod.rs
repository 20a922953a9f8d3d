//! Batches of rollouts at rest, as files that any Arrow reader opens and that run nothing when they are read.
//!
//! Read in this order: [`columns`] puts rollouts into Arrow's columns and takes them out again, checked to the
//! bit; [`name`] is what a file is called; [`folder`] keeps files on a disk or on S3, whole or not at all;
//! [`writer`] and [`reader`] are the two ends that a worker and a trainer hold.

pub mod columns;
pub mod folder;
mod local;
pub mod name;
pub mod reader;
mod s3;
pub mod writer;

pub use columns::{About, ColumnsError, Damaged, Decoded, OwnedRow, Row};
pub use folder::{FolderError, RolloutFolder};
pub use name::FileName;
pub use reader::{Batch, BatchReader, Problem};
pub use writer::{BatchWriter, WriteError, Written};
