//! Where a gateway writes what must survive it.

use futures_util::future::{BoxFuture, FutureExt, ready};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal of sessions cannot be written: {0}")]
pub struct JournalError(pub String);

/// When a record is safe.
pub type Receipt = BoxFuture<'static, Result<(), JournalError>>;

/// Records of sessions, in the order in which `append` was called. They are given back when the gateway is opened.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Takes its place in the order at once; the receipt says when it is safe. It does not wait.
    fn append(&self, session: &str, record: Vec<u8>) -> Receipt;

    /// Nothing of this session is needed any more.
    fn forget(&self, session: &str);
}

/// For sessions that end with the process that opened them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Journal for Nowhere {
    fn append(&self, _: &str, _: Vec<u8>) -> Receipt {
        ready(Ok(())).boxed()
    }

    fn forget(&self, _: &str) {}
}
