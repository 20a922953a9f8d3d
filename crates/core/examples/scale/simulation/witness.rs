//! Writes down what the events say, rollout by rollout, and holds the ledger to it.

use hashbrown::HashMap;
use rollyard_core::ids::{GroupNo, LeaseNo, Place};
use rollyard_core::ledger::{Books, Event, Fate, LeaseStatus, Ledger, Whereabouts};
use std::collections::BTreeMap;

/// Where a rollout is. It moves from held to leased and back, from leased to trained, and from held to dropped; a
/// rewind brings it from trained to held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    NotHere,
    Held,
    Leased,
    Trained,
    Dropped,
}

#[derive(Debug)]
struct Taken {
    groups: Vec<GroupNo>,
    step: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Witness {
    run: u64,
    /// By the rollout's number.
    at: Vec<At>,
    freed: Vec<bool>,
    groups: HashMap<GroupNo, Vec<usize>>,
    /// Out, or trained on.
    leases: BTreeMap<LeaseNo, Taken>,
}

/// As long as the names that sessions have.
pub(super) fn uid(run: u64, number: usize) -> String {
    format!("{:016x}{number:016x}", run.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Witness {
    pub(super) fn new(run: u64) -> Self {
        Self {
            run,
            at: Vec::new(),
            freed: Vec::new(),
            groups: HashMap::default(),
            leases: BTreeMap::default(),
        }
    }

    /// Takes down an event that `ledger` has applied. `place` is the number of the rollout that came with it.
    pub(super) fn note(&mut self, event: &Event, place: Place, ledger: &Ledger) {
        match event {
            Event::Admitted(new) => {
                let number = place.0 as usize;
                assert_eq!(new.uid, uid(self.run, number));
                self.move_to(number, At::NotHere, At::Held);
                self.groups.entry(new.group).or_default().push(number);
            }
            Event::GroupDropped { group, .. } => {
                for number in self.groups.remove(group).unwrap_or_default() {
                    self.move_to(number, At::Held, At::Dropped);
                }
            }
            Event::Leased { lease, groups, .. } => {
                self.move_groups(groups, At::Held, At::Leased);
                let mut handed_out: Vec<usize> = ledger
                    .leased_groups(*lease)
                    .iter()
                    .flat_map(|group| &group.rows)
                    .map(|row| row.place.0 as usize)
                    .collect();
                // Short groups are padded with rows that they have already.
                handed_out.sort_unstable();
                handed_out.dedup();
                let mut known: Vec<usize> =
                    groups.iter().filter_map(|no| self.groups.get(no)).flatten().copied().collect();
                known.sort_unstable();
                assert_eq!(handed_out, known, "lease {lease} hands out something else than its groups");
                let before = self.leases.insert(*lease, Taken { groups: groups.clone(), step: None });
                assert!(before.is_none(), "lease {lease} was granted twice");
            }
            Event::Acked { lease, .. } => {
                let groups = self.leases.get(lease).map(|taken| taken.groups.clone());
                self.move_groups(&groups.unwrap_or_default(), At::Leased, At::Trained);
            }
            Event::Returned { lease, .. } => {
                let taken = self.leases.remove(lease).expect("a lease that is out");
                self.move_groups(&taken.groups, At::Leased, At::Held);
            }
            Event::Committed { step, leases, .. } => {
                for lease in leases {
                    self.leases.get_mut(lease).expect("an acked lease").step = Some(*step);
                }
            }
            Event::Rewound { step, .. } => self.rewind(Some(*step)),
            Event::RewoundToStart { .. } => self.rewind(None),
            Event::GroupReady { .. } | Event::VersionSet { .. } => {}
            other => panic!("nobody asked for {other:?}"),
        }
    }

    /// A payload may go once, and only when nothing can need it any more.
    pub(super) fn note_freed(&mut self, place: Place) {
        let number = place.0 as usize;
        assert!(matches!(self.at.get(number), Some(At::Trained | At::Dropped)), "rollout {number} is needed");
        let freed = self.freed.get_mut(number).expect("as many as are known");
        assert!(!std::mem::replace(freed, true), "the payload of rollout {number} was freed twice");
    }

    /// The books say what the events said.
    pub(super) fn check_books(&self, books: &Books) {
        let count = |what: At| self.at.iter().filter(|at| **at == what).count() as u64;
        let counted = [count(At::Held), count(At::Leased), count(At::Trained), count(At::Dropped)];
        assert_eq!([books.held, books.leased, books.trained, books.dropped_total()], counted);
        assert_eq!(books.admitted, counted.iter().sum::<u64>());
    }

    /// Every rollout is where the events left it, and nowhere else.
    pub(super) fn check_whereabouts(&self, ledger: &Ledger) {
        for (number, &at) in self.at.iter().enumerate() {
            let found = match ledger.whereabouts(&uid(self.run, number)) {
                None => At::NotHere,
                Some(Whereabouts::Kept { lease: None, .. }) => At::Held,
                Some(Whereabouts::Kept { lease: Some((_, LeaseStatus::Out(_))), .. }) => At::Leased,
                Some(Whereabouts::Kept { lease: Some((_, LeaseStatus::Acked(_))), .. }) => At::Trained,
                Some(Whereabouts::Settled { fate: Fate::Trained { .. }, .. }) => At::Trained,
                Some(Whereabouts::Settled { fate: Fate::Dropped(_), .. }) => At::Dropped,
            };
            // Of those that are over only the last 2,000,000 are remembered.
            let forgotten = found == At::NotHere && self.freed.get(number) == Some(&true);
            assert!(found == at || forgotten, "rollout {number} should be {at:?} and is {found:?}");
        }
    }

    fn rewind(&mut self, to: Option<u64>) {
        let mut groups = Vec::new();
        self.leases.retain(|_, taken| {
            let stays = taken.step.is_some_and(|step| Some(step) <= to);
            if !stays {
                groups.append(&mut taken.groups);
            }
            stays
        });
        for number in groups.iter().filter_map(|no| self.groups.get(no)).flatten() {
            let at = self.at.get_mut(*number).expect("a member of a group is known");
            assert!(matches!(at, At::Leased | At::Trained), "rollout {number} was {at:?} before the rewind");
            *at = At::Held;
        }
    }

    fn move_groups(&mut self, groups: &[GroupNo], from: At, to: At) {
        for no in groups {
            for number in self.groups.get(no).cloned().unwrap_or_default() {
                self.move_to(number, from, to);
            }
        }
    }

    fn move_to(&mut self, number: usize, from: At, to: At) {
        if self.at.len() <= number {
            self.at.resize(number + 1, At::NotHere);
            self.freed.resize(number + 1, false);
        }
        let at = self.at.get_mut(number).expect("it was made long enough");
        assert_eq!(*at, from, "rollout {number} cannot become {to:?}");
        *at = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollyard_core::ids::Time;
    use rollyard_core::ledger::Admitted;

    fn admitted(number: usize) -> (Event, Place) {
        let event = Event::Admitted(Box::new(Admitted {
            at: Time(0),
            uid: uid(3, number),
            instance: "prompt".to_owned(),
            group: GroupNo(0),
            round: 0,
            epoch: None,
            version: None,
            reward: 1.0,
            answered: true,
            digest: 0,
            size_bytes: 10,
            origin: None,
        }));
        (event, Place(number as u64))
    }

    fn watch(events: &[(Event, Place)]) -> Witness {
        let mut witness = Witness::new(3);
        for (event, place) in events {
            witness.note(event, *place, &Ledger::default());
        }
        witness
    }

    #[test]
    #[should_panic(expected = "rollout 0 cannot become Held")]
    fn a_rollout_that_is_taken_twice_is_noticed() {
        watch(&[admitted(0), admitted(0)]);
    }

    #[test]
    #[should_panic(expected = "lease 0 hands out something else")]
    fn a_lease_that_hands_out_too_little_is_noticed() {
        let (lease, groups, at) = (LeaseNo(0), vec![GroupNo(0)], Time(0));
        let leased = Event::Leased { at, lease, groups, until: at, reader: String::new(), auto: false };
        watch(&[admitted(0), (leased, Place(0))]);
    }

    #[test]
    #[should_panic(expected = "rollout 0 is needed")]
    fn a_payload_that_goes_too_early_is_noticed() {
        watch(&[admitted(0)]).note_freed(Place(0));
    }

    #[test]
    #[should_panic(expected = "left: [0, 0, 0, 0]")]
    fn books_that_miss_a_rollout_are_noticed() {
        watch(&[admitted(0)]).check_books(&Books::default());
    }

    #[test]
    #[should_panic(expected = "rollout 0 should be Held and is NotHere")]
    fn a_rollout_that_is_nowhere_is_noticed() {
        watch(&[admitted(0)]).check_whereabouts(&Ledger::default());
    }
}
