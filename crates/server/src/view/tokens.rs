//! The texts of single tokens, by the tokenizer that the server was given.

use rollyard_core::rollout::Rollout;

use crate::App;

/// One for each token, or nothing without a tokenizer. What no tokenizer can have made adds no text.
pub(super) fn texts(app: &App, rollout: &Rollout) -> Option<Vec<String>> {
    let tokenizer = app.settings.tokenizer.as_ref()?;
    let ids: Vec<u32> = rollout.tokens().iter().map(|id| u32::try_from(*id).unwrap_or(u32::MAX)).collect();
    let made = tokenizer.encoder().texts(&ids);
    made.inspect_err(|error| tracing::warn!("the texts of {} tokens: {error}", ids.len())).ok()
}
