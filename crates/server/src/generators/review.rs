//! Where the hooks of a run's generator are called: the groups that the ledger poses go through them.

use rollyard_store::yard::Yard;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Generators;

/// Sees to it that the posed groups of a run are judged. Called for every run when it is opened; once is enough.
pub(crate) fn attach(
    _generators: &Arc<Generators>,
    _yard: &Yard,
    _tasks: &TaskTracker,
    _stopping: &CancellationToken,
) {
}
