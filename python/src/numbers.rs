//! Lists and arrays of numbers, as Python has them, with the field to blame where they are none.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A list or array of whole numbers as int32; a fraction or a number too large is an error.
pub(crate) fn ints(field: &str, values: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    let mut all = Vec::new();
    add_ints(field, values, &mut all)?;
    Ok(all)
}

/// The same behind others, in memory of their size.
pub(crate) fn add_ints(field: &str, values: &Bound<'_, PyAny>, all: &mut Vec<i32>) -> PyResult<()> {
    if add_as_they_are(values, all) {
        return Ok(());
    }
    let array = Array { field, dtype: "int32", expected: "whole numbers of 32 bits" };
    let (given, cast) = array.read::<i32>(values)?;
    // numpy wraps what is too large without a word.
    let numpy = values.py().import("numpy")?;
    let changed = numpy.call_method1("flatnonzero", (given.rich_compare(&cast, CompareOp::Ne)?,))?;
    if let Ok(first) = changed.get_item(0) {
        let value = given.get_item(&first)?;
        return Err(PyTypeError::new_err(format!(
            "{field}[{first}] is {value}, but must be a whole number of 32 bits"
        )));
    }
    let cast = cast.to_vec()?;
    all.reserve_exact(cast.len());
    all.extend(cast);
    Ok(())
}

pub(crate) fn floats(field: &str, values: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let mut all = Vec::new();
    if add_as_they_are(values, &mut all) {
        return Ok(all);
    }
    let (_, cast) = Array { field, dtype: "float32", expected: "numbers" }.read::<f32>(values)?;
    Ok(cast.to_vec()?)
}

/// Adds the values of an array that is of this type already: to ask numpy about it takes longer than to copy it.
fn add_as_they_are<T: Element + Copy>(values: &Bound<'_, PyAny>, all: &mut Vec<T>) -> bool {
    let Some(array) = values.cast::<PyArray1<T>>().ok().and_then(|array| array.try_readonly().ok()) else {
        return false;
    };
    let Ok(slice) = array.as_slice() else { return false };
    all.reserve_exact(slice.len());
    all.extend_from_slice(slice);
    true
}

/// What a field must be.
struct Array<'a> {
    field: &'a str,
    dtype: &'static str,
    expected: &'static str,
}

impl Array<'_> {
    /// The values as numpy has them, and in the type they must have.
    fn read<'py, T: Element>(
        &self,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<T>>)> {
        let given = values.py().import("numpy")?.call_method1("asarray", (values,));
        let given = given.map_err(|error| self.wrong(values, &error))?;
        let kwargs = PyDict::new(values.py());
        // An empty list is of floats to numpy; there is nothing in it to lose.
        let casting = if given.len().unwrap_or(1) == 0 { "unsafe" } else { "same_kind" };
        kwargs.set_item("casting", casting)?;
        let cast = given.call_method("astype", (self.dtype,), Some(&kwargs));
        let cast = cast.map_err(|error| self.wrong(values, &error))?;
        let cast = cast.cast_into::<PyArray1<T>>().map_err(|error| self.wrong(values, &error.into()))?;
        Ok((given, cast))
    }

    fn wrong(&self, values: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
        let Self { field, expected, .. } = self;
        let shown = values.repr().map(|text| text.to_string()).unwrap_or_default();
        let shown: String = shown.chars().take(60).collect();
        PyTypeError::new_err(format!("{field} is {shown}, but must be a list of {expected}: {error}"))
    }
}
