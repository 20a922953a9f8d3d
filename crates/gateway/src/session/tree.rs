//! All turns of a session, each token once.
//!
//! A turn's prompt begins with tokens of another turn: with all of them where the conversation simply goes on, with
//! some where history was rewritten. So two hundred turns take the memory of the longest, and a conversation that
//! branches is a tree.

use std::collections::HashMap;
use std::sync::Arc;

use super::memory::{Known, Standing};
use super::turn::{Prefix, Turn, TurnNo};

/// A shorter beginning is not worth a reference.
const SHARED_LEAST: usize = 16;
/// So many turns, the latest ones, are looked at for a common beginning.
const LOOKED_AT: usize = 16;

#[derive(Debug, Default)]
pub struct Tree {
    turns: Vec<Turn>,
    /// The turn whose answer a conversation ends with. Of several the latest.
    ends: HashMap<Standing, TurnNo>,
    ids: HashMap<u32, TurnNo>,
}

impl Tree {
    pub fn turns(&self) -> impl ExactSizeIterator<Item = (TurnNo, &Turn)> {
        self.turns.iter().enumerate().map(|(at, turn)| (number(at), turn))
    }

    pub fn len(&self) -> usize {
        self.turns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub fn get(&self, no: TurnNo) -> Option<&Turn> {
        self.turns.get(no.0 as usize)
    }

    pub fn get_mut(&mut self, no: TurnNo) -> Option<&mut Turn> {
        self.turns.get_mut(no.0 as usize)
    }

    pub fn push(&mut self, turn: Turn) -> TurnNo {
        let no = number(self.turns.len());
        self.ends.insert(turn.standing, no);
        self.ids.insert(turn.id, no);
        self.turns.push(turn);
        no
    }

    pub fn by_id(&self, id: u32) -> Option<TurnNo> {
        self.ids.get(&id).copied()
    }

    pub fn ended_at(&self, standing: Standing) -> Option<TurnNo> {
        self.ends.get(&standing).copied()
    }

    /// The tokens of a turn's prompt and answer.
    pub fn tokens(&self, no: TurnNo) -> Vec<i32> {
        let len = self.get(no).map_or(0, Turn::len);
        self.first_tokens(Prefix { turn: no, len: u32::try_from(len).unwrap_or(u32::MAX) })
    }

    pub fn prompt(&self, no: TurnNo) -> Vec<i32> {
        let len = self.get(no).map_or(0, Turn::prompt_len);
        self.first_tokens(Prefix { turn: no, len: u32::try_from(len).unwrap_or(u32::MAX) })
    }

    pub fn first_tokens(&self, prefix: Prefix) -> Vec<i32> {
        let mut tokens = vec![0; prefix.len as usize];
        let (mut at, mut end) = (prefix.turn, prefix.len as usize);
        while let Some(turn) = self.get(at).filter(|_| end > 0) {
            let start = turn.prefix.map_or(0, |prefix| prefix.len as usize);
            for (from, part) in [(start, &turn.given), (start + turn.given.len(), &turn.sampled)] {
                let to = end.min(from + part.len());
                if let (Some(place), Some(part)) =
                    (tokens.get_mut(from..to), part.get(..to.saturating_sub(from)))
                {
                    place.copy_from_slice(part);
                }
            }
            end = end.min(start);
            let Some(prefix) = turn.prefix else { break };
            at = prefix.turn;
        }
        tokens
    }

    /// The turns from where the tokens begin up to this one: each goes on from the one before it.
    pub fn chain(&self, no: TurnNo) -> Vec<TurnNo> {
        let mut chain = vec![no];
        let mut at = no;
        while let Some(before) = self.before(at) {
            chain.push(before);
            at = before;
        }
        chain.reverse();
        chain
    }

    /// The turn whose tokens this one goes on from.
    pub fn before(&self, no: TurnNo) -> Option<TurnNo> {
        let turn = self.get(no)?;
        let before = turn.prefix?.turn;
        let is_whole = turn.goes_on_from(before, self.get(before)?.len());
        is_whole.then_some(before)
    }

    /// The whole conversation that a turn's prompt was rendered of.
    pub fn conversation(&self, no: TurnNo) -> Vec<&Arc<Known>> {
        let mut messages = Vec::new();
        let chain = self.chain(no);
        for at in &chain {
            let Some(turn) = self.get(*at) else { continue };
            messages.extend(&turn.messages);
            if *at != no {
                messages.push(&turn.answer);
            }
        }
        messages
    }

    /// Where a prompt that was rendered anew begins like one that is there already.
    pub fn shared(&self, prompt: &[i32], follows: Option<TurnNo>) -> Option<Prefix> {
        let latest = self.turns.len().saturating_sub(LOOKED_AT)..self.turns.len();
        let looked_at = follows.into_iter().chain(latest.rev().map(number));
        let mut best: Option<Prefix> = None;
        for no in looked_at {
            let tokens = self.tokens(no);
            let len = tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
            // A prompt has at least one token of its own, so that what was given is never nothing.
            let len = len.min(prompt.len().saturating_sub(1));
            if len >= SHARED_LEAST && best.is_none_or(|best| len > best.len as usize) {
                best = Some(Prefix { turn: no, len: u32::try_from(len).unwrap_or(u32::MAX) });
            }
        }
        best
    }

    /// Turns that no other goes on from, leaving out what nobody heard: an answer that the agent never got is no part of
    /// what it did. One that it went on from was heard, whatever the connection looked like.
    pub fn leaves(&self) -> Vec<TurnNo> {
        let mut is_alive: Vec<bool> = self.turns.iter().map(|turn| !turn.facts.is_unheard).collect();
        let mut is_leaf = vec![true; self.turns.len()];
        for at in (0..self.turns.len()).rev() {
            let alive = is_alive.get(at).copied().unwrap_or_default();
            for before in [self.before(number(at)), self.get(number(at)).and_then(|turn| turn.follows)] {
                if let Some(flag) = before.filter(|_| alive).and_then(|no| is_alive.get_mut(no.0 as usize)) {
                    *flag = true;
                }
            }
            let before = self.before(number(at)).filter(|_| alive);
            if let Some(flag) = before.and_then(|no| is_leaf.get_mut(no.0 as usize)) {
                *flag = false;
            }
        }
        let both = is_alive.iter().zip(&is_leaf).enumerate();
        both.filter(|(_, (alive, leaf))| **alive && **leaf).map(|(at, _)| number(at)).collect()
    }

    /// Bytes that tokens and their log-probs take.
    pub fn size_bytes(&self) -> usize {
        let of = |turn: &Turn| {
            size_of::<Turn>()
                + 4 * (turn.given.len() + turn.sampled.len() + turn.logprobs.len())
                + 16 * (turn.segments.len() + turn.messages.len())
        };
        self.turns.iter().map(of).sum()
    }
}

fn number(at: usize) -> TurnNo {
    TurnNo(u32::try_from(at).unwrap_or(u32::MAX))
}
