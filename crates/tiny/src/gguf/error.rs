//! Why a file cannot be served.

use rollyard_core::tokens::TokenizerError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[error("{fault}: {}", .path.display())]
pub struct GgufError {
    pub fault: Fault,
    pub path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("the file cannot be read ({0})")]
    Io(#[from] io::Error),
    #[error("this is no GGUF file: it begins with {found:?} instead of \"GGUF\"")]
    NotGguf { found: String },
    #[error("version {version} of GGUF is not known; convert the model again, to version 2 or 3")]
    Version { version: u32 },
    #[error("the file ends too soon: {what} needs {wanted} bytes, and {left} are left; download it again")]
    Truncated { what: String, wanted: u64, left: u64 },
    #[error("the file is damaged: {0}; download it again")]
    Damaged(String),
    #[error("the file does not say \"{key}\", which a model needs")]
    Missing { key: String },
    #[error("\"{key}\" in the file is {found}, but must be {want}")]
    Unfit { key: String, found: String, want: String },
    #[error("the model is a {found:?}, but only \"llama\" can be served from a GGUF file")]
    Architecture { found: String },
    #[error("the model has no tensor \"{name}\"")]
    NoTensor { name: String },
    #[error("tensor \"{name}\" {reason}")]
    Tensor { name: String, reason: String },
    #[error(
        "the model has a tensor \"{name}\", of which a plain llama knows nothing; without it its answers would be wrong"
    )]
    UnknownTensor { name: String },
    #[error("the tokenizer in the file is not one ({0})")]
    Tokenizer(#[from] TokenizerError),
}
