//! Sessions that are rollouts of one prompt, and go to the yard together.
//!
//! A session may become several samples, and nobody knows how many before it is over. So a group goes out when the last
//! of its sessions is over: then it is known how large it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::live::Live;
use crate::session::event::Closing;
use crate::session::opening::Opening;

/// Only those that wait: a group that was delivered is nobody's round any more.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    members: Mutex<HashMap<Key, Vec<Arc<Live>>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    run: String,
    instance_id: String,
}

impl Groups {
    /// The first round that waits for this slot, or a new one: a session that was abandoned leaves its slot free again.
    pub(crate) fn round(&self, opening: &Opening) -> u32 {
        let members = self.members();
        let of_instance = members.get(&key(opening)).map(Vec::as_slice).unwrap_or_default();
        let mut rounds: Vec<u32> = of_instance.iter().map(|live| live.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        let is_taken = |round: u32| {
            let here = of_instance.iter().filter(|live| live.round == round);
            here.into_iter().any(|live| live.opening.slot == opening.slot && !is_given_up(live))
        };
        let after_all = rounds.last().map_or(0, |last| last + 1);
        rounds.into_iter().find(|round| !is_taken(*round)).unwrap_or(after_all)
    }

    pub(crate) fn add(&self, live: &Arc<Live>) {
        if live.opening.group_size.is_some() {
            self.members().entry(key(&live.opening)).or_default().push(Arc::clone(live));
        }
    }

    /// All sessions of the same group and round.
    pub(crate) fn of(&self, live: &Live) -> Vec<Arc<Live>> {
        let members = self.members();
        let all = members.get(&key(&live.opening)).into_iter().flatten();
        all.filter(|other| other.round == live.round).cloned().collect()
    }

    pub(crate) fn remove(&self, live: &Live) {
        let mut members = self.members();
        if let Some(of_instance) = members.get_mut(&key(&live.opening)) {
            of_instance.retain(|other| other.id != live.id);
            if of_instance.is_empty() {
                members.remove(&key(&live.opening));
            }
        }
    }

    fn members(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<Live>>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(opening: &Opening) -> Key {
    Key { run: opening.run.clone(), instance_id: opening.instance_id.clone() }
}

fn is_given_up(live: &Live) -> bool {
    live.closed().is_some_and(|closed| closed.how != Closing::Ended)
}
