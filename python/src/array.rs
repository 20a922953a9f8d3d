//! Lends Rust's memory to numpy, without a copy.
//!
//! torch and JAX take a numpy array as it is if the memory is theirs to use: contiguous, writable, and
//! beginning at a multiple of 64 bytes, which malloc does not promise and JAX asks for. So the memory is
//! laid out in lines of 64 bytes, given to Python whole, and freed by Rust when the last array that shows
//! it is gone.

use bytemuck::{Pod, Zeroable};
use numpy::ndarray::{ArrayView, IxDyn};
use numpy::{Element, PyArrayDescr, PyArrayDescrMethods, PyArrayDyn};
use pyo3::prelude::*;
use std::any::Any;
use std::marker::PhantomData;

use crate::errors::BatchError;

/// Where an array has to begin for JAX to share it: a multiple of this many bytes.
const ALIGNMENT_BYTES: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT_BYTES]);

/// Numbers of one kind, in lines.
pub(crate) struct AlignedBuffer<T> {
    lines: Vec<Line>,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Pod> AlignedBuffer<T> {
    /// So many zeros, or nothing if the memory is not to be had.
    pub(crate) fn zeros(count: usize) -> Option<Self> {
        // An empty array has an address too.
        let lines = count.checked_mul(size_of::<T>())?.div_ceil(ALIGNMENT_BYTES).max(1);
        let lines = bytemuck::allocation::try_zeroed_vec(lines).ok()?;
        Some(Self { lines, count, of: PhantomData })
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        let room: &mut [T] = bytemuck::cast_slice_mut(&mut self.lines);
        room.get_mut(..self.count).expect("the lines have room for all of them")
    }
}

/// Keeps memory alive while arrays show it: their `base`.
#[pyclass(frozen, module = "rollyard._rollyard")]
struct Owner {
    _memory: Box<dyn Any + Send + Sync>,
}

/// The buffer as a writable numpy array of this shape. Rust does not look at the memory again.
pub(crate) fn hand_over<'py, T: Element + Pod>(
    py: Python<'py>,
    mut buffer: AlignedBuffer<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let numbers = buffer.as_mut_slice();
    assert_eq!(shape.iter().product::<usize>(), numbers.len(), "the shape {shape:?} is that of the buffer");
    let start = numbers.as_mut_ptr();
    let owner = Bound::new(py, Owner { _memory: Box::new(buffer) })?;
    #[expect(unsafe_code, reason = "numpy cannot know how long the memory lives; the owner says it")]
    // SAFETY: `start` points to as many numbers as the shape has, asserted above. They lie on the heap and
    // stay in place when the buffer moves into its owner, which lives as long as the array that has it as
    // base. Nothing in Rust reaches them through the owner, so Python alone reads and writes them.
    let array = unsafe {
        let view = ArrayView::from_shape_ptr(IxDyn(shape), start.cast_const());
        PyArrayDyn::borrow_from_array(&view, owner.into_any())
    };
    Ok(array)
}

#[derive(FromPyObject)]
pub(crate) enum Shape {
    Length(usize),
    Lengths(Vec<usize>),
}

/// Zeros that torch and JAX can share.
#[pyfunction]
#[pyo3(signature = (shape, *, dtype))]
pub(crate) fn aligned_zeros<'py>(
    py: Python<'py>,
    shape: Shape,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = match shape {
        Shape::Length(length) => vec![length],
        Shape::Lengths(lengths) => lengths,
    };
    let wanted = PyArrayDescr::new(py, dtype)?;
    let is = |kind: Bound<'py, PyArrayDescr>| wanted.is_equiv_to(&kind);
    if is(numpy::dtype::<i32>(py)) {
        zeros::<i32>(py, &shape)
    } else if is(numpy::dtype::<u32>(py)) {
        zeros::<u32>(py, &shape)
    } else if is(numpy::dtype::<i64>(py)) {
        zeros::<i64>(py, &shape)
    } else if is(numpy::dtype::<f32>(py)) {
        zeros::<f32>(py, &shape)
    } else if is(numpy::dtype::<bool>(py)) {
        // The bytes 0 and 1 are what numpy has for false and true.
        zeros::<u8>(py, &shape)?.call_method1("view", (wanted,))
    } else {
        let known = "int32, uint32, int64, float32 or bool";
        Err(BatchError::new_err(format!("dtype is {wanted}, but must be {known}")))
    }
}

fn zeros<'py, T: Element + Pod>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let count = shape.iter().try_fold(1_usize, |count, length| count.checked_mul(*length));
    let buffer = count.and_then(AlignedBuffer::<T>::zeros);
    let buffer =
        buffer.ok_or_else(|| BatchError::new_err(format!("no memory for an array of shape {shape:?}")))?;
    Ok(hand_over(py, buffer, shape)?.into_any())
}
