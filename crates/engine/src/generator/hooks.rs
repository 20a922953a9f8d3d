//! Calls the hooks of a generator: what it makes of groups, and of all that arrived.
//!
//! A call takes many groups at once, because a pipe and a Python function cost the same for one as for a hundred.
//! What the hooks leave of a group comes back as what differs from its rollouts.

use rollyard_core::ledger::{PosedGroup, Ruling, Shape, ShapedRow};
use rollyard_core::pipeline::{DropReason, Filter, Normalize, Pad, Stage};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::row::Changes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

use super::{Generator, Hook};
use crate::host::{HostError, Load};

const REVIEW: &str = "rollyard.generator.child.review";
const META: &str = "rollyard.generator.child.meta";

/// A group's rows may differ from its rollouts by so much; the ledger keeps it in memory.
const CHANGES_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Debug, thiserror::Error)]
pub enum HookError {
    #[error("the hooks did not return within {secs} s (hook_seconds)")]
    Hangs { secs: f64 },
    #[error("the process of the hooks ended: {0}")]
    Died(String),
    #[error("{0}")]
    Raised(String),
    /// No group is to blame for it.
    #[error("the hooks cannot be called: {0}")]
    Unavailable(String),
    #[error("what the hooks returned is not understood: {0}")]
    Shape(String),
}

impl From<HostError> for HookError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Raised { told, .. } => Self::Raised(told),
            error => Self::Died(error.to_string()),
        }
    }
}

/// A group that the hooks are to judge, with its rollouts as they came.
#[derive(Debug)]
pub struct Candidate {
    pub posed: PosedGroup,
    pub items: Vec<Box<RawValue>>,
}

impl Generator {
    /// What the hooks say of each group. Groups that are judged together have one size.
    pub async fn review(
        &self,
        config: &RunConfig,
        candidates: &[Candidate],
        within: Duration,
    ) -> Result<Vec<Ruling>, HookError> {
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        let groups: Vec<Group<'_>> = candidates.iter().map(Group::of).collect();
        let groups = serde_json::to_string(&groups).map_err(unspeakable)?;
        let arguments = self.arguments(&[self.order(config, &first.posed).to_string(), groups])?;
        let answer = self.call(REVIEW, &arguments, within).await?;
        let judged: Vec<Judged> =
            serde_json::from_str(answer.get()).map_err(|error| misread(&error, &answer))?;
        if judged.len() != candidates.len() {
            let told = format!("{} answers for {} groups", judged.len(), candidates.len());
            return Err(HookError::Shape(told));
        }
        Ok(judged
            .into_iter()
            .zip(candidates)
            .map(|(judged, candidate)| judged.ruling(&candidate.posed))
            .collect())
    }

    /// What `get_group_data_meta_info` makes of the rollouts that arrived: `{"instance": [item, …]}` in JSON.
    pub async fn meta(
        &self,
        arrived: String,
        within: Duration,
    ) -> Result<serde_json::Map<String, Value>, HookError> {
        let arguments = self.arguments(&[arrived])?;
        let answer = self.call(META, &arguments, within).await?;
        serde_json::from_str(answer.get()).map_err(|error| misread(&error, &answer))
    }

    /// Which steps the hooks take, which are left out, and how the rest go. A knob may still say `hook` when the file
    /// has lost the function: then the step is ours again.
    fn order(&self, config: &RunConfig, posed: &PosedGroup) -> Value {
        let hooked: BTreeSet<&str> = config.hooked_steps().collect();
        let is_hooked = |hook: &Hook| hooked.contains(hook.knob()) && self.hooks.contains(hook);
        let hooks: Vec<&str> = Hook::ALL.into_iter().filter(is_hooked).map(Hook::name).collect();
        let left_out = [
            // Judged before the group was posed.
            (Hook::IsValidGroup, !hooked.contains("validate")),
            (Hook::FilterItem, config.filter == Filter::None),
            (Hook::NormalizeGroupData, config.normalize == Normalize::None),
            (Hook::PadGroupData, config.pad == Pad::None),
        ];
        let skip: Vec<&str> =
            left_out.into_iter().filter(|(_, out)| *out).map(|(hook, _)| hook.name()).collect();
        json!({
            "task_type": config.task_type,
            "group_size": posed.group_size,
            "min_valid_group_size": posed.min_size,
            "valid_items": posed.valid_items,
            "hooks": hooks,
            "skip": skip,
            "defaults": {
                "reward_min": config.reward_min,
                "reward_max": config.reward_max,
                "normalize": config.normalize,
                "pad": config.pad,
            },
        })
    }

