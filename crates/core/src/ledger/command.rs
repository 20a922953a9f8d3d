//! What can be asked of a ledger, and how it says no.

use serde_json::{Map, Value};

use super::group::Uid;
use super::note::GeneratorState;
use super::shape::Ruling;
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::replay::ReplayError;
use crate::run_config::ConfigError;
use crate::wire::item::{Item, ItemError};

#[derive(Clone, Debug)]
pub enum Command {
    /// Turn the knobs that are named; `start` is the payload that asked for it, if it was a start.
    Configure {
        changes: Map<String, Value>,
        start: Option<String>,
    },
    Admit {
        item: Item,
        digest: u64,
        size_bytes: u32,
    },
    /// Stop waiting for more rollouts of an instance and judge what is there.
    CloseGroup {
        instance: String,
    },
    Lease {
        want: Want,
        terms: LeaseTerms,
    },
    Ack {
        lease: LeaseNo,
    },
    Return {
        lease: LeaseNo,
    },
    /// Keep a lease for so many more seconds from now.
    Extend {
        lease: LeaseNo,
        secs: f64,
    },
    /// Tie acked leases, all or the named ones, to a checkpoint.
    Commit {
        step: u64,
        leases: Option<Vec<LeaseNo>>,
    },
    /// Put back everything consumed after a step.
    Rewind {
        step: u64,
    },
    SetVersion {
        version: u64,
    },
    /// Say where the trainer is, which makes rollouts too old.
    SetStep {
        step: u64,
    },
    /// Draw rollouts in a run that samples.
    Sample {
        draw: Draw,
        terms: LeaseTerms,
    },
    /// Take a held rollout out because somebody wishes it.
    Drop {
        uid: String,
    },
    /// Take a rollout out because its bytes are damaged, wherever it is.
    Discard {
        uid: Uid,
    },
    /// Put back everything that is still kept, as if nothing had ever been trained on.
    RewindToStart,
    /// What the generator's functions said of a group, which had the fingerprint `seen` then.
    Judge {
        group: GroupNo,
        seen: u64,
        ruling: Ruling,
    },
    /// Something happened to the run's generator.
    Note {
        state: Option<GeneratorState>,
        told: String,
    },
    /// The run's generator begins anew what it has not finished: take out what it had of groups that wait for more.
    /// Rollouts that name their epoch stay, since whoever writes those goes on where it was.
    DropOpen,
    /// Let timeouts happen.
    Tick,
}

/// How much a reader wants. Groups are never split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// All that is ready, at least one group.
    All,
    /// Exactly so many groups.
    Groups(usize),
    /// As few groups as give so many rows.
    Rows(usize),
}

/// What a trainer wants to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Rollouts, for all ranks together.
    pub count: usize,
    /// For which step of the trainer; one batch is drawn for a step, whoever asks and however often.
    pub step: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeaseTerms {
    pub reader: String,
    /// `None` takes the run's `lease_seconds`.
    pub secs: Option<f64>,
    pub auto: bool,
}

