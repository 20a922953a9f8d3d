//! What the events of a session add up to.

use rollyard_core::rollout::RolloutError;
use rollyard_engine::episode::Sample;

use super::event::{Closed, Event};
use super::export::{Export, Rewards};
use super::memory::Memory;
use super::opening::Opening;
use super::tree::Tree;

#[derive(Debug, Default)]
pub struct State {
    pub tree: Tree,
    pub memory: Memory,
    pub rewards: Rewards,
    pub closed: Option<Closed>,
    pub is_delivered: bool,
    /// The number that the next turn gets.
    pub next_id: u32,
    pub sampled_tokens: u64,
}

impl State {
    /// What a journal gives back. An event that cannot be read is an error, never passed over.
    pub fn apply(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Opened(_) => {}
            Event::Turned(turned) => {
                let turn = turned.read(&mut self.memory)?;
                self.push(turn);
            }
            Event::Rewarded { turn: Some(turn), reward } => {
                self.rewards.of_turns.insert(turn, reward);
            }
            Event::Rewarded { turn: None, reward } => self.rewards.last = Some(reward),
            Event::Heard { turn } => {
                if let Some(turn) = self.tree.get_mut(turn) {
                    turn.facts.is_unheard = false;
                }
            }
            Event::Closed(closed) => self.closed = Some(closed),
            Event::Delivered => self.is_delivered = true,
        }
        Ok(())
    }

    pub fn push(&mut self, turn: super::turn::Turn) -> super::turn::TurnNo {
        self.sampled_tokens += turn.sampled.len() as u64;
        self.next_id = self.next_id.max(turn.id + 1);
        self.tree.push(turn)
    }

    pub fn samples(&self, opening: &Opening) -> Result<Vec<Sample>, RolloutError> {
        let export = Export {
            tree: &self.tree,
            rewards: &self.rewards,
            style: opening.style,
            discount: opening.discount,
            env_name: &opening.env_name,
            env_example_id: &opening.instance_id,
        };
        export.samples()
    }

    /// Bytes it takes in memory.
    pub fn size_bytes(&self) -> usize {
        self.tree.size_bytes() + self.memory.size_bytes()
    }
}