    /// The file and its version, then what is particular to the function.
    fn arguments(&self, more: &[String]) -> Result<Box<RawValue>, HookError> {
        let file = Value::from(self.file.display().to_string());
        let args = [&[file.to_string(), self.stamp.to_string()], more].concat().join(",");
        RawValue::from_string(format!("{{\"args\":[{args}],\"kwargs\":{{}}}}")).map_err(unspeakable)
    }

    async fn call(
        &self,
        function: &str,
        arguments: &RawValue,
        within: Duration,
    ) -> Result<Box<RawValue>, HookError> {
        // Waits for a process that is being replaced: its start is not the hooks' time.
        let load = self.host.load(Load::Function { path: function.to_owned() }).await;
        let handle = load.map_err(|error| HookError::Unavailable(error.to_string()))?;
        let pids = self.host.vouch();
        let outcome = timeout(within, self.host.call(handle, arguments)).await;
        // The next call must not meet a process that hangs or is about to end.
        if !matches!(outcome, Ok(Ok(_) | Err(HostError::Raised { .. }))) {
            self.host.replace(&pids).await;
        }
        match outcome {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(HookError::Hangs { secs: within.as_secs_f64() }),
        }
    }
}

#[derive(Serialize)]
struct Group<'a> {
    group: u64,
    instance_id: &'a str,
    stage: Stage,
    min_size: usize,
    items: &'a [Box<RawValue>],
}

impl<'a> Group<'a> {
    fn of(Candidate { posed, items }: &'a Candidate) -> Self {
        let PosedGroup { group, instance, stage, min_size, .. } = posed;
        Self { group: group.0, instance_id: instance, stage: *stage, min_size: *min_size, items }
    }
}

fn unspeakable(error: serde_json::Error) -> HookError {
    HookError::Shape(format!("a group cannot be told to them: {error}"))
}

fn misread(error: &serde_json::Error, answer: &RawValue) -> HookError {
    let told: String = answer.get().chars().take(200).collect();
    HookError::Shape(format!("{error} in {told}"))
}

/// What is said of one group.
#[derive(Debug, Deserialize)]
struct Judged {
    group: u64,
    #[serde(default)]
    waiting: bool,
    #[serde(default)]
    too_few_valid: bool,
    invalid: Option<String>,
    failed: Option<String>,
    rows: Option<Vec<JudgedRow>>,
}

#[derive(Debug, Deserialize)]
struct JudgedRow {
    member: Option<u32>,
    #[serde(default)]
    set: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    unset: BTreeSet<String>,
}

impl Judged {
    fn ruling(self, posed: &PosedGroup) -> Ruling {
        let failed = |why: String| Ruling::Drop { reason: DropReason::HookFailed, why: Some(why) };
        if self.group != posed.group.0 {
            return failed(format!("an answer about group {} for group {}", self.group, posed.group));
        }
        match self {
            Self { waiting: true, .. } => Ruling::Waiting,
            Self { too_few_valid: true, .. } => Ruling::Drop { reason: DropReason::TooFewValid, why: None },
            Self { invalid: Some(why), .. } => {
                Ruling::Drop { reason: DropReason::HookRejected, why: Some(why) }
            }
            Self { failed: Some(why), .. } => failed(why),
            Self { rows: Some(rows), .. } => match shape(rows, posed) {
                Ok(shape) => Ruling::Use(shape),
                Err(why) => failed(why),
            },
            Self { rows: None, .. } => failed("an answer without a verdict".to_owned()),
        }
    }
}

fn shape(rows: Vec<JudgedRow>, posed: &PosedGroup) -> Result<Shape, String> {
    let rows: Vec<ShapedRow> = rows.into_iter().map(|row| row.shaped(posed)).collect::<Result<_, _>>()?;
    let bytes: usize = rows.iter().filter_map(|row| row.changes.as_ref()).map(|changes| changes.len()).sum();
    if bytes > CHANGES_BYTES_MAX {
        return Err(format!(
            "the hooks changed {bytes} bytes of the group, and may change {CHANGES_BYTES_MAX}"
        ));
    }
    Ok(Shape { rows })
}

impl JudgedRow {
    /// Nearly always only the reward differs, and a copy's uid; these need no JSON.
    fn shaped(mut self, posed: &PosedGroup) -> Result<ShapedRow, String> {
        let member = self.member.unwrap_or_default();
        let Some(rollout) = posed.rollouts.get(member as usize) else {
            return Err(format!("a row of rollout {member}, of {}", posed.rollouts.len()));
        };
        let anew = self.member.is_none();
        let number = |value: &RawValue| serde_json::from_str::<f64>(value.get()).ok();
        let reward = match self.set.remove("reward") {
            Some(value) => number(&value).ok_or_else(|| format!("a row with the reward {value}"))?,
            None => rollout.reward,
        };
        // The reader is told the reward that came in, unless somebody says otherwise.
        if self.set.get("raw_reward").is_some_and(|value| number(value) == Some(rollout.reward)) {
            self.set.remove("raw_reward");
        }
        let copy = self.copy_no();
        if copy.is_some() {
            self.set.remove("uid");
            self.set.remove("padded");
        }
        let changes = Changes { anew, set: self.set, unset: self.unset };
        let changes = if anew || !changes.set.is_empty() || !changes.unset.is_empty() {
            Some(Arc::from(serde_json::to_string(&changes).map_err(|error| error.to_string())?))
        } else {
            None
        };
        Ok(ShapedRow { member, reward, copy, changes })
    }

