//! Numbers that workflows record: how many, their mean, the least and the greatest, by scope and name.
//!
//! They are kept as sums, so that what a worker process recorded is added to what its parent has, and nothing
//! is counted twice: whoever passes them on takes them away.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is known of the values under one name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    pub count: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
}

impl Scalar {
    pub fn of(value: f64) -> Self {
        Self { count: 1, sum: value, min: value, max: value }
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// By scope, then by name.
pub type Recorded = BTreeMap<String, BTreeMap<String, Scalar>>;

/// The value cannot be averaged with others.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the statistic {name:?} of {scope:?} is {value}, but must be a finite number")]
pub struct NotFinite {
    scope: String,
    name: String,
    value: f64,
}

/// What one process has recorded.
#[derive(Debug, Default)]
pub struct Stats {
    recorded: Mutex<Recorded>,
}

impl Stats {
    pub const fn new() -> Self {
        Self { recorded: Mutex::new(BTreeMap::new()) }
    }

    pub fn record(&self, scope: &str, name: &str, value: f64) -> Result<(), NotFinite> {
        if !value.is_finite() {
            return Err(NotFinite { scope: scope.to_owned(), name: name.to_owned(), value });
        }
        self.add(scope, name, &Scalar::of(value));
        Ok(())
    }

    /// Adds what another process recorded.
    pub fn merge(&self, other: &Recorded) {
        for (scope, names) in other {
            for (name, scalar) in names {
                self.add(scope, name, scalar);
            }
        }
    }

    pub fn get(&self) -> Recorded {
        self.lock().clone()
    }

    /// All of it, and begins anew.
    pub fn take(&self) -> Recorded {
        std::mem::take(&mut self.lock())
    }

    fn add(&self, scope: &str, name: &str, scalar: &Scalar) {
        let mut recorded = self.lock();
        // Names repeat; only the first of each is worth an allocation.
        if let Some(known) = recorded.get_mut(scope).and_then(|names| names.get_mut(name)) {
            known.add(scalar);
        } else {
            recorded.entry(scope.to_owned()).or_default().insert(name.to_owned(), *scalar);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recorded> {
        // Sums are whole after every addition, whatever became of the thread that made it.
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_and_merged_is_what_was_recorded() {
        let (child, parent) = (Stats::new(), Stats::new());
        for value in [1.0, 0.0, 5.0] {
            child.record("rollout", "reward", value).unwrap();
        }
        parent.record("rollout", "reward", -2.0).unwrap();
        parent.merge(&child.take());
        parent.merge(&child.take());
        let scalar = parent.get()["rollout"]["reward"];
        assert_eq!(scalar, Scalar { count: 4, sum: 4.0, min: -2.0, max: 5.0 });
        assert!((scalar.mean() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_number_that_is_none_is_refused_by_its_name() {
        let told = Stats::new().record("rollout", "reward", f64::NAN).unwrap_err().to_string();
        assert_eq!(told, "the statistic \"reward\" of \"rollout\" is NaN, but must be a finite number");
    }
}
