//! Settles leases that were read through this node and belong to a run of another.
//!
//! The owner sends the receipt along and leaves it to this node, which alone sees whether the reader got everything. If
//! the run moves meanwhile, its lease is on the log, and the new owner is asked.

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use rollyard_core::ids::LeaseNo;
use rollyard_core::ledger::Command;
use rollyard_store::yard::YardError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Cluster, Owner};
use crate::runs::Runs;

/// A lease that cannot be settled by then is left to expire.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Brings acks and returns to whoever owns the run by then.
#[derive(Clone, Debug)]
pub(crate) struct Settler {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) runs: Arc<Runs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ack,
    Return,
}

impl Settler {
    pub(crate) async fn settle(&self, run: &str, lease: LeaseNo, verdict: Verdict, deadline: Instant) {
        let until = deadline.min(Instant::now() + SETTLED_WITHIN);
        loop {
            let why = match self.try_to_settle(run, lease, verdict).await {
                Ok(()) => return,
                Err(why) => why,
            };
            if Instant::now() >= until {
                tracing::warn!(run, %lease, ?verdict, "a lease could not be settled, and expires: {why}");
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// An error is worth another try.
    async fn try_to_settle(&self, run: &str, lease: LeaseNo, verdict: Verdict) -> Result<(), String> {
        if self.cluster.owner(run) == Some(Owner::Here) {
            let yard = self.runs.find(run).map_err(|error| error.to_string())?;
            let command = match verdict {
                Verdict::Ack => Command::Ack { lease },
                Verdict::Return => Command::Return { lease },
            };
            return match yard.run(command).await {
                Ok(_) => Ok(()),
                Err(YardError::Refused(refusal)) => {
                    tracing::debug!(run, %lease, ?verdict, "settling a lease: {refusal}");
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            };
        }
        let call = match verdict {
            Verdict::Ack => "ack",
            Verdict::Return => "return",
        };
        let path = format!("/api/runs/{run}/leases/{lease}/{call}");
        let (status, said) = self.cluster.call(run, Method::POST, &path, Bytes::new()).await?;
        match status {
            status if status.is_success() => Ok(()),
            // It ended before, by whatever end; there is nothing left to do.
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::CONFLICT => {
                tracing::debug!(run, %lease, ?verdict, "settling a lease: {}", String::from_utf8_lossy(&said));
                Ok(())
            }
            status => Err(format!("{status}: {}", String::from_utf8_lossy(&said))),
        }
    }
}
