//! Every knob of a run, in one place.
//!
//! The struct below is the only list of knobs: command-line flags, the settings file, the HTTP API and
//! the reference page are all made from [`KNOBS`] and [`RunConfig::default`]. A change arrives as a JSON
//! object of some of the knobs ([`RunConfig::patched`]); numbers may be written as strings, because
//! slime's start payload does so.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::num::{NonZeroU32, NonZeroUsize};

use crate::pipeline::{Filter, Meta, Normalize, Pad, Transform, Validate};
use crate::replay::{Advantage, Balance, Limiter, ReplayError, Rules, SelectName};

/// What turns a limit off.
const NO_LIMIT: i64 = -1;

// In the log a configuration is its values in order: new knobs stand at the end, and a log from before them gives
// their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    pub task_type: String,
    pub group_size: NonZeroU32,
    pub min_valid_group_size_ratio: f64,
    pub min_valid_item_size_ratio: f64,
    pub group_timeout_seconds: f64,
    pub min_timeout_group_size_ratio: f64,
    pub version_spread_max: u64,

    pub validate: Validate,
    pub filter: Filter,
    pub normalize: Normalize,
    pub pad: Pad,
    pub meta: Meta,
    pub reward_min: f64,
    pub reward_max: f64,

    pub max_buffer_size: u64,
    pub max_buffer_bytes: u64,
    pub when_full: WhenFull,
    pub full_wait_seconds: f64,
    pub durability: Durability,

    pub lease_seconds: f64,
    pub auto_commit: bool,
    pub keep_commits: u32,

    pub mode: Mode,
    pub advantage: Advantage,
    pub replay_capacity: NonZeroU32,
    pub replay_select: SelectName,
    pub replay_alpha: f64,
    pub replay_balance: Balance,
    pub max_samples: i64,
    pub max_rollout_step_delay: i64,
    pub max_rollout_timestamp_delay: f64,
    pub max_token_step_delay: i64,
    pub limiter: LimiterName,
    pub limiter_size: u64,
    pub samples_per_insert: f64,
    pub limiter_error_buffer: f64,
    pub seed: u64,

    pub transform: Transform,
    pub hook_seconds: f64,
}

/// How often a rollout is trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Whole groups, each once, in the order they became ready.
    #[default]
    Queue,
    /// Single rollouts, sampled while they are fresh, as often as `max_samples` allows.
    Replay,
}

/// The names of the limiters; what they mean is in [`Limiter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimiterName {
    #[default]
    None,
    MinSize,
    Queue,
    Ratio,
}

/// What a write meets when the run holds as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Hold the writer until there is room, at most `full_wait_seconds`.
    Wait,
    /// Refuse at once, saying when to try again.
    Reject,
}

/// What an answered write has survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// On the disk: survives power loss.
    Fsync,
    /// With the operating system: survives `kill -9`, not power loss.
    Os,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            task_type: "default".to_owned(),
            group_size: NonZeroU32::new(8).expect("eight is not zero"),
            min_valid_group_size_ratio: 1.0,
            min_valid_item_size_ratio: 0.7,
            group_timeout_seconds: 300.0,
            min_timeout_group_size_ratio: 0.7,
            version_spread_max: 0,
            validate: Validate::Varied,
            filter: Filter::Range,
            normalize: Normalize::Grpo,
            pad: Pad::Repeat,
            meta: Meta::Rewards,
            reward_min: 0.0,
            reward_max: 1.0,
            max_buffer_size: 1_000_000_000,
            max_buffer_bytes: 256 << 30,
            when_full: WhenFull::Wait,
            full_wait_seconds: 30.0,
            durability: Durability::Fsync,
            lease_seconds: 600.0,
            auto_commit: true,
            keep_commits: 2,
            mode: Mode::Queue,
            advantage: Advantage::Rloo,
            replay_capacity: NonZeroU32::new(65_536).expect("a power of two is not zero"),
            replay_select: SelectName::Recency,
            replay_alpha: 3.0,
            replay_balance: Balance::Proportional,
            max_samples: 1,
            max_rollout_step_delay: 1,
            max_rollout_timestamp_delay: 3600.0,
            max_token_step_delay: -1,
            limiter: LimiterName::None,
            limiter_size: 1,
            samples_per_insert: 1.0,
            limiter_error_buffer: 1024.0,
            seed: 0,
            transform: Transform::None,
            hook_seconds: 30.0,
        }
    }
}

