//! Who owns a run, as written in its stream.

use serde::{Deserialize, Serialize};

/// A claim: from this message on, only its maker's messages fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// One more than the claim before.
    pub epoch: u64,
    /// The name of the node.
    pub node: String,
    /// Where it answers.
    pub url: String,
    /// Tells two claims of one node apart whose answer was lost.
    pub nonce: u64,
}

impl Claim {
    /// The id of its message, which what comes next has to name.
    pub(super) fn id(&self) -> String {
        format!("claim.{}.{:016x}", self.epoch, self.nonce)
    }
}
