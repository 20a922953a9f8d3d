//! The door for outside JSON: bytes come in, valid values come out, and nothing is guessed.
//!
//! [`item`] reads a rollout as slime's generators write it; [`row`] writes it back as its trainer reads
//! it, with every field that we do not know left byte for byte as it came.

pub mod item;
pub mod row;