/// What a knob is for, in one line; its type and default come from [`RunConfig::default`].
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    pub name: &'static str,
    pub help: &'static str,
}

const fn knob(name: &'static str, help: &'static str) -> Knob {
    Knob { name, help }
}

pub const KNOBS: &[Knob] = &[
    knob("task_type", "Task the rollouts belong to; `math` brings its own validity rule"),
    knob("group_size", "Rollouts in a full group"),
    knob("min_valid_group_size_ratio", "Share of group_size at which a group is finished"),
    knob("min_valid_item_size_ratio", "Share of group_size that must pass the filter"),
    knob("group_timeout_seconds", "A group is finished this long after its last write"),
    knob("min_timeout_group_size_ratio", "Share of group_size a timed-out group needs to be used"),
    knob(
        "version_spread_max",
        "Weight versions a group may span; a rollout further off opens the next round",
    ),
    knob(
        "validate",
        "Group validity: `varied` (rewards not all equal), `answered` (the rule of math), `sized`, or `hook` (the \
         generator's is_valid_group)",
    ),
    knob(
        "filter",
        "Item filter: `range` (reward_min to reward_max), `none` or `hook` (the generator's filter_item)",
    ),
    knob(
        "normalize",
        "Rewards within a group: `grpo`, `center` (mean only), `none` or `hook` (the generator's normalize_group_data)",
    ),
    knob(
        "pad",
        "Short groups: `repeat` (rewards rescaled), `mask` (zero-weight rows), `none` or `hook` (the generator's \
         pad_group_data)",
    ),
    knob(
        "meta",
        "Statistics sent with a read: `rewards`, `none` or `hook` (the generator's get_group_data_meta_info)",
    ),
    knob("reward_min", "Smallest reward that passes the filter"),
    knob("reward_max", "Largest reward that passes the filter"),
    knob("max_buffer_size", "Rollouts the run may keep"),
    knob("max_buffer_bytes", "Bytes of rollouts the run may keep"),
    knob("when_full", "A write to a full run: `wait` or `reject`"),
    knob("full_wait_seconds", "Longest wait of a write to a full run"),
    knob(
        "durability",
        "An answered write is safe from power loss (`fsync`) or from kill -9 only (`os`); a change counts from the next start",
    ),
    knob("lease_seconds", "A lease not acked by then goes back to the pool"),
    knob("auto_commit", "Reads by plain slime clients are final at once, without commit(step)"),
    knob("keep_commits", "Commits whose rollouts are kept so that rewind can put them back"),
    knob(
        "mode",
        "`queue` (whole groups, each trained once) or `replay` (single rollouts, sampled while fresh); `replay` \
         starts with validate `sized` and filter `none`",
    ),
    knob(
        "advantage",
        "In replay mode: `rloo`, `grpo`, `grpo_no_std`, `dr_grpo`, `reinforce_pp`, `reinforce_pp_baseline` or `raw`",
    ),
    knob("replay_capacity", "Rollouts of one environment that can be sampled; the oldest make room"),
    knob("replay_select", "Which are sampled: `recency`, `uniform`, `oldest`, `newest` or `prioritised`"),
    knob(
        "replay_alpha",
        "Recency: the i-th oldest weighs (i+1)^alpha; prioritised: the exponent of |advantage|",
    ),
    knob("replay_balance", "Environments in a batch: `proportional` to what they hold, or `equal`"),
    knob("max_samples", "Times a rollout is sampled before it retires; -1 is no limit"),
    knob("max_rollout_step_delay", "Steps a rollout's weights may be behind the trainer; -1 is no limit"),
    knob("max_rollout_timestamp_delay", "Seconds since a rollout was made; negative is no limit"),
    knob(
        "max_token_step_delay",
        "Steps a token's weights may be behind the trainer; older tokens leave the loss; -1 is no limit",
    ),
    knob("limiter", "Keeps inserts and samples in step: `none`, `min_size`, `queue` or `ratio`"),
    knob(
        "limiter_size",
        "Rollouts held before the first sample (`min_size`, `ratio`), or ahead at most (`queue`)",
    ),
    knob("samples_per_insert", "How often each is sampled on average, for limiter `ratio`"),
    knob("limiter_error_buffer", "Samples that the two sides may be apart, for limiter `ratio`"),
    knob("seed", "What sampling in replay mode is drawn from"),
    knob("transform", "Rewrite of a valid group: `none` or `hook` (the generator's transform_group)"),
    knob("hook_seconds", "A call of a generator's hooks that takes longer counts as hanging"),
];

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("unknown setting {name:?}; known are: {}", known_names())]
    Unknown { name: String },
    #[error("{name} = {value} is not {expected}")]
    Invalid { name: String, value: String, expected: String },
}

