//! What Python says of a buffer, once, checked by name.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rollyard_core::replay::{
    Balance, BatchShare, BufferConfig, Limiter, ReplayError, Rules, SelectName, ZeroVariance,
};
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::num::NonZeroUsize;

/// The knobs with the names that Python has for them; negative is no limit.
#[derive(FromPyObject)]
pub(crate) struct WireConfig {
    #[pyo3(item)]
    capacity: i64,
    #[pyo3(item)]
    local_batch_size: i64,
    #[pyo3(item)]
    total_processes: i64,
    #[pyo3(item)]
    process_id: i64,
    #[pyo3(item)]
    alpha: f64,
    #[pyo3(item)]
    max_samples: i64,
    #[pyo3(item)]
    max_rollout_step_delay: i64,
    #[pyo3(item)]
    max_rollout_timestamp_delay: f64,
    #[pyo3(item)]
    max_token_step_delay: i64,
    #[pyo3(item)]
    filter_out_groups_with_no_variance: bool,
    #[pyo3(item)]
    advantage: String,
    #[pyo3(item)]
    select: String,
    #[pyo3(item)]
    balance: String,
    #[pyo3(item)]
    limiter: WireLimiter,
    #[pyo3(item)]
    seed: i64,
}

impl WireConfig {
    pub(super) fn read(config: &Bound<'_, PyAny>) -> PyResult<Self> {
        config.extract().map_err(|error: PyErr| {
            // "failed to extract field WireConfig.capacity" has the name at its end, and the reason as its cause.
            let py = config.py();
            let told = error.value(py).to_string();
            let name = told.rsplit('.').next().unwrap_or_default();
            let reason = error.cause(py).map(|cause| cause.value(py).to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("{name}: {reason}"))
        })
    }

    pub(super) fn into_core(self) -> Result<BufferConfig, ReplayError> {
        let rules = Rules {
            capacity: at_least_1("capacity", self.capacity)?,
            select: named::<SelectName>("select", &self.select)?.with(self.alpha),
            balance: named::<Balance>("balance", &self.balance)?,
            max_samples: match self.max_samples {
                ..0 => None,
                times => {
                    Some(at_least_1("max_samples", times)?.try_into().map_err(|_| {
                        setting("max_samples", times, "at most 4294967295, or -1 for no limit")
                    })?)
                }
            },
            step_delay_max: u64::try_from(self.max_rollout_step_delay).ok(),
            age_secs_max: Some(self.max_rollout_timestamp_delay).filter(|secs| *secs >= 0.0 || secs.is_nan()),
            token_delay_max: u64::try_from(self.max_token_step_delay).ok(),
        };
        let share = BatchShare {
            local_batch_size: at_least_1("local_batch_size", self.local_batch_size)?,
            total_processes: at_least_1("total_processes", self.total_processes)?,
            process_id: usize::try_from(self.process_id)
                .map_err(|_| setting("process_id", self.process_id, "at least 0"))?,
        };
        let zero_variance = match self.filter_out_groups_with_no_variance {
            true => ZeroVariance::Drop,
            false => ZeroVariance::Keep,
        };
        Ok(BufferConfig {
            rules,
            share,
            advantage: named("loss_module", &self.advantage)?,
            zero_variance,
            limiter: self.limiter.into_core()?,
            // Every number is a seed of its own, a negative one too.
            seed: self.seed.cast_unsigned(),
        })
    }
}

/// One of `rollyard.limiters`, by the name of its class.
pub(crate) enum WireLimiter {
    None,
    SampleToInsertRatio { samples_per_insert: f64, min_size_to_sample: i64, error_buffer: f64 },
    MinSize { min_size_to_sample: i64 },
    Queue { size: i64 },
}

impl<'a, 'py> FromPyObject<'a, 'py> for WireLimiter {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::None);
        }
        let kind = given.get_type().name()?;
        match kind.to_str()? {
            "SampleToInsertRatio" => Ok(Self::SampleToInsertRatio {
                samples_per_insert: given.getattr("samples_per_insert")?.extract()?,
                min_size_to_sample: given.getattr("min_size_to_sample")?.extract()?,
                error_buffer: given.getattr("error_buffer")?.extract()?,
            }),
            "MinSize" => {
                Ok(Self::MinSize { min_size_to_sample: given.getattr("min_size_to_sample")?.extract()? })
            }
            "Queue" => Ok(Self::Queue { size: given.getattr("size")?.extract()? }),
            other => Err(PyTypeError::new_err(format!(
                "a {other} was given; give a SampleToInsertRatio, MinSize or Queue of rollyard.limiters, or None"
            ))),
        }
    }
}

impl WireLimiter {
    fn into_core(self) -> Result<Limiter, ReplayError> {
        // The core refuses 0 with its own words.
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        match self {
            Self::None => Ok(Limiter::none()),
            Self::SampleToInsertRatio { samples_per_insert, min_size_to_sample, error_buffer } => {
                Limiter::sample_to_insert_ratio(samples_per_insert, count(min_size_to_sample), error_buffer)
            }
            Self::MinSize { min_size_to_sample } => Limiter::min_size(count(min_size_to_sample)),
            Self::Queue { size } => Limiter::queue(count(size)),
        }
    }
}

fn at_least_1(name: &str, value: i64) -> Result<NonZeroUsize, ReplayError> {
    let number = usize::try_from(value).ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| setting(name, value, "at least 1"))
}

/// A knob that is one of a few words; the core knows which.
fn named<T: DeserializeOwned>(name: &str, word: &str) -> Result<T, ReplayError> {
    serde_json::from_value(word.into()).map_err(|error| {
        let known = error.to_string();
        let known = known.split_once(", ").map_or(known.as_str(), |(_, known)| known).replace('`', "");
        setting(name, format!("{word:?}"), known.trim_start_matches("expected "))
    })
}

fn setting(name: &str, value: impl Display, expected: &str) -> ReplayError {
    ReplayError::Setting { name: name.to_owned(), value: value.to_string(), expected: expected.to_owned() }
}
