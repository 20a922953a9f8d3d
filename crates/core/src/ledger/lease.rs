//! A lease: groups that a reader has and nobody else can get.

use serde::{Deserialize, Serialize};

use super::group::Uid;
use crate::ids::{GroupNo, Time};
use crate::pipeline::Tally;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub groups: Vec<GroupNo>,
    pub status: LeaseStatus,
    pub reader: Box<str>,
    pub granted_at: Time,
    /// Taken by a client that does not ack: the server acks once the answer is through.
    pub auto: bool,
    /// What the reader was told had arrived; told again if the lease comes back.
    pub(super) tally: Tally,
    /// What was drawn, for a lease of a run that samples; `groups` is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// Rollouts drawn together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// In the order they were drawn: ranks take their shares by it.
    pub picks: Vec<Pick>,
    /// The trainer's step it was drawn for, if the reader said: asking again gives the same.
    pub step: Option<u64>,
    pub draw: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    pub group: GroupNo,
    pub uid: Uid,
    /// Times it had been drawn, this one included.
    pub used: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseStatus {
    /// With the reader, until this time.
    Out(Time),
    /// Trained on; `Some` once a commit has tied it to a step.
    Acked(Option<u64>),
}

/// How a lease that is no longer kept came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Returned,
    Expired,
    Rewound,
    Trained { step: Option<u64> },
}

impl Ending {
    /// What happened, for a sentence that begins "lease 7 ...".
    pub fn sentence(self) -> String {
        match self {
            Self::Returned => "was returned".to_owned(),
            Self::Expired => "expired and went back to the pool".to_owned(),
            Self::Rewound => "was put back by a rewind".to_owned(),
            Self::Trained { step: None } => "was acked and is final".to_owned(),
            Self::Trained { step: Some(step) } => format!("was committed with step {step}"),
        }
    }
}
