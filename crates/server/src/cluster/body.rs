//! The body of a request that may have to be sent twice.
//!
//! A small one is kept. Of a large one the beginning is in memory and the rest comes from the client as it is sent on;
//! it can be sent again as long as nobody has taken anything of it.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// What is kept to be sent again.
const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) enum Kept {
    Whole(Bytes),
    Passing(Passing),
}

impl Kept {
    /// Reads up to a megabyte, and the whole of it if `all`, up to `bytes_max`.
    pub(super) async fn of(mut body: Body, all: bool, bytes_max: usize) -> Result<Self, axum::Error> {
        let limit = if all { bytes_max.max(KEPT_BYTES_MAX) } else { KEPT_BYTES_MAX };
        let mut beginning = BytesMut::new();
        let mut first: Option<Bytes> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            // Most bodies come in one piece, which need not be copied.
            match first.take() {
                None if beginning.is_empty() => first = Some(data),
                earlier => {
                    beginning.extend_from_slice(&earlier.unwrap_or_default());
                    beginning.extend_from_slice(&data);
                }
            }
            if beginning.len().max(first.as_ref().map_or(0, Bytes::len)) > limit {
                let beginning = first.unwrap_or_else(|| beginning.freeze());
                return Ok(Self::Passing(Passing::new(beginning, body)));
            }
        }
        Ok(Self::Whole(first.unwrap_or_else(|| beginning.freeze())))
    }

    /// The body, to be sent; `None` if it went already.
    pub(super) fn body(&self) -> Option<Body> {
        match self {
            Self::Whole(bytes) => Some(Body::from(bytes.clone())),
            Self::Passing(passing) => passing.is_whole().then(|| Body::new(passing.clone())),
        }
    }

    /// The same for another node.
    pub(super) fn outgoing(&self) -> Option<reqwest::Body> {
        match self {
            Self::Whole(bytes) => Some(bytes.clone().into()),
            Self::Passing(passing) => passing.is_whole().then(|| reqwest::Body::wrap(passing.clone())),
        }
    }

    /// Whether it could be sent again.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Passing(passing) => passing.is_whole(),
        }
    }

    pub(super) fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Passing(_) => None,
        }
    }
}

/// A body that goes from the client to whoever asks first.
#[derive(Clone, Debug)]
pub(super) struct Passing(Arc<Mutex<Source>>);

#[derive(Debug)]
struct Source {
    body: Body,
    is_touched: bool,
}

impl Passing {
    fn new(beginning: Bytes, rest: Body) -> Self {
        let first = stream::iter([Ok(beginning)]);
        Self::of(Body::from_stream(stream::StreamExt::chain(first, rest.into_data_stream())))
    }

    pub(super) fn of(body: Body) -> Self {
        Self(Arc::new(Mutex::new(Source { body, is_touched: false })))
    }

    fn is_whole(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_touched
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.is_touched = true;
        Pin::new(&mut source.body).poll_frame(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(count: usize, bytes: usize) -> Body {
        Body::from_stream(stream::iter((0..count).map(move |n| Ok::<_, axum::Error>(vec![n as u8; bytes]))))
    }

    async fn read(body: Body) -> Vec<u8> {
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_small_body_can_be_sent_as_often_as_needed() {
        for (count, bytes) in [(0, 0), (1, 100), (5, 100), (2, 500_000)] {
            let expected = read(pieces(count, bytes)).await;
            let kept = Kept::of(pieces(count, bytes), false, 0).await.unwrap();
            for _ in 0..2 {
                assert_eq!(read(kept.body().unwrap()).await, expected);
            }
        }
    }

    #[tokio::test]
    async fn a_large_body_passes_through_once_and_whole() {
        for (count, bytes) in [(1, 2 << 20), (40, 100_000)] {
            let expected = read(pieces(count, bytes)).await;
            let kept = Kept::of(pieces(count, bytes), false, 0).await.unwrap();
            drop(kept.body().unwrap());
            assert!(kept.is_there(), "nobody took anything of it");
            assert!(read(kept.body().unwrap()).await == expected);
            assert!(kept.body().is_none());
        }
    }

    #[tokio::test]
    async fn a_body_that_has_to_be_looked_into_is_kept_whole() {
        let kept = Kept::of(pieces(40, 100_000), true, 8 << 20).await.unwrap();
        assert_eq!(kept.bytes().unwrap().len(), 4_000_000);
    }
}
