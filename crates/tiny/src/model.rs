//! The network: a decoder-only transformer, small enough to be trained while somebody watches.
//!
//! Pre-norm blocks with learned positions: RMS norm, causal attention, RMS norm, two matrices with a squared ReLU
//! between them. All rows of a call go through the matrices together; only attention knows which rows are one text.
//! [`Policy`] feeds texts bit by bit and keeps their keys and values; [`Tape`] takes whole texts and goes back
//! through them for gradients. Both run the same [`block`]s, so what is trained is what was sampled.

mod attention;
mod block;
mod decoder;
pub(crate) mod matrix;
mod policy;
mod shape;
pub(crate) mod slots;
mod tape;
mod weights;

pub use decoder::{Decoder, DecoderError, Feed, SlotId};
pub use policy::Policy;
pub use shape::{Shape, ShapeError};
pub use tape::{Tape, Texts};
pub use weights::{Names, Weights};

#[cfg(test)]
mod tests;