impl ConfigError {
    /// The short name in error answers.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_setting",
            Self::Invalid { .. } => "invalid_setting",
        }
    }

    /// The setting that is to blame.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name } | Self::Invalid { name, .. } => name,
        }
    }
}

/// The knobs have other names for a few of the limiters' numbers.
impl From<ReplayError> for ConfigError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Setting { name, value, expected } => {
                let name = match name.as_str() {
                    "alpha" => "replay_alpha".to_owned(),
                    "size" | "min_size_to_sample" => "limiter_size".to_owned(),
                    "error_buffer" => "limiter_error_buffer".to_owned(),
                    _ => name,
                };
                Self::Invalid { name, value, expected }
            }
            other => {
                Self::Invalid { name: "replay".to_owned(), value: String::new(), expected: other.to_string() }
            }
        }
    }
}

fn known_names() -> String {
    KNOBS.iter().map(|knob| knob.name).collect::<Vec<_>>().join(", ")
}

impl RunConfig {
    /// This configuration with the settings in `changes` put in, or the first one that does not fit.
    pub fn patched(&self, changes: &Map<String, Value>) -> Result<Self, ConfigError> {
        let mut config = self.clone();
        if let Some(mode) = changes.get("mode") {
            config = config.with("mode", mode)?;
            if config.mode == Mode::Replay && self.mode == Mode::Queue {
                // Rewards of any size, and groups that teach nothing, are for the sampler's owner to judge.
                (config.validate, config.filter) = (Validate::Sized, Filter::None);
            }
        }
        for (name, value) in changes {
            config = config.with(name, value)?;
        }
        config.check()?;
        Ok(config)
    }

