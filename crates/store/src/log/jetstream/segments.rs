//! Where the segments of payloads begin, and how large they are.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use rollyard_core::ids::Place;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::contract::SegmentNo;
use super::super::error::LogError;
use super::history;
use super::message;
use super::names::Names;
use super::told;

const BASE: &str = "Ry-Base";
const BYTES: &str = "Ry-Bytes";
const BLOBS: &str = "Ry-Blobs";

/// A segment, as the last of its bundles tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The stream sequence of its first bundle.
    pub(super) base: u64,
    /// Of its payloads.
    pub(super) bytes: u64,
    /// Payloads that lie elsewhere.
    pub(super) blobs: u64,
}

impl Extent {
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        for (name, value) in [(BASE, self.base), (BYTES, self.bytes), (BLOBS, self.blobs)] {
            headers.insert(name, value.to_string().as_str());
        }
    }

    fn of(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.as_str().parse().ok();
        Some(Self { base: number(BASE)?, bytes: number(BYTES)?, blobs: number(BLOBS)? })
    }
}

/// The segments that are there. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments(Arc<Mutex<BTreeMap<SegmentNo, Extent>>>);

impl Segments {
    /// Reads the headers of every segment's last bundle.
    pub(super) async fn find(stream: &Stream, names: &Names) -> Result<Self, LogError> {
        let found = Self::default();
        let failed = |error: &dyn std::fmt::Display| told::failed("list its segments", &names.stream, error);
        let config = pull::OrderedConfig {
            filter_subject: names.all_payloads(),
            deliver_policy: DeliverPolicy::LastPerSubject,
            headers_only: true,
            ..pull::OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| failed(&error))?;
        let (name, pending) = (consumer.cached_info().name.clone(), consumer.cached_info().num_pending);
        let mut messages = consumer.messages().await.map_err(|error| failed(&error))?;
        if pending == 0 {
            drop(messages);
            history::finish(stream, names, &name).await;
            return Ok(found);
        }
        while let Some(message) = history::next(&mut messages, names).await? {
            let info = message.info().map_err(|error| failed(&error))?;
            let extent = message.headers.as_ref().and_then(Extent::of);
            let (Some(segment), Some(extent)) = (names.segment(&message.subject), extent) else {
                let bad = message::BadMessage::Damaged("a bundle does not say what segment it is of");
                return Err(told::bad(&names.stream, info.stream_sequence, bad));
            };
            found.lock().insert(segment, extent);
            if info.pending == 0 {
                break;
            }
        }
        drop(messages);
        history::finish(stream, names, &name).await;
        Ok(found)
    }

    pub(super) fn all(&self) -> Vec<(SegmentNo, Extent)> {
        self.lock().iter().map(|(segment, extent)| (*segment, *extent)).collect()
    }

    pub(super) fn set(&self, segment: SegmentNo, extent: Extent) {
        self.lock().insert(segment, extent);
    }

    pub(super) fn get(&self, segment: SegmentNo) -> Option<Extent> {
        self.lock().get(&segment).copied()
    }

    pub(super) fn remove(&self, segment: SegmentNo) {
        self.lock().remove(&segment);
    }

    /// The stream sequence of the bundle that holds a payload, and its index there.
    pub(super) fn find_bundle(&self, place: Place) -> Option<(u64, usize)> {
        let extent = self.get(SegmentNo::of(place))?;
        let (distance, index) = message::distance_and_index(place);
        Some((extent.base + distance, index))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SegmentNo, Extent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
