//! What becomes of a lease once its answer was sent.
//!
//! When the answer has arrived, a lease of a client that cannot ack is acked; when the reader goes away before that, the
//! lease goes back to the pool at once.
//!
//! In a cluster the reader may be at another node. That one alone sees whether the reader got everything, so the owner
//! sends the receipt along in headers, and acks nothing because the *other node* has all bytes.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use http_body::Frame;
use rollyard_core::ids::LeaseNo;
use rollyard_core::ledger::Command;
use rollyard_store::yard::{Yard, YardError};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio_util::task::TaskTracker;

use crate::cluster::{Settler, Verdict};
use crate::connection::Watch;

/// The lease that an answer holds, whether it is to be acked for the reader, and how many milliseconds it lasts.
const LEASE: HeaderName = HeaderName::from_static("x-rollyard-lease");
const LEASE_AUTO: HeaderName = HeaderName::from_static("x-rollyard-lease-auto");
const LEASE_MS: HeaderName = HeaderName::from_static("x-rollyard-lease-ms");

/// What is to happen with a lease once its answer has arrived or failed to.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    pub(crate) holder: Holder,
    pub(crate) lease: LeaseNo,
    /// Ack it for a client that cannot.
    pub(crate) auto: bool,
    /// After this the lease is no longer the reader's anyway.
    pub(crate) deadline: Instant,
}

/// Who has the run that a lease is of.
#[derive(Clone, Debug)]
pub(crate) enum Holder {
    Here(Yard),
    /// Another node has the run of that name.
    There(String),
}

impl Receipt {
    pub(crate) fn of(yard: &Yard, lease: LeaseNo, auto: bool, deadline: Instant) -> Self {
        Self { holder: Holder::Here(yard.clone()), lease, auto, deadline }
    }

    /// Leaves the ack to the node that the answer goes to.
    pub(crate) fn hand_on(&mut self, headers: &mut HeaderMap) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        headers.insert(LEASE, HeaderValue::from(self.lease.0));
        headers.insert(LEASE_AUTO, HeaderValue::from(u16::from(self.auto)));
        headers.insert(LEASE_MS, HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)));
        self.auto = false;
    }

    /// What another node handed on, if it did.
    pub(crate) fn take_from(headers: &mut HeaderMap, run: &str) -> Option<Self> {
        let mut number = |name| headers.remove(name)?.to_str().ok()?.parse::<u64>().ok();
        let (lease, auto, left_ms) = (number(LEASE)?, number(LEASE_AUTO)?, number(LEASE_MS)?);
        // A day is the longest lease; more would not fit into every clock.
        let left = Duration::from_millis(left_ms.min(86_400_000));
        Some(Self {
            holder: Holder::There(run.to_owned()),
            lease: LeaseNo(lease),
            auto: auto == 1,
            deadline: Instant::now() + left,
        })
    }

    async fn settle(self, arrived: bool, settler: Option<Settler>) {
        let verdict = match (arrived, self.auto) {
            (true, true) => Verdict::Ack,
            (true, false) => return,
            (false, _) => Verdict::Return,
        };
        let run = match &self.holder {
            Holder::There(run) => run.clone(),
            Holder::Here(yard) => {
                let command = match verdict {
                    Verdict::Ack => Command::Ack { lease: self.lease },
                    Verdict::Return => Command::Return { lease: self.lease },
                };
                match yard.run(command).await {
                    Ok(_) => return,
                    // The lease is on the log: whoever has the run now can settle it.
                    Err(error) if settler.is_some() && !matches!(error, YardError::Refused(_)) => {
                        yard.run_name().to_string()
                    }
                    Err(error) => {
                        return tracing::warn!(lease = %self.lease, arrived, "settling a lease: {error}");
                    }
                }
            }
        };
        if let Some(settler) = settler {
            settler.settle(&run, self.lease, verdict, self.deadline).await;
        }
    }
}

/// Follows an answer to its end. The outermost body, so that nothing is left to be sent after it.
pub(crate) struct FollowedBody {
    body: Body,
    /// Taken when the answer has come to its end.
    open: Option<(Receipt, Arc<Watch>, u64)>,
    tasks: TaskTracker,
    settler: Option<Settler>,
}

impl FollowedBody {
    pub(crate) fn new(
        body: Body,
        receipt: Receipt,
        (watch, request): (Arc<Watch>, u64),
        tasks: TaskTracker,
        settler: Option<Settler>,
    ) -> Self {
        Self { body, open: Some((receipt, watch, request)), tasks, settler }
    }
}

impl http_body::Body for FollowedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None))
            && let Some((receipt, watch, request)) = self.open.take()
        {
            let settler = self.settler.take();
            self.tasks.spawn(async move {
                let arrived = watch.arrived(request, receipt.deadline).await;
                receipt.settle(arrived, settler).await;
            });
        }
        polled
    }
}

impl Drop for FollowedBody {
    fn drop(&mut self) {
        let Some((receipt, ..)) = self.open.take() else { return };
        tracing::debug!(lease = %receipt.lease, "the reader went away, its lease goes back");
        match (&receipt.holder, self.settler.take()) {
            (Holder::Here(yard), None) => yard.return_later(receipt.lease),
            // Without a runtime the program is ending, and the lease expires.
            (_, settler) if tokio::runtime::Handle::try_current().is_ok() => {
                self.tasks.spawn(receipt.settle(false, settler));
            }
            _ => {}
        }
    }
}
