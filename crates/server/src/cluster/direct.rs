//! Puts large rollouts where blobs are kept, from the node that a producer asks: the owner of the run gets references.
//!
//! A rollout that cannot be put there goes whole, as if this were not here.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt};
use http_body_util::BodyExt;
use rollyard_core::ids::RunName;
use rollyard_core::wire::reference;
use rollyard_store::log::BlobPlace;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use super::route::Writes;
use super::{Cluster, Owner};
use crate::body::{Lines, Unfinished};

/// Blobs of one request that are put at the same time.
const PUT_AT_ONCE: usize = 8;

impl Cluster {
    /// Where a run's large rollouts may be put; `None` if they go through its owner.
    pub(super) async fn blob_place(&self, run: &str) -> Option<Arc<dyn BlobPlace>> {
        let known = || self.blob_places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known().get(run) {
            return Some(Arc::clone(place));
        }
        let name = RunName::try_from(run).ok()?;
        let ground = Arc::clone(&self.ground);
        let place = match tokio::task::spawn_blocking(move || ground.blobs(&name)).await.ok()? {
            Ok(place) => place?,
            Err(error) => {
                tracing::debug!(run, "large rollouts go through the owner: {error}");
                return None;
            }
        };
        known().insert(run.to_owned(), Arc::clone(&place));
        Some(place)
    }

    /// Lines with references in place of large rollouts, for whoever owns the run.
    pub(crate) async fn lighten_for_owner(&self, run: &str, lines: Bytes) -> Bytes {
        match self.owner(run) {
            Some(Owner::There { claim: Some(claim), .. }) => {
                self.lighten(run, claim, Writes::Lines, lines).await
            }
            _ => lines,
        }
    }

    /// A body with references in place of its large rollouts.
    pub(super) async fn lighten(&self, run: &str, claim: u64, writes: Writes, body: Bytes) -> Bytes {
        let Some(putter) = self.putter(run, claim).await else { return body };
        if body.len() <= putter.place.inline_max() {
            return body;
        }
        match writes {
            Writes::One => putter.put(body).await,
            Writes::Lines => {
                let lines = Lines::new(Body::from(body), usize::MAX);
                let lightened = Body::from_stream(putter.references(lines));
                // Nothing can fail: it was whole before.
                lightened.collect().await.map(|collected| collected.to_bytes()).unwrap_or_default()
            }
        }
    }

    /// The same for lines that are still coming. One that is too long, and all after it, are left as they are.
    pub(super) async fn lighten_passing(
        &self,
        run: &str,
        claim: u64,
        body: Body,
        line_bytes_max: usize,
    ) -> Body {
        match self.putter(run, claim).await {
            Some(putter) => Body::from_stream(putter.references(Lines::new(body, line_bytes_max))),
            None => body,
        }
    }

    /// Bytes of rollouts that this node put where blobs are kept, in place of their owners.
    pub(crate) fn direct_bytes(&self) -> u64 {
        self.direct_bytes.load(Ordering::Relaxed)
    }

    async fn putter(&self, run: &str, claim: u64) -> Option<Putter> {
        let place = self.blob_place(run).await?;
        Some(Putter { place, claim, put_bytes: Arc::clone(&self.direct_bytes) })
    }
}

/// Puts rollouts for one claim of a run.
#[derive(Clone)]
struct Putter {
    place: Arc<dyn BlobPlace>,
    claim: u64,
    put_bytes: Arc<AtomicU64>,
}

impl Putter {
    fn references(self, lines: Lines) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        let lightened = pieces(lines).map(move |piece| {
            let putter = self.clone();
            async move {
                Ok(match piece? {
                    Piece::Line(line) => {
                        let mut line = BytesMut::from(putter.put(line).await);
                        line.extend_from_slice(b"\n");
                        line.freeze()
                    }
                    Piece::Rest(bytes) => bytes,
                })
            }
        });
        lightened.buffered(PUT_AT_ONCE)
    }

    /// Puts a rollout there if it is large, and gives what stands for it; the rollout itself if that cannot be.
    async fn put(self, rollout: Bytes) -> Bytes {
        let Self { place, claim, put_bytes } = self;
        if rollout.len() <= place.inline_max() {
            return rollout;
        }
        let whole = rollout.clone();
        let tried = tokio::task::spawn_blocking(move || {
            // Its owner says what is wrong with one that cannot be read.
            let (reference, name) = reference::of_rollout(&rollout, claim).ok().flatten()?;
            let len = rollout.len() as u64;
            match place.put(&name, rollout) {
                Ok(()) => {
                    put_bytes.fetch_add(len, Ordering::Relaxed);
                    Some(Bytes::from(reference))
                }
                Err(error) => {
                    tracing::debug!("a large rollout goes through the owner: {error}");
                    None
                }
            }
        });
        tried.await.ok().flatten().unwrap_or(whole)
    }
}

enum Piece {
    Line(Bytes),
    /// Not to be looked at.
    Rest(Bytes),
}

fn pieces(lines: Lines) -> impl Stream<Item = Result<Piece, axum::Error>> + Send {
    enum State {
        Lines(Lines),
        Rest(Body),
    }
    stream::try_unfold(State::Lines(lines), |state| async move {
        let mut rest = match state {
            State::Lines(mut lines) => match lines.next().await {
                Ok(Some(line)) => return Ok(Some((Piece::Line(line), State::Lines(lines)))),
                Ok(None) => return Ok(None),
                Err(Unfinished::Broken(error)) => return Err(error),
                Err(Unfinished::TooLong) => {
                    let (begun, rest) = lines.into_rest();
                    return Ok(Some((Piece::Rest(begun), State::Rest(rest))));
                }
            },
            State::Rest(rest) => rest,
        };
        let data = rest.frame().await.transpose()?.map(|frame| frame.into_data().unwrap_or_default());
        Ok(data.map(|data| (Piece::Rest(data), State::Rest(rest))))
    })
}