/// A command that was understood and cannot be done. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Setting(#[from] ConfigError),
    #[error(
        "uid {uid:?} is already taken by another rollout (instance {instance:?}); give every rollout its own uid"
    )]
    UidTaken { uid: String, instance: String },
    #[error(
        "the run keeps {items} rollouts in {bytes} bytes and may keep {items_max} in {bytes_max}{}; read, ack or commit to make room",
        retained_hint(*.retained)
    )]
    Full { items: u64, bytes: u64, items_max: u64, bytes_max: u64, retained: u64 },
    #[error("a rollout of {size_bytes} bytes can never fit: max_buffer_bytes is {bytes_max}")]
    TooLarge { size_bytes: u64, bytes_max: u64 },
    #[error("lease {lease} {}", .why)]
    LeaseGone { lease: LeaseNo, why: String },
    #[error("lease {lease} is acked already; only a rewind can put it back")]
    LeaseAcked { lease: LeaseNo },
    #[error("lease {lease} is unknown: this run has granted {granted}")]
    LeaseUnknown { lease: LeaseNo, granted: u64 },
    #[error("lease {lease} is not acked yet; ack it before committing it")]
    NotAcked { lease: LeaseNo },
    #[error("step {step} is not after step {last}, the last commit; rewind to an earlier step first")]
    StepNotAfter { step: u64, last: u64 },
    #[error(
        "cannot rewind to step {step}: rollouts up to step {floor} are gone (keep_commits = {keep_commits})"
    )]
    TooFarBack { step: i64, floor: u64, keep_commits: u32 },
    #[error("no rollout with uid {uid:?} is held")]
    RolloutUnknown { uid: String },
    #[error("rollout {uid:?} is in lease {lease}; only a held one can be dropped")]
    RolloutBusy { uid: String, lease: LeaseNo },
    #[error("instance {instance:?} has no open group")]
    NoOpenGroup { instance: String },
    #[error("{secs} seconds is not a time a lease can last; it must be above 0")]
    BadLeaseTime { secs: f64 },
    #[error("the run is in {mode} mode, which cannot {what}; make a run with mode = {needed:?} for it")]
    WrongMode { mode: &'static str, what: &'static str, needed: &'static str },
    #[error("mode cannot be changed while the run keeps {items} rollouts; make another run")]
    ModeFixed { items: u64 },
    #[error("{0}")]
    Item(ItemError),
    #[error(
        "rollout {uid:?} says no weight_version, and the run has none; a run in replay mode needs to know the weights \
         that sampled it"
    )]
    NoVersion { uid: String },
    #[error(
        "rollout {uid:?} was sampled with weights {version}, but the trainer is at step {step}; set the step first"
    )]
    FutureStep { uid: String, version: u64, step: i64 },
    #[error("the batch of step {step} has {found} rollouts, not {count}; every rank must ask for the same")]
    BatchDiffers { step: u64, found: usize, count: usize },
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

fn retained_hint(retained: u64) -> String {
    if retained == 0 {
        return String::new();
    }
    format!(" ({retained} of them are acked and kept for a rewind until later commits)")
}

impl Refusal {
    /// Whether it can pass if somebody reads: a writer may wait for that.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Replay(ReplayError::Paced { .. }))
    }

    /// The short name in error answers.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Setting(error) => error.code(),
            Self::UidTaken { .. } => "uid_taken",
            Self::Full { .. } => "full",
            Self::TooLarge { .. } => "too_large",
            Self::LeaseGone { .. } => "lease_gone",
            Self::LeaseAcked { .. } => "lease_acked",
            Self::LeaseUnknown { .. } => "lease_unknown",
            Self::NotAcked { .. } => "lease_not_acked",
            Self::StepNotAfter { .. } => "step_not_after",
            Self::TooFarBack { .. } => "too_far_back",
            Self::RolloutUnknown { .. } => "rollout_unknown",
            Self::RolloutBusy { .. } => "rollout_busy",
            Self::NoOpenGroup { .. } => "no_open_group",
            Self::BadLeaseTime { .. } => "bad_lease_time",
            Self::WrongMode { .. } => "wrong_mode",
            Self::ModeFixed { .. } => "mode_fixed",
            Self::Item(error) => error.code(),
            Self::NoVersion { .. } => "missing_metadata",
            Self::FutureStep { .. } => "future_step",
            Self::BatchDiffers { .. } => "batch_differs",
            Self::Replay(error) => error.code(),
        }
    }
}

/// How far ahead a deadline may lie: ten years.
pub(super) const LEASE_SECS_MAX: f64 = 315_360_000.0;

pub(super) fn deadline(now: Time, secs: f64) -> Result<Time, Refusal> {
    if secs.is_nan() || secs <= 0.0 {
        return Err(Refusal::BadLeaseTime { secs });
    }
    Ok(now.after_secs(secs.min(LEASE_SECS_MAX)))
}
