//! Lines of a logger, made of Python's dicts and written by Rust.
//!
//! A line is made while Python waits, in one pass without copies of the text; everything after that happens on the
//! writer's own thread. A fork has none of its parent's threads and must not write its parent's lines, so a child
//! begins anew. The lock here is only ever held with the GIL, and who forks holds that.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use rollyard_store::archive::writer::{LineWriter, Target, Unwritten};
use std::sync::{Arc, Mutex, PoisonError};

use crate::errors::StorageError;

/// Deeper than any rollout, and not as deep as the stack.
const DEPTH_MAX: usize = 100;

/// Appends lines to a file, or puts them in a bucket as objects.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Lines {
    place: String,
    is_file: bool,
    open: Mutex<Option<Open>>,
}

struct Open {
    process: u32,
    writer: Arc<LineWriter>,
    /// The trouble that was told last.
    told: Option<Unwritten>,
}

#[pymethods]
impl Lines {
    /// A path, or the URL of the first object.
    #[new]
    fn new(py: Python<'_>, place: String, is_file: bool) -> PyResult<Self> {
        let lines = Self { place, is_file, open: Mutex::new(None) };
        if is_file {
            lines.writer(py)?;
        }
        Ok(lines)
    }

    /// Hands a sample over. Gives back what is wrong with the writing, when that is news.
    fn log(&self, py: Python<'_>, sample: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let mut line = Vec::with_capacity(1024);
        put(&mut line, sample, 0)?;
        line.push(b'\n');
        let writer = self.writer(py)?;
        let logged = py.detach(|| writer.log(&line));
        logged.map_err(StorageError::of)?;
        let trouble = writer.trouble();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.as_mut() else { return Ok(None) };
        let is_news = trouble.is_some() && open.told.is_none();
        open.told = trouble;
        Ok(open.told.as_ref().filter(|_| is_news).map(ToString::to_string))
    }

    /// Has what there is written, without waiting for it.
    fn flush_soon(&self, py: Python<'_>) -> PyResult<()> {
        self.writer(py)?.flush_soon();
        Ok(())
    }

    /// Waits until everything is written.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let Some(writer) = self.own() else { return Ok(()) };
        py.detach(|| writer.flush()).map_err(StorageError::of)
    }

    /// Writes what there is and ends the thread. The next sample would start another one.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(writer) = self.own() else { return Ok(()) };
        let closed = py.detach(|| writer.close());
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        closed.map_err(StorageError::of)
    }
}

impl Lines {
    /// The writer of this process, if it has begun.
    fn own(&self) -> Option<Arc<LineWriter>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.as_ref().filter(|open| open.process == std::process::id());
        own.map(|open| Arc::clone(&open.writer))
    }

    fn writer(&self, py: Python<'_>) -> PyResult<Arc<LineWriter>> {
        if let Some(writer) = self.own() {
            return Ok(writer);
        }
        let target = match self.is_file {
            true => Target::File(self.place.clone().into()),
            false => Target::Objects(self.place.clone()),
        };
        let opened = py.detach(|| LineWriter::open(target)).map_err(StorageError::of)?;
        let writer = Arc::new(opened);
        let open = Open { process: std::process::id(), writer: Arc::clone(&writer), told: None };
        let before = self.open.lock().unwrap_or_else(PoisonError::into_inner).replace(open);
        // Our parent's: its thread is not here to end, and its lock may have been held.
        std::mem::forget(before);
        Ok(writer)
    }
}

/// Adds a value as JSON. Numbers that JSON does not have are put as texts, so that no reader stumbles over them.
fn put(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err(format!(
            "a sample is nested more than {DEPTH_MAX} deep, or in itself"
        )));
    }
    if let Ok(text) = value.cast::<PyString>() {
        put_text(out, text)
    } else if value.is_none() {
        out.extend(b"null");
        Ok(())
    } else if let Ok(truth) = value.cast::<PyBool>() {
        out.extend(if truth.is_true() { b"true".as_slice() } else { b"false" });
        Ok(())
    } else if value.is_instance_of::<PyInt>() {
        let number: PyResult<i64> = value.extract();
        match number {
            Ok(number) => out.extend(number.to_string().as_bytes()),
            // As many digits as it has; a subclass may show itself otherwise.
            Err(_) => out.extend(value.call_method0("__int__")?.str()?.to_string_lossy().as_bytes()),
        }
        Ok(())
    } else if let Ok(number) = value.cast::<PyFloat>() {
        put_float(out, number.value());
        Ok(())
    } else if let Ok(dict) = value.cast::<PyDict>() {
        out.push(b'{');
        for (n, (key, value)) in dict.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            match key.cast::<PyString>() {
                Ok(key) => put_text(out, key)?,
                Err(_) => put_text(out, &key.str()?)?,
            }
            out.push(b':');
            put(out, &value, depth + 1)?;
        }
        out.push(b'}');
        Ok(())
    } else if let Ok(list) = value.cast::<PyList>() {
        put_all(out, list.iter(), depth)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        put_all(out, tuple.iter(), depth)
    } else {
        // A number of numpy or torch gives a plain one, an array of them a list.
        for method in ["tolist", "item"] {
            if value.hasattr(method)? {
                return put(out, &value.call_method0(method)?, depth + 1);
            }
        }
        let kind = value.get_type().name()?.to_string_lossy().into_owned();
        Err(PyTypeError::new_err(format!(
            "a {kind} cannot be logged: {:.80}; give dicts, lists, texts and numbers",
            value.repr()?.to_string_lossy()
        )))
    }
}

fn put_all<'py>(
    out: &mut Vec<u8>,
    values: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
) -> PyResult<()> {
    out.push(b'[');
    for (n, value) in values.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        put(out, &value, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Half of a surrogate pair, which Python lets into texts, becomes the sign for what cannot be shown.
fn put_text(out: &mut Vec<u8>, text: &Bound<'_, PyString>) -> PyResult<()> {
    let text = text.to_string_lossy();
    serde_json::to_writer(out, &*text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn put_float(out: &mut Vec<u8>, number: f64) {
    match number {
        number if number.is_nan() => out.extend(b"\"NaN\""),
        f64::INFINITY => out.extend(b"\"Infinity\""),
        f64::NEG_INFINITY => out.extend(b"\"-Infinity\""),
        // Written as Python does: 1.0 stays a float.
        number => out.extend(
            serde_json::Number::from_f64(number).map(|n| n.to_string()).unwrap_or_default().as_bytes(),
        ),
    }
}
