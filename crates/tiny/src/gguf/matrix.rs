//! Matrices as the file has them, multiplied without being unpacked.

use candle_core::CpuStorage;
use candle_core::quantized::{GgmlDType, QuantizedType};
use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Seek};

use super::error::Fault;
use super::file::Contents;
use crate::model::DecoderError;

/// Turns rows of `inner` numbers into rows of `outer`.
pub(super) struct Matrix {
    kind: GgmlDType,
    inner: usize,
    outer: usize,
    values: Box<dyn QuantizedType>,
}

impl Matrix {
    pub(super) fn load<R: Read + Seek>(
        contents: &mut Contents<R>,
        name: &str,
        [outer, inner]: [usize; 2],
    ) -> Result<Self, Fault> {
        let tensor = contents.tensor(name, &[outer, inner])?;
        let values = tensor.kind.from_data(Cow::Owned(tensor.bytes));
        Ok(Self { kind: tensor.kind, inner, outer, values })
    }

    /// `x · self` for every row of `x`.
    ///
    /// By the call under candle's tensors: it multiplies each row by itself, so that a text's numbers do not depend
    /// on how many others there are. The one above repacks some types, and computes one row otherwise than two.
    pub(super) fn multiply(&self, x: &[f32]) -> Result<Vec<f32>, DecoderError> {
        let rows = x.len() / self.inner;
        let mut out = vec![0.0; rows * self.outer];
        self.values.matmul_t((rows, self.inner, self.outer), x, &mut out).map_err(failed)?;
        Ok(out)
    }

    /// These rows of the matrix itself.
    pub(super) fn rows(&self, rows: &[u32]) -> Result<Vec<f32>, DecoderError> {
        floats(self.values.embedding(rows, self.outer, self.inner).map_err(failed)?)
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{} {:?}", self.outer, self.inner, self.kind)
    }
}

/// A tensor of one dimension, unpacked.
pub(super) fn vector<R: Read + Seek>(
    contents: &mut Contents<R>,
    name: &str,
    length: usize,
) -> Result<Vec<f32>, Fault> {
    let tensor = contents.tensor(name, &[length])?;
    let values = tensor.kind.from_data(Cow::Owned(tensor.bytes)).dequantize(length).map_err(failed);
    values.and_then(floats).map_err(|error| Fault::Tensor {
        name: name.to_owned(),
        reason: format!("cannot be unpacked ({error})"),
    })
}

fn floats(storage: CpuStorage) -> Result<Vec<f32>, DecoderError> {
    match storage {
        CpuStorage::F32(values) => Ok(values),
        _ => Err(DecoderError::Model("candle gave no 32-bit numbers".to_owned())),
    }
}

fn failed(error: candle_core::Error) -> DecoderError {
    DecoderError::Model(error.to_string())
}