    /// The knobs as a JSON object, in the order of the struct.
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            other => unreachable!("a struct of plain fields is a JSON object: {other:?}"),
        }
    }

    fn with(&self, name: &str, value: &Value) -> Result<Self, ConfigError> {
        let mut map = self.to_map();
        let Some(slot) = map.get_mut(name) else {
            return Err(ConfigError::Unknown { name: name.to_owned() });
        };
        let expected = describe(name, slot);
        *slot = coerce(value, slot);
        serde_json::from_value(Value::Object(map)).map_err(|_| ConfigError::Invalid {
            name: name.to_owned(),
            value: value.to_string(),
            expected,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let invalid = |name: &str, value: f64, expected: &str| {
            Err(ConfigError::Invalid {
                name: name.to_owned(),
                value: value.to_string(),
                expected: expected.to_owned(),
            })
        };
        for (name, ratio) in [
            ("min_valid_group_size_ratio", self.min_valid_group_size_ratio),
            ("min_valid_item_size_ratio", self.min_valid_item_size_ratio),
            ("min_timeout_group_size_ratio", self.min_timeout_group_size_ratio),
        ] {
            if !(ratio > 0.0 && ratio <= 1.0) {
                return invalid(name, ratio, "a ratio above 0 and at most 1");
            }
        }
        for (name, secs) in [
            ("group_timeout_seconds", self.group_timeout_seconds),
            ("lease_seconds", self.lease_seconds),
            ("hook_seconds", self.hook_seconds),
        ] {
            if !(secs > 0.0 && secs.is_finite()) {
                return invalid(name, secs, "a number of seconds above 0");
            }
        }
        if !(self.full_wait_seconds >= 0.0 && self.full_wait_seconds.is_finite()) {
            return invalid("full_wait_seconds", self.full_wait_seconds, "a number of seconds, 0 or more");
        }
        if self.reward_min.is_nan() || self.reward_max.is_nan() || self.reward_min > self.reward_max {
            return invalid(
                "reward_min",
                self.reward_min,
                &format!("at most reward_max ({})", self.reward_max),
            );
        }
        for (name, limit) in
            [("max_buffer_size", self.max_buffer_size), ("max_buffer_bytes", self.max_buffer_bytes)]
        {
            if limit == 0 {
                return invalid(name, 0.0, "at least 1");
            }
        }
        for (name, limit, least) in [
            ("max_samples", self.max_samples, 1),
            ("max_rollout_step_delay", self.max_rollout_step_delay, 0),
            ("max_token_step_delay", self.max_token_step_delay, 0),
        ] {
            if limit < least && limit != NO_LIMIT {
                return invalid(name, limit as f64, &format!("at least {least}, or -1 for no limit"));
            }
        }
        if let (Mode::Replay, Some(name)) = (self.mode, self.hooked_steps().next()) {
            return Err(ConfigError::Invalid {
                name: name.to_owned(),
                value: "hook".to_owned(),
                expected: "possible in mode replay, which samples single rollouts".to_owned(),
            });
        }
        self.rules().check()?;
        self.limiter()?;
        Ok(())
    }

    /// The steps between a finished group and its rows that functions of the generator take.
    pub fn hooked_steps(&self) -> impl Iterator<Item = &'static str> + use<> {
        let steps = [
            ("validate", self.validate == Validate::Hook),
            ("transform", self.transform == Transform::Hook),
            ("filter", self.filter == Filter::Hook),
            ("normalize", self.normalize == Normalize::Hook),
            ("pad", self.pad == Pad::Hook),
        ];
        steps.into_iter().filter(|(_, hooked)| *hooked).map(|(name, _)| name)
    }

    /// Groups are made ready by functions outside the ledger.
    pub fn is_hooked(&self) -> bool {
        self.hooked_steps().next().is_some()
    }

    /// What the pool of a run in replay mode keeps and picks.
    pub fn rules(&self) -> Rules {
        let above = |limit: i64| u64::try_from(limit).ok();
        Rules {
            capacity: NonZeroUsize::try_from(self.replay_capacity).unwrap_or(NonZeroUsize::MAX),
            select: self.replay_select.with(self.replay_alpha),
            balance: self.replay_balance,
            max_samples: above(self.max_samples)
                .and_then(|max| NonZeroU32::new(u32::try_from(max).unwrap_or(u32::MAX))),
            step_delay_max: above(self.max_rollout_step_delay),
            // Not a number is for the check to find.
            age_secs_max: (self.max_rollout_timestamp_delay.is_nan()
                || self.max_rollout_timestamp_delay >= 0.0)
                .then_some(self.max_rollout_timestamp_delay),
            token_delay_max: above(self.max_token_step_delay),
        }
    }

    pub fn limiter(&self) -> Result<Limiter, ReplayError> {
        match self.limiter {
            LimiterName::None => Ok(Limiter::none()),
            LimiterName::MinSize => Limiter::min_size(self.limiter_size),
            LimiterName::Queue => Limiter::queue(self.limiter_size),
            LimiterName::Ratio => Limiter::sample_to_insert_ratio(
                self.samples_per_insert,
                self.limiter_size,
                self.limiter_error_buffer,
            ),
        }
    }

    /// Weight versions that a group may span: in replay mode as many as its rollouts may be apart anyway, because
    /// each is judged for itself.
    pub fn version_spread(&self) -> u64 {
        match self.mode {
            Mode::Queue => self.version_spread_max,
            Mode::Replay => {
                u64::try_from(self.max_rollout_step_delay).unwrap_or(u64::MAX).max(self.version_spread_max)
            }
        }
    }

    /// Rollouts at which a growing group is finished.
    pub fn finished_size(&self) -> usize {
        self.share(self.min_valid_group_size_ratio)
    }

    /// Rollouts a timed-out group needs to be used.
    pub fn timeout_size(&self) -> usize {
        self.share(self.min_timeout_group_size_ratio)
    }

    /// Rollouts that must pass the filter.
    pub fn valid_items(&self) -> usize {
        self.share(self.min_valid_item_size_ratio)
    }

    pub fn group_len(&self) -> usize {
        self.group_size.get() as usize
    }

    /// A ratio of the group size, rounded up and never 0.
    fn share(&self, ratio: f64) -> usize {
        // 0.7 * 10 is 7.000000000000001 in floats, which must not round up to 8.
        let exact = ratio * f64::from(self.group_size.get());
        ((exact - 1e-9).ceil() as usize).max(1)
    }
}

