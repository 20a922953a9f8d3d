//! Generators: files of the user's that make rollouts for a task, and may have rules of their own for its groups.
//!
//! A [`folder`] finds the files `*_generator.py` and keeps looking; each is imported by a Python process of its own,
//! never by us. A [`Generator`] is a file that loaded. Its `run_rollout` runs in a [`process`] of its own; its [`hooks`]
//! are called through its host.

pub mod folder;
pub mod hooks;
pub mod process;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::host::Host;

/// A generator file that loaded.
#[derive(Debug)]
pub struct Generator {
    pub file: PathBuf,
    pub task_type: String,
    /// Those that the file defines.
    pub hooks: BTreeSet<Hook>,
    /// When the file was changed, in seconds since 1970: tells its versions apart.
    pub stamp: f64,
    /// A process that has imported the file. It has one thread: a hook that hangs is ended with its process.
    pub host: Host,
}

/// A step between a run's groups and its trainer that a generator may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    IsValidGroup,
    TransformGroup,
    FilterItem,
    NormalizeGroupData,
    PadGroupData,
    GetGroupDataMetaInfo,
}

impl Hook {
    pub const ALL: [Self; 6] = [
        Self::IsValidGroup,
        Self::TransformGroup,
        Self::FilterItem,
        Self::NormalizeGroupData,
        Self::PadGroupData,
        Self::GetGroupDataMetaInfo,
    ];

    /// The function in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::IsValidGroup => "is_valid_group",
            Self::TransformGroup => "transform_group",
            Self::FilterItem => "filter_item",
            Self::NormalizeGroupData => "normalize_group_data",
            Self::PadGroupData => "pad_group_data",
            Self::GetGroupDataMetaInfo => "get_group_data_meta_info",
        }
    }

    /// The knob of a run that is `hook` where the function is used.
    pub fn knob(self) -> &'static str {
        match self {
            Self::IsValidGroup => "validate",
            Self::TransformGroup => "transform",
            Self::FilterItem => "filter",
            Self::NormalizeGroupData => "normalize",
            Self::PadGroupData => "pad",
            Self::GetGroupDataMetaInfo => "meta",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }
}
