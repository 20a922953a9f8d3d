//! The door for outside JSON: bytes come in, valid values come out, and nothing is guessed.
//!
//! [`item`] reads a rollout as slime's generators write it; [`row`] writes it back as its trainer reads
//! it, with every field that we do not know left byte for byte as it came. [`rollout`] reads the tokens that
//! a rollout carries. [`reference`] stands for a rollout whose bytes lie elsewhere.

pub mod item;
pub mod reference;
pub mod rollout;
pub mod row;
