//! What the thread samples from, and whether its weights can change.

use std::sync::Arc;

use super::ask::AskError;
use crate::model::{Decoder, Policy, Weights};

#[derive(Debug)]
pub enum Model {
    /// The small model, which learns.
    Policy(Policy),
    /// One that stays as it is.
    Fixed(Box<dyn Decoder>),
}

impl Model {
    pub fn decoder(&self) -> &dyn Decoder {
        match self {
            Self::Policy(policy) => policy,
            Self::Fixed(decoder) => decoder.as_ref(),
        }
    }

    pub(super) fn decoder_mut(&mut self) -> &mut dyn Decoder {
        match self {
            Self::Policy(policy) => policy,
            Self::Fixed(decoder) => decoder.as_mut(),
        }
    }

    /// What was read so far is forgotten with the old weights.
    pub(super) fn take(&mut self, weights: Arc<Weights>) -> Result<(), AskError> {
        match self {
            Self::Policy(policy) if policy.shape() == weights.shape() => {
                policy.set_weights(weights);
                Ok(())
            }
            Self::Policy(policy) => Err(AskError::bad(
                "weights",
                format!(
                    "the new weights are of {:?}, but the model is of {:?}",
                    weights.shape(),
                    policy.shape()
                ),
            )),
            Self::Fixed(_) => Err(AskError::bad(
                "weights",
                "this model's weights cannot change; serve the small one".to_owned(),
            )),
        }
    }
}
