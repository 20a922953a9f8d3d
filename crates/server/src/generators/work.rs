//! What a run's generator is to do, and who does it.

use rollyard_core::run_config::KNOBS;
use rollyard_engine::generator::Generator;
use rollyard_engine::task::StartPayload;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Who makes the rollouts of a task.
#[derive(Clone, Debug)]
pub(crate) enum Maker {
    /// A file of the user's, in a process of its own.
    File(Arc<Generator>),
    /// The task `math`, in this process.
    BuiltIn,
    /// Somebody else, who writes to us.
    External,
}

impl Maker {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::BuiltIn => "built_in",
            Self::External => "external",
        }
    }

    pub(crate) fn file(&self) -> Option<&Arc<Generator>> {
        match self {
            Self::File(generator) => Some(generator),
            Self::BuiltIn | Self::External => None,
        }
    }
}

/// A start payload with somebody to carry it out.
#[derive(Debug)]
pub(crate) struct Work {
    pub(super) maker: Maker,
    pub(super) task_type: String,
    /// As it was sent.
    pub(super) payload: Map<String, Value>,
    /// It was begun before: what is finished is not made again.
    pub(super) resumes: bool,
}

impl Work {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.maker.kind() == other.maker.kind() && is_same_work(&self.payload, &other.payload)
    }
}

/// Whether a second start is the first one again. Knobs are the run's affair, and a trainer that comes back skips
/// more: both may differ.
pub(crate) fn is_same_work(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    if let (Ok(one), Ok(other)) = (StartPayload::parse(one), StartPayload::parse(other))
        && !one.same_work(&other)
    {
        return false;
    }
    let is_knob = |name: &str| KNOBS.iter().any(|knob| knob.name == name) && name != "task_type";
    let counts = |(name, _): &(&String, &Value)| *name != "skip_instance_ids" && !is_knob(name);
    one.iter().filter(counts).eq(other.iter().filter(counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_start_is_the_same_work_if_only_knobs_and_what_is_skipped_differ() {
        let first = json!({"task_type": "t", "input_file": "a", "skip_instance_ids": ["1"], "group_size": 4});
        for (second, is_same) in [
            (json!({"group_size": 8, "input_file": "a", "task_type": "t"}), true),
            (json!({"task_type": "t", "input_file": "a", "skip_instance_ids": []}), true),
            (json!({"task_type": "u", "input_file": "a"}), false),
            (json!({"task_type": "t", "input_file": "b"}), false),
            (json!({"task_type": "t", "input_file": "a", "num_epoch": 2}), false),
        ] {
            let (one, other) = (first.as_object().unwrap(), second.as_object().unwrap());
            assert_eq!(is_same_work(one, other), is_same, "{second}");
        }
    }
}
