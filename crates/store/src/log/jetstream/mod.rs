//! The log kept by NATS JetStream, for a yard that outlives any one machine.
//!
//! A run is one stream, and its messages are of three kinds, by subject:
//!
//! ```text
//! ry.YARD.RUN.h       bodies: the history, for ever        one batch is one message or more
//! ry.YARD.RUN.p.17    payloads of segment 17, in bundles   purged when the segment is released
//! ry.YARD.RUN.c       claims: who owns the run from here on
//! ```
//!
//! # One owner
//!
//! Every message names the sequence it must come after, and that of the newest claim, and the server refuses it if either
//! is another. The owner knows what it has appended, so its next message fits. To take a run over is to append a claim:
//! from then on no history of the owner before fits any more, and it learns from the refusal
//! ([`LogError::Fenced`](super::LogError::Fenced)). No clock and no lock is involved.
//!
//! # One batch
//!
//! A batch is its bundles of payloads, sent without waiting, then its history. Since each must follow the one before, the
//! history is stored only if all are; on a stream with replicas, where bundles cannot name the claim, the owner waits for
//! them first (`docs/decisions/016-fence.md`). A batch whose last message is missing never happened: whoever reads passes
//! over it. Messages have ids, so that a batch can be sent again after an answer was lost.
//!
//! # Large payloads
//!
//! What is larger than [`Settings::inline_max`] goes to an object store before the batch does, and the bundle holds
//! its name. Snapshots lie there too.
//!
//! # Where to read
//!
//! [`message`] says what the bytes are, [`Connection`] makes and finds streams, [`Opener`] claims a run and opens its
//! log; stager, writer and reader are the ends of it, as [`contract`](super::contract) wants them.

mod blobs;
mod cache;
mod claim;
mod connection;
mod history;
pub mod message;
mod names;
mod open;
mod reader;
mod segments;
mod settings;
mod snapshots;
mod stager;
mod told;
mod unfinished;
mod writer;

pub use blobs::BlobStore;
pub use claim::Claim;
pub use connection::Connection;
pub use history::Followed;
pub use open::{JetStreamLog, Opener};
pub use reader::Reader;
pub use settings::{BadBlobs, Blobs, Settings};
pub use snapshots::Snapshots;
pub use stager::{Batch, Stager};
pub use unfinished::Unfinished;
pub use writer::Writer;
