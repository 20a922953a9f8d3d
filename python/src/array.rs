//! Lends Rust's memory to numpy, without a copy, and looks at numpy's memory in place.
//!
//! torch and JAX take a numpy array as it is if the memory is theirs to use: contiguous, writable, and
//! beginning at a multiple of 64 bytes, which malloc does not promise and JAX asks for. A [`Tensor`] is
//! laid out so; it is given to Python whole, and freed by Rust when the last array that shows it is gone.
//! Arrays of a rollout are shared by everyone who looks at it, and therefore read-only.

use numpy::ndarray::ArrayView1;
use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{Element, PyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rollyard_core::batch::Tensor;
use std::any::Any;

/// Keeps memory alive while arrays show it: their `base`.
#[pyclass(frozen, module = "rollyard._rollyard")]
struct Owner {
    _memory: Box<dyn Any + Send + Sync>,
}

/// The tensor as a writable numpy array of bytes, which Python gives its type and shape.
pub(crate) fn hand_over(py: Python<'_>, mut tensor: Tensor) -> PyResult<Bound<'_, PyArray1<u8>>> {
    let bytes = tensor.bytes_mut();
    let (start, len) = (bytes.as_mut_ptr(), bytes.len());
    let owner = Bound::new(py, Owner { _memory: Box::new(tensor) })?;
    #[expect(unsafe_code, reason = "numpy cannot know how long the memory lives; the owner says it")]
    // SAFETY: `start` points to `len` bytes on the heap, which stay in place when the tensor moves into its
    // owner, and live as long as the array that has it as base. Nothing in Rust reaches them through the
    // owner, so Python alone reads and writes them.
    let array = unsafe {
        let view = ArrayView1::from_shape_ptr(len, start.cast_const());
        PyArray1::borrow_from_array(&view, owner.into_any())
    };
    Ok(array)
}

/// The slice as a read-only numpy array; `owner` keeps it alive and never changes it.
pub(crate) fn show<'py, T: Element>(owner: Bound<'py, PyAny>, slice: &[T]) -> Bound<'py, PyArray1<T>> {
    #[expect(unsafe_code, reason = "numpy cannot know how long the memory lives; the owner says it")]
    // SAFETY: the slice belongs to the frozen `owner`, which lives as long as the array that has it as base.
    // Nobody else has the array yet, so its flags are ours to set. To ask for write access first would fail
    // while another thread reads the same memory.
    unsafe {
        let array = PyArray1::borrow_from_array(&ArrayView1::from(slice), owner);
        (*array.as_array_ptr()).fields.flags &= !NPY_ARRAY_WRITEABLE;
        array
    }
}
