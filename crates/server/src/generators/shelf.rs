//! A run as the shelf of a built-in task: the same rules as for those who write over HTTP.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use rollyard_core::wire::item;
use rollyard_engine::task::{Refused, Shelf, ShelfError, Written};
use rollyard_store::yard::{Submission, Yard, YardError};
use std::collections::HashSet;

use crate::error::ApiError;

#[derive(Debug)]
pub(super) struct YardShelf(pub(super) Yard);

impl Shelf for YardShelf {
    fn known(&self, uids: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, ShelfError>> {
        Box::pin(async move {
            let known = self.0.ask(move |ledger| {
                uids.into_iter().filter(|uid| ledger.whereabouts(uid).is_some()).collect()
            });
            known.await.map_err(broken)
        })
    }

    fn write(&self, items: Vec<Bytes>) -> BoxFuture<'_, Result<Vec<Result<Written, Refused>>, ShelfError>> {
        Box::pin(async move {
            let decoded: Vec<_> = items
                .into_iter()
                .map(|bytes| item::decode(&bytes).map(|item| Submission::new(item, bytes)))
                .collect();
            let good: Vec<Submission> =
                decoded.iter().filter_map(|item| item.as_ref().ok().cloned()).collect();
            let mut admitted = self.0.admit(good).await.map_err(broken)?.into_iter();
            let outcome = |item: Result<Submission, item::ItemError>| {
                item.map_err(|error| refused(error.into()))?;
                match admitted.next() {
                    Some(Ok(admission)) => Ok(Written { duplicate: admission.duplicate }),
                    Some(Err(error)) => Err(refused(error.into())),
                    None => Err(refused(YardError::Closed.into())),
                }
            };
            Ok(decoded.into_iter().map(outcome).collect())
        })
    }
}

fn refused(error: ApiError) -> Refused {
    Refused { code: error.code.to_owned(), message: error.message }
}

fn broken(error: YardError) -> ShelfError {
    ShelfError(error.to_string())
}
