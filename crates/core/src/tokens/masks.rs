//! A tokenizer and a rule at work: conversations and items in, masks and rollouts out.
//!
//! Where an item carries the tokens that were sampled, they are the rollout's tokens and its text is left
//! alone. Text is tokenised only where there is nothing else, and such a rollout says so for ever after.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::conversation::{Conversation, ConversationError};
use super::drift::Drift;
use super::mask::{MaskError, MaskRule, Masked, MessageSpan, whole_turns};
use super::model::Tokenizer;
use super::template::CivilTime;
use crate::rollout::{Draft, Rollout, RolloutError};
use crate::wire::rollout::{self, TokensError};

#[derive(Clone)]
pub struct Masks {
    pub tokenizer: Arc<Tokenizer>,
    pub rule: Arc<dyn MaskRule>,
}

#[derive(Debug, thiserror::Error)]
pub enum ItemTokensError {
    #[error(transparent)]
    Tokens(#[from] TokensError),
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    #[error(transparent)]
    Mask(#[from] MaskError),
    #[error(transparent)]
    Rollout(#[from] RolloutError),
}

impl Masks {
    pub fn mask(&self, conversation: &Conversation) -> Result<Masked, MaskError> {
        let masked = self.rule.mask(&self.tokenizer, &conversation.messages, &conversation.how())?;
        if masked.ids.len() != masked.mask.len() {
            return Err(MaskError::Lengths { ids: masked.ids.len(), mask: masked.mask.len() });
        }
        Ok(masked)
    }

    /// All of them, on this many threads, in order.
    pub fn mask_all(&self, conversations: &[Conversation], threads: usize) -> Vec<Result<Masked, MaskError>> {
        in_order(conversations, threads, |conversation| self.mask(conversation))
    }

    /// The tokens of the template's own rendering of the whole conversation.
    pub fn tokens_of_text(&self, conversation: &Conversation) -> Result<Vec<u32>, MaskError> {
        let whole = self.tokenizer.render(&conversation.messages, &conversation.how())?;
        Ok(self.tokenizer.encoder().encode(&whole.text)?)
    }

    /// How sampled tokens differ from those of the text, and the latter.
    ///
    /// What the template prints after the last sampled token to close the turn is nobody's drift: an end of
    /// turn that the model did not reach, a newline after it.
    pub fn drift(
        &self,
        conversation: &Conversation,
        sampled: &[u32],
    ) -> Result<(Drift, Vec<u32>), MaskError> {
        let mut rendered = self.tokens_of_text(conversation)?;
        let mut drift = Drift::between(sampled, &rendered);
        if let Some(last) = drift.regions.last().cloned()
            && last.sampled.is_empty()
            && last.rendered.end == rendered.len()
            && self.closes(rendered.get(last.rendered.clone()).unwrap_or_default())
        {
            drift.regions.pop();
            rendered.truncate(last.rendered.start);
        }
        Ok((drift, rendered))
    }

    /// Whether the tokens are special ones and space only.
    fn closes(&self, ids: &[u32]) -> bool {
        let text = self.tokenizer.encoder().decode(ids, true);
        text.is_ok_and(|text| text.trim().is_empty())
    }

    /// That the mask's tokens are those of the whole conversation, rendered at once.
    pub fn check_whole(&self, conversation: &Conversation, masked: &Masked) -> Result<(), MaskError> {
        let whole = self.tokens_of_text(conversation)?;
        if masked.ids == whole {
            return Ok(());
        }
        let at = masked.ids.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        let text = |ids: &[u32]| {
            let ids = ids.get(at..ids.len().min(at + 8)).unwrap_or_default();
            self.tokenizer.encoder().decode(ids, false).unwrap_or_default()
        };
        Err(MaskError::NotWhole { at, masked: text(&masked.ids), whole: text(&whole) })
    }

    /// Where each message stands among the tokens, as far as the template keeps them apart.
    pub fn turns(&self, conversation: &Conversation, masked: &Masked) -> Vec<MessageSpan> {
        whole_turns(&self.tokenizer, &conversation.messages, &conversation.how(), masked)
    }

    /// The rollout of an item: with the tokens it carries, or else with those of its messages, whose template is
    /// told the time where it asks.
    pub fn rollout(&self, item: &[u8], now: CivilTime) -> Result<Rollout, ItemTokensError> {
        match rollout::decode(item) {
            Err(TokensError::Absent) => {}
            outcome => return Ok(outcome?),
        }
        let conversation = Conversation { now: Some(now), ..Conversation::from_item(item)? };
        let masked = self.mask(&conversation)?;
        Ok(retokenised(rollout::facts(item)?, &masked)?)
    }
}

/// The work on each of the items, on this many threads; the results in the order of the items.
pub fn in_order<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(nth) else { return done };
            done.push((nth, work(item)));
        }
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        all.extend(others.into_iter().flat_map(|other| other.join().expect("a rule does not panic")));
        all
    });
    all.sort_unstable_by_key(|(nth, _)| *nth);
    all.into_iter().map(|(_, result)| result).collect()
}

/// A rollout of tokens that were made from text. The prompt ends where the first trained token begins.
pub fn retokenised(facts: Draft, masked: &Masked) -> Result<Rollout, RolloutError> {
    let prompt_len = masked.ids.len() - masked.response_length();
    Rollout::try_from(Draft {
        tokens: masked.ids.iter().map(|id| id.cast_signed()).collect(),
        prompt_len,
        sampled: Some(masked.mask.values().skip(prompt_len).collect()),
        retokenised: true,
        ..facts
    })
}

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masks").field("tokenizer", &self.tokenizer).finish_non_exhaustive()
    }
}
