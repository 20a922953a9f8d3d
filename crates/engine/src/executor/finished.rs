//! A task that has ended, one way or the other.

use rollyard_core::rollout::NO_VERSION;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::episode::{Data, Sample, Trajectory};
use crate::group::{Incomplete, Member, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Accepted,
    /// By its workflow, the filter or its age: it is known, and not trained on.
    Rejected(Reason),
    /// It could not be made.
    Failed(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The workflow returned nothing for any member.
    Nothing,
    /// The accept filter said no.
    Filtered,
    /// The filter itself broke.
    Filter(String),
    Stale {
        head_version: i32,
        version: i32,
    },
    /// Too few members are left. The first failure is said.
    Incomplete {
        left: u32,
        wanted: u32,
        error: String,
    },
    Cancelled,
}

impl Reason {
    /// One word, to count by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Filtered => "filtered",
            Self::Filter(_) => "filter_failed",
            Self::Stale { .. } => "stale",
            Self::Incomplete { .. } => "incomplete",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the workflow returned nothing for any member"),
            Self::Filtered => f.write_str("the accept filter said no"),
            Self::Filter(error) => write!(f, "the accept filter failed: {error}"),
            Self::Stale { head_version, version } => {
                write!(f, "its oldest token is of version {head_version}, too old at version {version}")
            }
            Self::Incomplete { left, wanted, error } => {
                write!(f, "only {left} of the {wanted} members wanted are left: {error}")
            }
            Self::Cancelled => f.write_str("it was cancelled"),
        }
    }
}

impl Status {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected(_) => "rejected",
            Self::Failed(_) => "failed",
        }
    }

    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Accepted => None,
            Self::Rejected(reason) | Self::Failed(reason) => Some(reason),
        }
    }
}

/// A task and all that came of it.
#[derive(Clone, Debug)]
pub struct Finished {
    pub id: TaskId,
    pub data: Arc<Data>,
    pub is_eval: bool,
    pub group_size: u32,
    pub status: Status,
    pub members: Vec<Member>,
    /// Of the weights when it was begun.
    pub started_version: i32,
    /// Of the weights when it ended.
    pub version: i32,
    pub elapsed: Duration,
}

impl Finished {
    /// What the members made, with their places in the group.
    pub fn trajectories(&self) -> impl Iterator<Item = (u32, &Trajectory)> {
        self.members.iter().filter_map(|member| match &member.outcome {
            Outcome::Done(trajectory) => Some((member.sample_idx, trajectory)),
            Outcome::Rejected | Outcome::Failed(_) | Outcome::Cancelled => None,
        })
    }

    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.trajectories().flat_map(|(_, trajectory)| &trajectory.samples)
    }

    /// The version of its oldest sampled token; of the weights when it was begun, if no token says.
    pub fn head_version(&self) -> i32 {
        let versions = self.samples().filter_map(|sample| version_range(sample).map(|(head, _)| head));
        versions.min().unwrap_or(self.started_version)
    }

    pub fn output_tokens(&self) -> usize {
        self.samples().map(|sample| sample.segments.iter().map(|segment| segment.tokens).sum::<usize>()).sum()
    }

    /// The verdict on its members, before anybody else is asked.
    pub(super) fn judge(members: &[Member], size: u32, incomplete: Incomplete) -> Status {
        let failure = members.iter().find_map(|member| match &member.outcome {
            Outcome::Failed(error) => Some(error.to_string()),
            _ => None,
        });
        let count = |wanted: fn(&Outcome) -> bool| {
            let members = members.iter().filter(|member| wanted(&member.outcome));
            u32::try_from(members.count()).unwrap_or(u32::MAX)
        };
        let done = count(|outcome| matches!(outcome, Outcome::Done(_)));
        let rejected = count(|outcome| matches!(outcome, Outcome::Rejected));
        let (left, wanted) = match incomplete {
            Incomplete::Accept { at_least } => (done, at_least.min(size)),
            // A member that its workflow rejected was made: it is not missing.
            Incomplete::Wait | Incomplete::Replace | Incomplete::Drop => (done + rejected, size),
        };
        match failure {
            Some(error) if left < wanted => Status::Failed(Reason::Incomplete { left, wanted, error }),
            _ if done == 0 => Status::Rejected(Reason::Nothing),
            None if left < wanted => {
                let error = format!("the workflow returned nothing for {rejected}");
                Status::Rejected(Reason::Incomplete { left, wanted, error })
            }
            _ => Status::Accepted,
        }
    }
}

/// The oldest and the newest version of the tokens that were sampled.
pub fn version_range(sample: &Sample) -> Option<(i32, i32)> {
    let known = |version: &i32| *version != NO_VERSION;
    let of_tokens = sample.rollout.iter().flat_map(|rollout| rollout.versions().spans()).map(|(_, v)| v);
    let of_segments = sample.segments.iter().map(|segment| segment.version);
    let versions: Vec<i32> = of_tokens.chain(of_segments).filter(known).collect();
    Some((*versions.iter().min()?, *versions.iter().max()?))
}
