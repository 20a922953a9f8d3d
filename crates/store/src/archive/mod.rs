//! Every rollout, kept: what passes through a yard goes to files that outlive it.
//!
//! ```text
//! log of a run ──> archiver ──> line, fates ──> sink: a growing JSONL file, or objects that appear as a whole
//! ```
//!
//! A yard forgets a rollout once it was trained on or dropped. [`Archiver`] follows the run's log and copies every
//! rollout ([`line`]) and what became of it ([`fates`]) to a place of the user's: JSONL in the viewer's format, Parquet
//! for other engines ([`parquet`]), or both. Nothing is missed, because payloads stay in the log until they are
//! archived; nothing is there twice, because what is written follows from the log alone and a [`cursor`] says how far
//! it is. If the place fails, the yard goes on and the archive catches up later.
//!
//! [`writer`] is for loggers that have no yard: lines appended to a file by many processes.

mod archiver;
mod cursor;
mod error;
pub mod fates;
mod growing;
mod layout;
pub mod line;
mod objects;
pub mod parquet;
mod record;
mod settings;
mod sink;
mod texts;
pub mod writer;

pub use archiver::{Archiver, Status};
pub use error::ArchiveError;
pub use layout::Format;
pub use settings::{ArchiveSettings, host_name};
