//! Files of rollouts, open for questions, as Python asks them.
//!
//! Nothing here waits with the GIL held. Indexing and search look for Ctrl-C as they go.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use rollyard_store::catalog::{Catalog as StoreCatalog, Progress};
use rollyard_store::places::{Places, Roots};
use rollyard_store::query::{Answer as StoreAnswer, Found, Pattern, Query, QueryError};
use rollyard_store::records::Channel;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors::{QueryError as PyQueryError, StorageError};

/// Id, message, channel, start, end, snippet, hits.
type HitTold = (String, usize, String, usize, usize, String, usize);

/// Some places, and the summary of what lies there.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Catalog {
    query: Query,
}

#[pymethods]
impl Catalog {
    #[new]
    #[pyo3(signature = (places, cache=None))]
    fn new(py: Python<'_>, places: Vec<String>, cache: Option<PathBuf>) -> PyResult<Self> {
        let cache = cache.unwrap_or_else(StoreCatalog::default_cache);
        let opened = py.detach(|| StoreCatalog::open(Places::new(Roots::Anywhere), &places, &cache));
        Ok(Self { query: Query::new(opened.map_err(StorageError::of)?) })
    }

    /// Indexes what is new, and says how many rollouts there are and how many rows could not be read.
    fn refresh(&self, py: Python<'_>) -> PyResult<(i64, u64)> {
        let cancelled = AtomicBool::new(false);
        let interrupted = AtomicBool::new(false);
        let look = |_: Progress| {
            if Python::attach(|py| py.check_signals().map_err(|error| error.restore(py))).is_err() {
                interrupted.store(true, Ordering::Relaxed);
                cancelled.store(true, Ordering::Relaxed);
            }
        };
        let done = py.detach(|| self.query.catalog().refresh(&look, &cancelled));
        if interrupted.load(Ordering::Relaxed) {
            return Err(PyErr::take(py).unwrap_or_else(|| StorageError::of("interrupted")));
        }
        let bad_rows = done.map_err(StorageError::of)?.bad_rows;
        let count = |catalog: &StoreCatalog| {
            let rows = "select count(*) from rollouts";
            catalog
                .connect()
                .map_err(StorageError::of)?
                .query_row(rows, [], |row| row.get::<_, i64>(0))
                .map_err(StorageError::of)
        };
        Ok((py.detach(|| count(self.query.catalog()))?, bad_rows))
    }

    /// Answers one SELECT.
    fn sql(&self, py: Python<'_>, sql: &str) -> PyResult<Answer> {
        let mut rows = Vec::new();
        let names = py.detach(|| {
            self.query.sql(sql, &mut |_, row| {
                rows.push(row.to_vec());
                ControlFlow::Continue(())
            })
        });
        Ok(Answer { inner: StoreAnswer { names: names.map_err(refused)?, rows } })
    }

    /// Rollouts with a hit. What is looked for: the text, whether it is an expression, whether capitals do not
    /// matter, and the channels.
    fn search(
        &self,
        py: Python<'_>,
        wanted: (String, bool, bool, Vec<String>),
        filter: &str,
        hits_max: Option<usize>,
    ) -> PyResult<Vec<HitTold>> {
        let (text, is_regex, ignore_case, channels) = wanted;
        let channels = channels.iter().map(|name| channel(name)).collect::<PyResult<_>>()?;
        let pattern = Pattern { text, is_regex, ignore_case, channels };
        let (mut hits, mut stopped) = (Vec::new(), Ok(()));
        let searched = py.detach(|| {
            self.query.search(filter, &[pattern], &mut |found| {
                match found {
                    Found::Hit(hit) => hits.push(hit),
                    Found::Progress(_) => stopped = Python::attach(|py| py.check_signals()),
                }
                let enough = hits_max.is_some_and(|max| hits.len() >= max);
                if enough || stopped.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        stopped?;
        searched.map_err(refused)?;
        let connection = py.detach(|| self.query.catalog().connect()).map_err(StorageError::of)?;
        let mut statement =
            connection.prepare("select id from rollouts where row = ?").map_err(StorageError::of)?;
        hits.into_iter()
            .map(|hit| {
                let id = statement.query_row([hit.row.0], |row| row.get(0)).map_err(StorageError::of)?;
                let (start, end) = (hit.range.start, hit.range.end);
                let name = hit.channel.name().to_owned();
                Ok((id, hit.message, name, start, end, hit.snippet, hit.count_in_row))
            })
            .collect()
    }

    /// The line of a rollout, byte for byte.
    fn raw<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let found = py.detach(|| {
            let catalog = self.query.catalog();
            catalog.find(id)?.map(|row| catalog.body(row)).transpose()
        });
        Ok(found.map_err(StorageError::of)?.map(|body| PyBytes::new(py, &body.raw)))
    }
}

/// The rows of an answer.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Answer {
    inner: StoreAnswer,
}

#[pymethods]
impl Answer {
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names.clone()
    }

    fn __len__(&self) -> usize {
        self.inner.rows.len()
    }

    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let row = |row: &Vec<Value>| {
            let cells = row.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, cells)
        };
        self.inner.rows.iter().map(row).collect()
    }

    /// Arrow's IPC stream.
    fn ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.inner.ipc()).map_err(StorageError::of)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into_pyobject(py)?.into_any(),
            None => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

fn refused(error: QueryError) -> PyErr {
    match error {
        QueryError::Catalog(error) => StorageError::of(error),
        QueryError::Mistake(mistake) => {
            let at = (mistake.at.start, mistake.at.end);
            PyQueryError::new_err((mistake.message, at, mistake.expected))
        }
        error => PyQueryError::of(error),
    }
}

fn channel(name: &str) -> PyResult<Channel> {
    Channel::named(name).ok_or_else(|| {
        let names = Channel::ALL.map(Channel::name).join(", ");
        PyQueryError::of(format!("the channel is {name:?}, but must be one of: {names}"))
    })
}
