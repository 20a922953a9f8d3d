//! The course of a task: begun when there is room, run as a group, judged, kept, and noted.

use std::sync::Arc;
use tokio::time::Instant;

use super::Inner;
use super::finished::{Finished, Reason, Status};
use super::state::{Queued, Stopped};
use crate::episode::EpisodeError;
use crate::group::{Group, Progress, Watch};

impl Inner {
    /// Begins what may be begun, and wakes whoever waits.
    pub(super) fn advance(self: &Arc<Self>) {
        let now = Instant::now();
        let mut state = self.state();
        while let Some((queued, progress)) = state.begin(now) {
            let id = queued.id;
            let task = self.runtime.spawn(Arc::clone(self).run(queued, progress, now, state.version));
            if let Some(running) = state.running.get_mut(&id) {
                running.handle = Some(task.abort_handle());
            }
        }
        drop(state);
        self.tell();
    }

    async fn run(self: Arc<Self>, queued: Queued, progress: Arc<Progress>, started: Instant, version: i32) {
        let Queued { id, task } = queued;
        let rules = &self.config.rules;
        let group = Group {
            engine: Arc::clone(&self.engine),
            workflow: task.workflow,
            data: task.data,
            size: task.group_size.get(),
            run: Arc::clone(&self.config.run),
            task_id: id.0,
            is_eval: task.is_eval,
            run_seed: self.config.seed,
            rules: rules.clone(),
            progress,
        };
        let members = group.run(self.as_ref()).await;
        let mut finished = Finished {
            id,
            data: group.data,
            is_eval: task.is_eval,
            group_size: group.size,
            status: Finished::judge(&members, group.size, rules.incomplete),
            members,
            started_version: version,
            version: self.state().version,
            elapsed: started.elapsed(),
        };
        if let (Status::Accepted, Some(accept)) = (&finished.status, &task.accept) {
            match accept(&finished) {
                Ok(true) => {}
                Ok(false) => finished.status = Status::Rejected(Reason::Filtered),
                Err(error) => finished.status = Status::Failed(Reason::Filter(error)),
            }
        }
        if let (Status::Accepted, Some(stale)) = (&finished.status, self.state().staleness(&finished)) {
            finished.status = Status::Rejected(stale);
        }
        if self.keep(&finished).await {
            // It may wait long to be taken.
            finished.data = Arc::new(finished.data.unread());
            let stale = self.state().finish(finished, self.config.keep);
            self.advance();
            self.say_again(stale).await;
        }
    }

    /// Gives it to every sink; false if one of them cannot have it.
    async fn keep(&self, finished: &Finished) -> bool {
        for sink in &self.sinks {
            if let Err(why) = sink.put(finished).await {
                self.stop(Stopped::Sink(why));
                return false;
            }
        }
        true
    }

    /// Tells the sinks of what they know as accepted and what nobody will take any more.
    pub(super) async fn say_again(self: Arc<Self>, stale: Vec<Finished>) {
        for finished in stale {
            self.keep(&finished).await;
        }
    }
}

impl Watch for Inner {
    fn attempt_ended(&self, error: Option<&EpisodeError>) {
        let mut state = self.state();
        let in_a_row = state.failures.note(error);
        let most = self.config.failures_in_a_row_max.unwrap_or((4 * state.running_episodes).max(100));
        drop(state);
        if in_a_row >= most {
            self.stop(Stopped::Failing { in_a_row });
        }
    }
}
