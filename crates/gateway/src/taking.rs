//! Sessions whose rollouts are taken by whoever opened them, instead of going to a yard.

use rollyard_engine::episode::Sample;
use rollyard_engine::generate::Message;

use crate::gateway::{Gateway, now_ms};
use crate::live::Live;
use crate::refusal::{Kind, Refusal};
use crate::session::event::{Closed, Closing, Event};

/// What an agent ended with, for a judge.
#[derive(Clone, Debug)]
pub struct LastAnswer {
    pub prompt_ids: Vec<i32>,
    pub completion_ids: Vec<i32>,
    /// The whole conversation, the answer included.
    pub messages: Vec<Message>,
}

/// How often an agent asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub answers: usize,
    pub failures: u32,
    pub last_error: Option<String>,
}

impl Gateway {
    /// Ends the session and gives its samples away; nothing of it stays here. It must have a reward.
    pub async fn take(&self, live: &Live) -> Result<Vec<Sample>, Refusal> {
        self.end(live, None).await?;
        let samples = live.samples().map_err(|message| Refusal::new(Kind::Internal, message))?;
        self.let_go(live);
        Ok(samples)
    }

    /// Gives the session up and forgets it, without waiting for anything: for an owner who is being dropped.
    pub fn give_up(&self, live: &Live, reason: &str) {
        {
            let mut inner = live.inner();
            if inner.state.closed.is_none() {
                let reason = reason.to_owned();
                let event = Event::Closed(Closed { how: Closing::Abandoned, reason, at_ms: now_ms() });
                // Nobody waits until it is safe: a session that comes back after a crash expires by itself.
                drop(self.journal(&live.id, &event));
                if let Err(error) = inner.state.apply(event) {
                    tracing::warn!(session = %live.id, "a session could not be closed: {error}");
                }
            }
        }
        live.over.cancel();
        self.let_go(live);
    }

    /// Nothing of it stays here.
    pub(crate) fn let_go(&self, live: &Live) {
        self.forget(live);
        self.groups.remove(live);
        self.remove(live);
    }
}

impl Live {
    pub fn asked(&self) -> Asked {
        let inner = self.inner();
        Asked {
            answers: inner.state.tree.len(),
            failures: inner.failures,
            last_error: inner.last_error.clone(),
        }
    }

    /// Of the answers that the agent heard to their end and did not go on from, the latest.
    pub fn last_answer(&self) -> Option<LastAnswer> {
        let inner = self.inner();
        let tree = &inner.state.tree;
        let leaf = tree.leaves().into_iter().next_back()?;
        let turn = tree.get(leaf)?;
        let said = tree.conversation(leaf).into_iter().chain([&turn.answer]);
        Some(LastAnswer {
            prompt_ids: tree.prompt(leaf),
            completion_ids: turn.sampled.to_vec(),
            messages: said.map(|message| message.json.clone()).collect(),
        })
    }
}
