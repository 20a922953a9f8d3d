//! Remembers how rollouts ended, so that a late retry is recognised and a late question answered.
//!
//! The last [`REMEMBERED`] are kept, at about 70 bytes each; older ones are in the log's history only.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::fixed;
use super::group::Uid;
use crate::ids::LeaseNo;
use crate::pipeline::DropReason;

pub(super) const REMEMBERED: usize = 2_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Trained { lease: LeaseNo, step: Option<u64> },
    Dropped(DropReason),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    fates: HashMap<Uid, (Fate, u64), fixed::Hasher>,
    order: VecDeque<Uid>,
}

impl Settled {
    pub(super) fn get(&self, uid: Uid) -> Option<(Fate, u64)> {
        self.fates.get(&uid).copied()
    }

    pub(super) fn put(&mut self, uid: Uid, fate: Fate, digest: u64) {
        if self.fates.insert(uid, (fate, digest)).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.fates.remove(&oldest);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Uid, Fate, u64)> + '_ {
        self.order.iter().filter_map(|uid| self.fates.get(uid).map(|&(fate, digest)| (*uid, fate, digest)))
    }
}
