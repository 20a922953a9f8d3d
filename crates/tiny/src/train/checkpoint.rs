//! Weights, the optimiser's memory, and where the trainer was: one file, there as a whole or not at all.
//!
//! A safetensors file. The weights stand in it by name, so that any program can read them; the optimiser's two moments
//! are called `adam.means` and `adam.squares`; what else a trainer has to know is JSON in the header.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::adam::{Adam, AdamSettings};
use crate::model::{Shape, ShapeError, Weights};

#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub weights: Weights,
    /// Without one it is only a model.
    pub adam: Option<Adam>,
    /// What the trainer keeps beside: its step, what it was told.
    pub notes: Map<String, Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("there is no checkpoint here: {}", .path.display())]
    Missing { path: PathBuf },
    #[error("this is no checkpoint ({reason}): {}", .path.display())]
    NotOne { reason: String, path: PathBuf },
    #[error("the checkpoint has another shape: its {field} is {there}, but {here} is wanted; begin anew in another folder, or ask for the same: {}", .path.display())]
    OtherShape { field: &'static str, there: usize, here: usize, path: PathBuf },
    #[error("there is no room to save the checkpoint; make some, then start again: {}", .path.display())]
    NoRoom { path: PathBuf },
    #[error("the checkpoint cannot be read or written ({source}): {}", .path.display())]
    Io { source: io::Error, path: PathBuf },
}

/// Of the header's entry.
const HEADER: &str = "rollyard";

#[derive(Serialize, Deserialize)]
struct Header {
    shape: Shape,
    adam: Option<AdamHeader>,
    notes: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct AdamHeader {
    settings: AdamSettings,
    steps: u64,
}

impl Checkpoint {
    /// Writes beside the place, syncs, and only then puts it there: a crash leaves the old one or the new one.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                CheckpointError::NoRoom { path: path.to_owned() }
            }
            _ => CheckpointError::Io { source, path: path.to_owned() },
        };
        let bytes = self.bytes(path)?;
        let beside = path.with_extension("part");
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        let placed = written.and_then(|()| fs::rename(&beside, path)).and_then(|()| {
            path.parent().map_or(Ok(()), |dir| File::open(dir).and_then(|dir| dir.sync_all()))
        });
        placed.map_err(|error| {
            // Half a file is of no use to anybody, and takes room that may be what is missing.
            let _gone = fs::remove_file(&beside);
            io(error)
        })
    }

    /// Reads it, and checks that it has this shape where one is wanted.
    pub fn load(path: &Path, wanted: Option<&Shape>) -> Result<Self, CheckpointError> {
        let bytes = fs::read(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CheckpointError::Missing { path: path.to_owned() },
            _ => CheckpointError::Io { source, path: path.to_owned() },
        })?;
        Self::parse(&bytes, path, wanted)
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        let not_one = |reason: String| CheckpointError::NotOne { reason, path: path.to_owned() };
        let shape = *self.weights.shape();
        let header = Header {
            shape,
            adam: self.adam.as_ref().map(|adam| AdamHeader { settings: adam.settings, steps: adam.steps }),
            notes: self.notes.clone(),
        };
        let header = serde_json::to_string(&header).map_err(|error| not_one(error.to_string()))?;
        let mut parts: Vec<(String, &[f32])> = Vec::new();
        for (name, range) in self.weights.names() {
            parts.push((name, self.weights.values().get(range).unwrap_or_default()));
        }
        if let Some(adam) = &self.adam {
            parts.push(("adam.means".to_owned(), &adam.means));
            parts.push(("adam.squares".to_owned(), &adam.squares));
        }
        let mut tensors = Vec::with_capacity(parts.len());
        for (name, values) in parts {
            let dims = dims(&shape, &name, values.len());
            let view = TensorView::new(Dtype::F32, dims, bytemuck::cast_slice(values));
            tensors.push((name, view.map_err(|error| not_one(error.to_string()))?));
        }
        let about = HashMap::from([(HEADER.to_owned(), header)]);
        safetensors::serialize(tensors, &Some(about)).map_err(|error| not_one(error.to_string()))
    }

    fn parse(bytes: &[u8], path: &Path, wanted: Option<&Shape>) -> Result<Self, CheckpointError> {
        let not_one = |reason: String| CheckpointError::NotOne { reason, path: path.to_owned() };
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| not_one(error.to_string()))?;
        let (_, about) = SafeTensors::read_metadata(bytes).map_err(|error| not_one(error.to_string()))?;
        let header = about.metadata().as_ref().and_then(|about| about.get(HEADER));
        let header = header.ok_or_else(|| not_one("it has no header of rollyard's".to_owned()))?;
        let header: Header = serde_json::from_str(header).map_err(|error| not_one(error.to_string()))?;
        let shape = header.shape.check().map_err(|error: ShapeError| not_one(error.to_string()))?;
        if let Some(wanted) = wanted {
            let fields = [
                ("vocabulary", shape.vocabulary, wanted.vocabulary),
                ("width", shape.width, wanted.width),
                ("layers", shape.layers, wanted.layers),
                ("heads", shape.heads, wanted.heads),
                ("context", shape.context, wanted.context),
            ];
            if let Some((field, there, here)) = fields.into_iter().find(|(_, there, here)| there != here) {
                return Err(CheckpointError::OtherShape { field, there, here, path: path.to_owned() });
            }
        }
        let read = |name: &str, count: usize| -> Result<Vec<f32>, CheckpointError> {
            let tensor = tensors.tensor(name).map_err(|error| not_one(format!("{name}: {error}")))?;
            if tensor.dtype() != Dtype::F32 || tensor.data().len() != 4 * count {
                let (dtype, dims) = (tensor.dtype(), tensor.shape());
                return Err(not_one(format!("{name} is {dtype:?} {dims:?}, but {count} floats are wanted")));
            }
            let values = tensor.data().chunks_exact(4);
            Ok(values.map(|bytes| bytes.try_into().map_or(0.0, f32::from_le_bytes)).collect())
        };
        let mut weights = Weights::zeros(shape);
        for (name, range) in weights.names() {
            let values = read(&name, range.len())?;
            weights.values_mut().get_mut(range).unwrap_or_default().copy_from_slice(&values);
        }
        let adam = match header.adam {
            None => None,
            Some(AdamHeader { settings, steps }) => Some(Adam {
                settings,
                steps,
                means: read("adam.means", shape.weights())?,
                squares: read("adam.squares", shape.weights())?,
            }),
        };
        Ok(Self { weights, adam, notes: header.notes })
    }
}

/// Rows and columns of a part, for whoever reads the file elsewhere.
fn dims(shape: &Shape, name: &str, count: usize) -> Vec<usize> {
    let width = shape.width;
    match name.rsplit('.').next().unwrap_or(name) {
        "embed" => vec![shape.vocabulary, width],
        "positions" => vec![shape.context, width],
        "head" => vec![width, shape.vocabulary],
        "qkv" => vec![width, 3 * width],
        "out" => vec![width, width],
        "up" => vec![width, shape.hidden()],
        "down" => vec![shape.hidden(), width],
        _ => vec![count],
    }
}
