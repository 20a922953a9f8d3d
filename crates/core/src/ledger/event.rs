//! What happened. The log is made of these, so their encoding is for ever.
//!
//! A record holds the events of one command: a version byte, then MessagePack with the variants by name and
//! their fields by position. New variants and new trailing fields with `#[serde(default)]` keep old logs
//! readable; anything else needs a new version byte.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

use super::group::Uid;
use super::lease::Pick;
use super::note::GeneratorState;
use super::shape::Shape;
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::pipeline::{DropReason, Stage};
use crate::run_config::RunConfig;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    Configured {
        at: Time,
        config: Box<RunConfig>,
        start: Option<String>,
    },
    /// A rollout came in; the first of a group opens it. The payload stands beside it in the log.
    Admitted(Box<Admitted>),
    /// The group will be handed out as the `order`-th.
    GroupReady {
        at: Time,
        group: GroupNo,
        order: u64,
        closed: bool,
    },
    GroupDropped {
        at: Time,
        group: GroupNo,
        reason: DropReason,
        /// What a hook said, where the reason alone does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    RolloutDropped {
        at: Time,
        group: GroupNo,
        uid: Uid,
        reason: DropReason,
    },
    Leased {
        at: Time,
        lease: LeaseNo,
        groups: Vec<GroupNo>,
        until: Time,
        reader: String,
        auto: bool,
    },
    Extended {
        at: Time,
        lease: LeaseNo,
        until: Time,
    },
    /// `last` says that no rewind can undo it.
    Acked {
        at: Time,
        lease: LeaseNo,
        last: bool,
    },
    Returned {
        at: Time,
        lease: LeaseNo,
        expired: bool,
    },
    Committed {
        at: Time,
        step: u64,
        leases: Vec<LeaseNo>,
    },
    Rewound {
        at: Time,
        step: u64,
    },
    VersionSet {
        at: Time,
        version: u64,
    },
    /// The rollouts of a group that can be sampled from now on, each with its advantage. Others of the group were
    /// dropped by earlier events.
    Pooled {
        at: Time,
        group: GroupNo,
        members: Vec<(Uid, f32)>,
    },
    /// The trainer is at this step.
    StepSet {
        at: Time,
        step: u64,
    },
    /// Rollouts were drawn for a reader, for this step of the trainer if it said one.
    Sampled {
        at: Time,
        lease: LeaseNo,
        picks: Vec<Pick>,
        step: Option<u64>,
        /// The how-manieth draw of the run's seed it was.
        draw: u64,
        until: Time,
        reader: String,
    },
    /// The generator's functions are asked about a group that could be ready.
    GroupPosed {
        at: Time,
        group: GroupNo,
        stage: Stage,
    },
    /// They said that it is too early.
    GroupWaits {
        at: Time,
        group: GroupNo,
    },
    /// What they made of the group; it will be handed out as the `order`-th.
    GroupShaped {
        at: Time,
        group: GroupNo,
        order: u64,
        shape: Shape,
    },
    /// Everything that was ever consumed and is still kept went back.
    RewoundToStart {
        at: Time,
    },
    /// Something happened to the run's generator.
    Noted {
        at: Time,
        state: Option<GeneratorState>,
        told: String,
    },
    /// The payload now stands beside this event; its old place may be overwritten.
    Relocated {
        group: GroupNo,
        uid: Uid,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Admitted {
    pub at: Time,
    pub uid: String,
    pub instance: String,
    pub group: GroupNo,
    pub round: u32,
    pub epoch: Option<u64>,
    pub version: Option<u64>,
    pub reward: f64,
    pub answered: bool,
    pub digest: u64,
    pub size_bytes: u32,
    /// Where it came from, in a run that samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// What a run that samples keeps of a rollout from the day it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub env: String,
    /// When it was made, in seconds since 1970.
    pub timestamp: f64,
    /// Tokens of the response; 0 where nobody said.
    pub len: u32,
    /// The size of its group, if it is not the run's.
    pub group_size: Option<NonZeroU32>,
}

impl Event {
    /// Whether what was committed with `step` outlives this event; only a rewind undoes anything.
    pub fn spares(&self, step: u64) -> bool {
        match self {
            Self::Rewound { step: to, .. } => step <= *to,
            Self::RewoundToStart { .. } => false,
            _ => true,
        }
    }
}

const ENCODING: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("an event record is empty")]
    Empty,
    #[error("events are encoded in version {0}; this build reads {ENCODING}")]
    Version(u8),
    #[error("an event record cannot be read: {0}")]
    Damaged(#[from] rmp_serde::decode::Error),
}

/// Puts the events of one command behind what `out` holds.
pub fn encode_events(events: &[Event], out: &mut Vec<u8>) {
    out.push(ENCODING);
    #[expect(clippy::expect_used, reason = "writing plain data into memory has no way to fail")]
    rmp_serde::encode::write(out, events).expect("events are plain data");
}

pub fn decode_events(record: &[u8]) -> Result<Vec<Event>, EventError> {
    match record.split_first() {
        None => Err(EventError::Empty),
        Some((&ENCODING, body)) => Ok(rmp_serde::from_slice(body)?),
        Some((&version, _)) => Err(EventError::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each, as version 1 writes them.
    fn events() -> Vec<Event> {
        let at = Time(1_700_000_000_000);
        let (group, lease, uid) = (GroupNo(7), LeaseNo(3), Uid::of("u"));
        let admitted = Admitted {
            at,
            uid: "u".to_owned(),
            instance: "i".to_owned(),
            group,
            round: 1,
            epoch: Some(2),
            version: None,
            reward: 0.5,
            answered: true,
            digest: 99,
            size_bytes: 10_000,
            origin: None,
        };
        vec![
            Event::Admitted(Box::new(admitted)),
            Event::GroupReady { at, group, order: 4, closed: true },
            Event::GroupDropped { at, group, reason: DropReason::NoVariance, why: None },
            Event::RolloutDropped { at, group, uid, reason: DropReason::Filtered },
            Event::Leased { at, lease, groups: vec![group], until: at, reader: "r".to_owned(), auto: true },
            Event::Extended { at, lease, until: at },
            Event::Acked { at, lease, last: false },
            Event::Returned { at, lease, expired: true },
            Event::Committed { at, step: 812, leases: vec![lease] },
            Event::Rewound { at, step: 811 },
            Event::VersionSet { at, version: 5 },
            Event::Relocated { group, uid },
        ]
    }

    #[test]
    fn version_1_is_still_read_and_written() {
        let mut record = Vec::new();
        encode_events(&events(), &mut record);
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("events-v1.hex").trim());
        assert_eq!(decode_events(&record).unwrap(), events());
    }

    #[test]
    fn other_versions_and_damage_are_told_apart() {
        assert!(matches!(decode_events(&[]), Err(EventError::Empty)));
        assert!(matches!(decode_events(&[2, 0x90]), Err(EventError::Version(2))));
        assert!(matches!(decode_events(&[1, 0xc1]), Err(EventError::Damaged(_))));
    }
}
