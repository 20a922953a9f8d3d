//! What a caller of the core sees, against answers recorded from the programs it has to agree with.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod encoder;
mod model_config;
mod scale;
mod templates;
