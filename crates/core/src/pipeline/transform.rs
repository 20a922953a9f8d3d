//! A rewrite of the whole group before it is filtered: for tasks whose rollouts are not yet what is trained on.
//!
//! There is no rewrite of our own; a generator brings one as `transform_group`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    #[default]
    None,
    /// A function of the task's generator, outside the ledger.
    Hook,
}
