//! A group: the rollouts of one instance in one round, and where it stands.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::num::NonZeroU32;

use super::shape::Shape;
use crate::ids::{LeaseNo, Place, Time};
use crate::pipeline::{DropReason, Member, Row, Stage, process};
use crate::run_config::RunConfig;

/// 128 bits of a uid or instance id. The text itself is on disk; two texts that share these bits would take
/// longer to meet than any run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Uid(u64, u64);

impl Uid {
    pub fn of(text: &str) -> Self {
        let wide = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        Self((wide >> 64) as u64, wide as u64)
    }

    /// One number for a list of them.
    pub(super) fn fingerprint(uids: impl Iterator<Item = Self>) -> u64 {
        uids.fold(0, |sum: u64, uid| sum.rotate_left(7) ^ uid.0)
    }
}

/// What memory keeps of a rollout: 64 bytes, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    pub uid: Uid,
    pub place: Place,
    pub size_bytes: u32,
    pub answered: bool,
    pub reward: f64,
    /// Of its bytes, to tell a retry from another rollout with the same uid.
    pub digest: u64,
    pub at: Time,
}

impl Rollout {
    pub fn member(&self) -> Member {
        Member { reward: self.reward, answered: self.answered }
    }
}

/// The run's rules as they apply to a group of this size.
pub(super) fn rules_of(size: NonZeroU32, config: &RunConfig) -> Cow<'_, RunConfig> {
    if size == config.group_size {
        return Cow::Borrowed(config);
    }
    Cow::Owned(RunConfig { group_size: size, ..config.clone() })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupStatus {
    /// Waiting for more.
    Open,
    /// To be handed out as the n-th since the run began; the place in the queue survives a return.
    Ready(u64),
    /// In a lease, out or acked.
    Leased(LeaseNo, u64),
    /// Its rollouts can be sampled, each for itself.
    Pooled,
    /// The generator's functions are asked what to make of it.
    Posed(Stage),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub instance: Box<str>,
    pub round: u32,
    /// The group size when it was opened: turning the knob later neither splits nor stretches it.
    pub size: NonZeroU32,
    pub epoch: Option<u64>,
    /// Oldest and newest weights among the members; `None` where nobody said.
    pub versions: Option<(u64, u64)>,
    pub status: GroupStatus,
    /// Takes no more rollouts.
    pub closed: bool,
    pub touched_at: Time,
    pub(super) tally_no: u64,
    pub rollouts: Vec<Rollout>,
    /// What the generator's functions made of it.
    #[serde(default)]
    pub(super) shape: Option<Shape>,
}

impl Group {
    pub fn members(&self) -> Vec<Member> {
        self.rollouts.iter().map(Rollout::member).collect()
    }

    /// The run's rules as they apply to this group.
    pub(super) fn rules<'c>(&self, config: &'c RunConfig) -> Cow<'c, RunConfig> {
        rules_of(self.size, config)
    }

    /// The rows a reader gets.
    pub(super) fn rows(&self, config: &RunConfig) -> Result<Vec<Row>, DropReason> {
        match &self.shape {
            Some(shape) => Ok(shape.rows()),
            None => process(&self.members(), &self.rules(config)),
        }
    }

    /// Tells whether it is still what somebody looked at.
    pub(super) fn fingerprint(&self) -> u64 {
        Uid::fingerprint(self.rollouts.iter().map(|rollout| rollout.uid))
    }

    /// The stage that a group is posed in when it was ready before: by whether it can still grow.
    pub(super) fn stage(&self) -> Stage {
        match (self.closed, self.rollouts.len() >= self.size.get() as usize) {
            (_, true) => Stage::Full,
            (true, false) => Stage::Closed,
            (false, false) => Stage::Growing,
        }
    }

    /// Whether a generator that is started again makes it anew: it is not finished, and names no epoch by which its
    /// writer could find it again.
    pub(super) fn is_remade(&self) -> bool {
        self.status == GroupStatus::Open && !self.closed && self.epoch.is_none()
    }

    /// In no lease, and not gone to the pool.
    pub fn is_held(&self) -> bool {
        matches!(self.status, GroupStatus::Open | GroupStatus::Posed(_) | GroupStatus::Ready(_))
    }

    pub fn bytes(&self) -> u64 {
        self.rollouts.iter().map(|rollout| u64::from(rollout.size_bytes)).sum()
    }

    /// May a rollout of this epoch and version join? One that may not opens the next round.
    pub(super) fn takes(&self, epoch: Option<u64>, version: Option<u64>, config: &RunConfig) -> bool {
        if self.closed || self.epoch != epoch {
            return false;
        }
        match (self.versions, version) {
            (None, None) => true,
            (Some((oldest, newest)), Some(version)) => {
                newest.max(version) - oldest.min(version) <= config.version_spread()
            }
            // Unknown weights beside known ones: nobody could say what the group was sampled with.
            _ => false,
        }
    }
}
