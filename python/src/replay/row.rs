//! A rollout and what it is worth: what is sampled, and what a training batch is made of.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rollyard_core::replay::Sampled;
use rollyard_core::rollout::Rollout as CoreRollout;
use std::sync::Arc;

use crate::rollout::Rollout;

/// A rollout, and how much better it was than the others of its group.
#[pyclass(frozen, subclass, module = "rollyard")]
pub(crate) struct RolloutWithAdvantage {
    /// Sampled rollouts become Python objects when somebody looks at them, and then stay the same object.
    shown: PyOnceLock<Py<PyAny>>,
    held: Option<Arc<CoreRollout>>,
    #[pyo3(get)]
    advantage: f64,
}

#[pymethods]
impl RolloutWithAdvantage {
    #[new]
    fn new(py: Python<'_>, rollout: Py<PyAny>, advantage: f64) -> Self {
        let shown = PyOnceLock::new();
        let _ = shown.set(py, rollout);
        Self { shown, held: None, advantage }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("rollout", "advantage")
    }

    #[getter]
    fn rollout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shown = self.shown.get_or_try_init(py, || match &self.held {
            Some(inner) => Ok(Bound::new(py, Rollout { inner: inner.clone() })?.into_any().unbind()),
            None => Ok::<_, PyErr>(py.None()),
        })?;
        Ok(shown.bind(py).clone())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("RolloutWithAdvantage({}, {:?})", self.rollout(py)?.repr()?, self.advantage))
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = slf.py();
        let Ok(other) = other.cast_exact::<Self>() else { return Ok(false) };
        let (own, other) = (slf.get(), other.get());
        Ok(own.advantage == other.advantage && own.rollout(py)?.eq(other.rollout(py)?)?)
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, f64)> {
        Ok((self.rollout(py)?, self.advantage))
    }
}

/// The same, and how often it was used, this time included.
#[pyclass(frozen, extends = RolloutWithAdvantage, module = "rollyard")]
pub(crate) struct RolloutWithCount {
    #[pyo3(get)]
    usage_count: u32,
    /// `None` for the rollout's own.
    weight_step: Option<i64>,
}

#[pymethods]
impl RolloutWithCount {
    #[new]
    #[pyo3(signature = (rollout, advantage, usage_count = 0, weight_step = 0))]
    fn of(
        py: Python<'_>,
        rollout: Py<PyAny>,
        advantage: f64,
        usage_count: u32,
        weight_step: i64,
    ) -> PyClassInitializer<Self> {
        let base = RolloutWithAdvantage::new(py, rollout, advantage);
        PyClassInitializer::from(base).add_subclass(Self { usage_count, weight_step: Some(weight_step) })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("rollout", "advantage", "usage_count", "weight_step")
    }

    /// The step whose weights sampled it.
    #[getter]
    fn weight_step(slf: &Bound<'_, Self>) -> i64 {
        let held = || slf.as_super().get().held.as_ref().map(|rollout| rollout.metadata.weight_step);
        slf.get().weight_step.or_else(held).unwrap_or_default()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (own, base) = (slf.get(), slf.as_super().get());
        Ok(format!(
            "RolloutWithCount({}, {:?}, usage_count={}, weight_step={})",
            base.rollout(slf.py())?.repr()?,
            base.advantage,
            own.usage_count,
            Self::weight_step(slf)
        ))
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = slf.py();
        let Ok(other) = other.cast_exact::<Self>() else { return Ok(false) };
        let (base, others_base) = (slf.as_super().get(), other.as_super().get());
        Ok(slf.get().usage_count == other.get().usage_count
            && Self::weight_step(slf) == Self::weight_step(other)
            && base.advantage == others_base.advantage
            && base.rollout(py)?.eq(others_base.rollout(py)?)?)
    }

    fn __getnewargs__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, f64, u32, i64)> {
        let (own, base) = (slf.get(), slf.as_super().get());
        Ok((base.rollout(slf.py())?, base.advantage, own.usage_count, Self::weight_step(slf)))
    }
}

impl RolloutWithCount {
    pub(super) fn new(py: Python<'_>, row: Sampled) -> PyResult<Bound<'_, Self>> {
        let Sampled { rollout, advantage, used } = row;
        // Its memory is not looked at before somebody asks.
        let own = Self { usage_count: used, weight_step: None };
        let advantage = f64::from(advantage);
        let base = RolloutWithAdvantage { shown: PyOnceLock::new(), held: Some(rollout), advantage };
        Bound::new(py, PyClassInitializer::from(base).add_subclass(own))
    }
}