/// A string that spells a number or a truth value stands for it where one is wanted.
fn coerce(value: &Value, wanted: &Value) -> Value {
    match (value, wanted) {
        (Value::String(text), Value::Number(_) | Value::Bool(_)) => {
            serde_json::from_str(text.trim()).unwrap_or_else(|_| value.clone())
        }
        // A whole number written as 8.0, as Python's json does for floats, is still a whole number.
        (Value::Number(n), Value::Number(w)) if w.is_u64() && n.as_u64().is_none() => match n.as_f64() {
            Some(x) if x >= 0.0 && x.fract() == 0.0 && x < 9e15 => Value::from(x as u64),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

fn describe(name: &str, current: &Value) -> String {
    let choices = match name {
        "validate" => "\"varied\", \"answered\", \"sized\" or \"hook\"",
        "filter" => "\"range\", \"none\" or \"hook\"",
        "normalize" => "\"grpo\", \"center\", \"none\" or \"hook\"",
        "pad" => "\"repeat\", \"mask\", \"none\" or \"hook\"",
        "meta" => "\"rewards\", \"none\" or \"hook\"",
        "transform" => "\"none\" or \"hook\"",
        "when_full" => "\"wait\" or \"reject\"",
        "durability" => "\"fsync\" or \"os\"",
        "mode" => "\"queue\" or \"replay\"",
        "advantage" => {
            "\"rloo\", \"grpo\", \"grpo_no_std\", \"dr_grpo\", \"reinforce_pp\", \"reinforce_pp_baseline\" or \"raw\""
        }
        "replay_select" => "\"recency\", \"uniform\", \"oldest\", \"newest\" or \"prioritised\"",
        "replay_balance" => "\"proportional\" or \"equal\"",
        "limiter" => "\"none\", \"min_size\", \"queue\" or \"ratio\"",
        _ => match current {
            Value::Number(n) if n.is_u64() => "a whole number in range",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            _ => "a text",
        },
    };
    choices.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patch(changes: Value) -> Result<RunConfig, String> {
        let Value::Object(map) = changes else { panic!("a patch is an object") };
        RunConfig::default().patched(&map).map_err(|e| e.to_string())
    }

    #[test]
    fn every_knob_is_described_and_every_description_is_a_knob() {
        let fields: Vec<String> = RunConfig::default().to_map().keys().cloned().collect();
        let mut described: Vec<String> = KNOBS.iter().map(|k| k.name.to_owned()).collect();
        let mut sorted = fields;
        sorted.sort();
        described.sort();
        assert_eq!(sorted, described);
    }

    #[test]
    fn numbers_may_arrive_as_strings() {
        let config =
            patch(json!({"group_size": "16", "group_timeout_seconds": "12.5", "auto_commit": "false"}));
        let config = config.unwrap();
        assert_eq!(config.group_len(), 16);
        assert_eq!(config.group_timeout_seconds, 12.5);
        assert!(!config.auto_commit);
        assert_eq!(patch(json!({"group_size": 4.0})).unwrap().group_len(), 4);
    }

    #[test]
    fn a_bad_setting_is_named_with_its_value() {
        for (changes, parts) in [
            (json!({"group_sizes": 8}), vec!["group_sizes", "known are", "group_size"]),
            (json!({"group_size": 0}), vec!["group_size", "0", "whole number"]),
            (json!({"group_size": -3}), vec!["group_size", "-3"]),
            (json!({"group_size": "many"}), vec!["group_size", "many"]),
            (json!({"min_valid_item_size_ratio": 1.5}), vec!["min_valid_item_size_ratio", "1.5"]),
            (json!({"group_timeout_seconds": 0}), vec!["group_timeout_seconds", "0"]),
            (json!({"pad": "zeros"}), vec!["pad", "zeros", "repeat"]),
            (json!({"when_full": null}), vec!["when_full", "null", "wait"]),
            (json!({"reward_min": 2.0}), vec!["reward_min", "2", "reward_max"]),
            (json!({"max_buffer_bytes": 0}), vec!["max_buffer_bytes", "0"]),
            (json!({"mode": "ring"}), vec!["mode", "ring", "replay"]),
            (json!({"replay_capacity": -5}), vec!["replay_capacity", "-5", "whole number"]),
            (json!({"replay_capacity": 0}), vec!["replay_capacity", "0"]),
            (json!({"replay_alpha": "NaN"}), vec!["replay_alpha", "NaN"]),
            (json!({"replay_alpha": -0.5}), vec!["replay_alpha", "-0.5", "from 0"]),
            (json!({"hook_seconds": 0}), vec!["hook_seconds", "0"]),
            (json!({"mode": "replay", "pad": "hook"}), vec!["pad", "hook", "replay"]),
            (json!({"max_samples": 0}), vec!["max_samples", "0", "-1 for no limit"]),
            (json!({"max_rollout_step_delay": -2}), vec!["max_rollout_step_delay", "-2"]),
            (json!({"limiter": "queue", "limiter_size": 0}), vec!["limiter_size", "0", "at least 1"]),
            (
                json!({"limiter": "ratio", "samples_per_insert": 4, "limiter_error_buffer": 2}),
                vec!["limiter_error_buffer", "2", "at least 4"],
            ),
        ] {
            let message = patch(changes.clone()).unwrap_err();
            for part in parts {
                assert!(message.contains(part), "{changes}: {message:?} lacks {part:?}");
            }
        }
    }

    #[test]
    fn replay_starts_with_its_own_defaults_unless_they_are_named() {
        let config = patch(json!({"mode": "replay", "filter": "range"})).unwrap();
        assert_eq!((config.validate, config.filter), (Validate::Sized, Filter::Range));
        let map = json!({"max_samples": 4, "mode": "replay"}).as_object().unwrap().clone();
        let varied = config.patched(json!({"validate": "varied"}).as_object().unwrap()).unwrap();
        assert_eq!(varied.patched(&map).unwrap().validate, Validate::Varied);
    }

    #[test]
    fn ratios_round_up_and_never_to_zero() {
        for (size, ratio, expected) in
            [(8, 1.0, 8), (8, 0.7, 6), (10, 0.7, 7), (1, 0.01, 1), (3, 0.5, 2), (100, 0.07, 7)]
        {
            let config = patch(json!({"group_size": size, "min_valid_group_size_ratio": ratio})).unwrap();
            assert_eq!(config.finished_size(), expected, "{ratio} of {size}");
        }
    }
}
