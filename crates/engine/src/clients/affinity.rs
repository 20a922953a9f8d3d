//! Which server a session went to last.
//!
//! Sessions end without saying so. Two maps hold those seen of late: when the young one is full it becomes
//! the old one, and what was not asked for since is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const SESSIONS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Affinity {
    maps: Mutex<Maps>,
}

#[derive(Debug, Default)]
struct Maps {
    young: HashMap<String, usize>,
    old: HashMap<String, usize>,
}

impl Affinity {
    pub(super) fn get(&self, session: &str) -> Option<usize> {
        let maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        maps.young.get(session).or_else(|| maps.old.get(session)).copied()
    }

    pub(super) fn set(&self, session: &str, server: usize) {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = maps.young.get_mut(session) {
            *known = server;
            return;
        }
        if maps.young.len() >= SESSIONS {
            maps.old = std::mem::take(&mut maps.young);
        }
        maps.young.insert(session.to_owned(), server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_in_use_are_remembered_and_others_forgotten() {
        let affinity = Affinity::default();
        affinity.set("left", 1);
        affinity.set("used", 2);
        for other in 0..SESSIONS * 2 {
            affinity.set(&other.to_string(), 0);
            if other % 1000 == 0 {
                affinity.set("used", affinity.get("used").unwrap());
            }
        }
        assert_eq!(affinity.get("used"), Some(2));
        assert_eq!(affinity.get("left"), None);
    }
}
