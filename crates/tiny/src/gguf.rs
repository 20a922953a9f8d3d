//! Real small models: a Llama out of a GGUF file, sampled by the same engine as the small one.
//!
//! [`file`] reads the format and [`metadata`] what it says by name; [`dims`] takes from it how large the model is,
//! [`matrix`] the weights, still quantised, and [`tokenizer`] the files that a model folder would have. [`llama`] is the
//! network. Of candle only the products with quantised matrices are used: everything else is plain loops over slices,
//! which is little beside them and lets many texts share one product.
//!
//! A file is either understood as a whole or refused by the name of what is not: a model that is nearly right says
//! nearly sensible things, and nobody finds out.

mod attention;
mod dims;
mod error;
mod file;
mod llama;
mod matrix;
mod metadata;
mod rope;
mod tokenizer;

pub use error::{Fault, GgufError};

use rollyard_core::tokens::Tokenizer;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use crate::model::Decoder;
use file::Contents;
use llama::Llama;

/// A model as its file has it.
pub struct Gguf {
    pub decoder: Box<dyn Decoder>,
    pub tokenizer: Arc<Tokenizer>,
    /// As the file calls it.
    pub name: String,
}

impl Gguf {
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let said = |fault: Fault| GgufError { fault, path: path.to_owned() };
        let file = File::open(path).map_err(|error| said(Fault::Io(error)))?;
        Self::read(BufReader::new(file)).map_err(said)
    }

    fn read(source: impl Read + Seek) -> Result<Self, Fault> {
        let mut contents = Contents::read(source)?;
        let dims = dims::Dims::of(&contents.metadata)?;
        let tokenizer = Arc::new(tokenizer::tokenizer(&contents.metadata)?);
        let name = contents.metadata.maybe_text("general.name")?.unwrap_or("model").to_owned();
        let decoder = Box::new(Llama::load(dims, &mut contents)?);
        Ok(Self { decoder, tokenizer, name })
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("name", &self.name)
            .field("decoder", &self.decoder)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