    /// The number in a uid that marks a copy as ours do.
    fn copy_no(&self) -> Option<u32> {
        if self.member.is_none() || self.set.get("padded")?.get() != "true" {
            return None;
        }
        let uid: String = serde_json::from_str(self.set.get("uid")?.get()).ok()?;
        uid.rsplit_once("#pad")?.1.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollyard_core::ids::{GroupNo, Place};
    use rollyard_core::ledger::{PosedRollout, Uid};

    /// A full group of two, with rewards 0 and 1.
    fn posed() -> PosedGroup {
        let rollout = |reward: f64| {
            let uid = Uid::of(&reward.to_string());
            PosedRollout { uid, reward, place: Place(0), size_bytes: 10 }
        };
        PosedGroup {
            group: GroupNo(7),
            instance: "i".into(),
            stage: Stage::Full,
            min_size: 2,
            group_size: 2,
            valid_items: 2,
            seen: 0,
            rollouts: vec![rollout(0.0), rollout(1.0)],
        }
    }

    fn ruling(judged: Value) -> Ruling {
        serde_json::from_value::<Judged>(judged).unwrap().ruling(&posed())
    }

    #[test]
    fn rows_are_kept_as_what_differs() {
        let row = |member, reward, copy, changes: Option<&str>| ShapedRow {
            member,
            reward,
            copy,
            changes: changes.map(Arc::from),
        };
        for (what, rows, expected) in [
            ("nothing", json!([{"member": 1}]), row(1, 1.0, None, None)),
            (
                "the reward, and the one before that the ledger knows",
                json!([{"member": 1, "set": {"reward": -2.5, "raw_reward": 1}}]),
                row(1, -2.5, None, None),
            ),
            (
                "a copy that is marked as ours are",
                json!([{"member": 0, "set": {"uid": "a#pad3", "padded": true, "reward": 0.5}}]),
                row(0, 0.5, Some(3), None),
            ),
            (
                "a copy with a uid of its own",
                json!([{"member": 0, "set": {"uid": "b", "padded": true}}]),
                row(0, 0.0, None, Some(r#"{"set":{"padded":true,"uid":"b"},"unset":[]}"#)),
            ),
            (
                "fields",
                json!([{"member": 0, "set": {"raw_reward": 4, "x": [1]}, "unset": ["y"]}]),
                row(0, 0.0, None, Some(r#"{"set":{"raw_reward":4,"x":[1]},"unset":["y"]}"#)),
            ),
            (
                "everything",
                json!([{"member": null, "set": {"uid": "new", "reward": 2}}]),
                row(0, 2.0, None, Some(r#"{"anew":true,"set":{"uid":"new"},"unset":[]}"#)),
            ),
        ] {
            let expected = Ruling::Use(Shape { rows: vec![expected] });
            assert_eq!(ruling(json!({"group": 7, "rows": rows})), expected, "{what}");
        }
    }

    #[test]
    fn every_verdict_has_its_ruling() {
        let drop = |reason, why: Option<&str>| Ruling::Drop { reason, why: why.map(str::to_owned) };
        let failed = |why| drop(DropReason::HookFailed, Some(why));
        for (judged, expected) in [
            (json!({"group": 7, "waiting": true}), Ruling::Waiting),
            (json!({"group": 7, "too_few_valid": true}), drop(DropReason::TooFewValid, None)),
            (json!({"group": 7, "invalid": "no"}), drop(DropReason::HookRejected, Some("no"))),
            (json!({"group": 7, "failed": "KeyError"}), failed("KeyError")),
            (json!({"group": 7}), failed("an answer without a verdict")),
            (json!({"group": 8, "waiting": true}), failed("an answer about group 8 for group 7")),
            (json!({"group": 7, "rows": [{"member": 2}]}), failed("a row of rollout 2, of 2")),
            (
                json!({"group": 7, "rows": [{"member": 0, "set": {"reward": "high"}}]}),
                failed("a row with the reward \"high\""),
            ),
        ] {
            assert_eq!(ruling(judged.clone()), expected, "{judged}");
        }
    }
}
