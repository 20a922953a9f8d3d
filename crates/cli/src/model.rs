//! Reads the tokenizer of a model's folder.

use anyhow::{Context, Result};
use rollyard_core::tokens::Tokenizer;
use std::path::Path;

pub(crate) fn load(dir: &Path) -> Result<Tokenizer> {
    let folder = rollyard_store::model_folder::read(dir)?;
    Tokenizer::new(&folder.tokenizer, folder.files()).with_context(|| format!("in {}", dir.display()))
}
