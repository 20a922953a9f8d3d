//! Which problem is asked next: all of them in turn, and after a crash those whose answers never arrived.

use rollyard_engine::episode::{Data, SharedWorkflow};
use rollyard_engine::executor::Task as Group;
use rollyard_engine::sink::Naming;
use rollyard_engine::yard::{YardClient, YardError};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::task::{Problem, Task};

/// Groups by their place: the same place is the same problem in every attempt at a course.
#[derive(Debug)]
pub(super) struct Feed {
    task: Task,
    problems: Vec<Problem>,
    workflow: SharedWorkflow,
    group_size: NonZeroU32,
    /// Begun before a crash, and never arrived.
    missing: VecDeque<u64>,
    next: u64,
}

/// Places that are asked after together.
const LOOK_AHEAD: u64 = 512;

impl Feed {
    pub(super) fn new(
        task: Task,
        problems: Vec<Problem>,
        workflow: SharedWorkflow,
        group_size: NonZeroU32,
    ) -> Self {
        Self { task, problems, workflow, group_size, missing: VecDeque::new(), next: 0 }
    }

    /// Leaves out what the yard has.
    pub(super) async fn catch_up(&mut self, yard: &YardClient, naming: &Naming) -> Result<(), YardError> {
        let mut from = 0;
        loop {
            let places: Vec<u64> = (from..from + LOOK_AHEAD).collect();
            let named: Vec<Vec<String>> = places.iter().map(|place| self.uids(*place, naming)).collect();
            let known = yard.known(&named.concat()).await?;
            for (place, uids) in places.into_iter().zip(named) {
                let there = uids.iter().filter(|uid| known.contains(*uid)).count();
                if there > 0 {
                    self.next = place + 1;
                }
                if there < uids.len() {
                    self.missing.push_back(place);
                }
            }
            if known.is_empty() {
                self.missing.retain(|place| *place < self.next);
                return Ok(());
            }
            from += LOOK_AHEAD;
        }
    }

    pub(super) fn next_group(&mut self) -> Group {
        let place = self.missing.pop_front().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        Group {
            id: Some(place),
            data: Arc::new(self.data(place)),
            workflow: Arc::clone(&self.workflow),
            group_size: self.group_size,
            accept: None,
            is_eval: false,
        }
    }

    fn uids(&self, place: u64, naming: &Naming) -> Vec<String> {
        let data = self.data(place);
        (0..self.group_size.get()).map(|nth| naming.uid(place, &data, nth, 0)).collect()
    }

    fn data(&self, place: u64) -> Data {
        let count = self.problems.len().max(1) as u64;
        let problem = usize::try_from(place % count).ok().and_then(|at| self.problems.get(at));
        problem.expect("there is at least one").data(self.task)
    }
}
