//! Reads payloads back, from memory where it can.

use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use rollyard_core::ids::Place;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

use super::super::contract::{BlobPlace, Payloads};
use super::super::error::{LogError, ReadError};
use super::blobs::{BlobStore, RunBlobs};
use super::connection::{Connection, again};
use super::history;
use super::message::{Held, payload_of};
use super::names::Names;
use super::segments::Segments;
use super::told;

/// Anyone's end of a log on JetStream. Clones share it.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    names: Names,
    stream: Stream,
    blobs: BlobStore,
    /// The same, for whoever makes payloads.
    place: Arc<dyn BlobPlace>,
    segments: Segments,
    /// Tells the stream from others whose bundles are kept in memory.
    stream_key: u64,
    /// Of the owner, whose end it is.
    claim: Option<u64>,
}

impl Reader {
    pub(super) fn new(
        connection: Connection,
        names: Names,
        stream: Stream,
        blobs: BlobStore,
        segments: Segments,
        claim: Option<u64>,
    ) -> Self {
        let stream_key = xxh3_64(format!("{} {}", names.stream, history::born(&stream)).as_bytes());
        let place = Arc::new(RunBlobs::new(connection.clone(), blobs.clone()));
        let inner = Inner { connection, names, stream, blobs, place, segments, stream_key, claim };
        Self { inner: Arc::new(inner) }
    }

    /// Bundles that were just written are read next.
    pub(super) fn keep(&self, sequence: u64, bundle: Bytes) {
        self.inner.connection.cache().put((self.inner.stream_key, sequence), bundle);
    }
}

impl Payloads for Reader {
    fn payload(&self, place: Place) -> Result<Bytes, ReadError> {
        let Inner { connection, names, segments, stream_key, .. } = &*self.inner;
        let path = || PathBuf::from(format!("stream {}", names.stream));
        let gone = || ReadError::Gone { place, path: path() };
        let (sequence, index) = segments.find_bundle(place).ok_or_else(gone)?;
        let kept = connection.cache().get((*stream_key, sequence));
        let failed = |error: LogError| ReadError::Io { place, cause: io::Error::other(error), path: path() };
        let patience = connection.settings().patience;
        let bundle = match kept {
            Some(bundle) => bundle,
            None => {
                let found = connection.run(again(patience, async || self.inner.message(sequence).await));
                // What is not there was purged, perhaps just now.
                let bundle = found.map_err(failed)?.ok_or_else(gone)?;
                self.keep(sequence, bundle.clone());
                bundle
            }
        };
        let corrupt = |what| ReadError::Corrupt { place, what, path: path() };
        let held = payload_of(&bundle, index).map_err(|bad| match bad {
            super::message::BadMessage::Damaged(what) => corrupt(what),
            super::message::BadMessage::Version(_) => corrupt("it is of another version"),
        })?;
        match held {
            Some(Held::Inline(bytes)) => Ok(bytes),
            Some(Held::Blob { name, crc }) => {
                let blob = connection.run(again(patience, async || self.inner.blobs.get(&name).await));
                let bytes = blob.map_err(failed)?.ok_or_else(gone)?;
                if crc32c::crc32c(&bytes) != crc {
                    return Err(corrupt("the checksum of a blob differs"));
                }
                Ok(bytes)
            }
            None => Err(corrupt("there is none in this record")),
        }
    }

    fn blobs(&self) -> Option<Arc<dyn BlobPlace>> {
        Some(Arc::clone(&self.inner.place))
    }

    fn claim(&self) -> Option<u64> {
        self.inner.claim
    }
}

impl Inner {
    /// A message of the stream: from any replica that has it, else from the leader, whose word counts.
    async fn message(&self, sequence: u64) -> Result<Option<Bytes>, LogError> {
        match self.stream.direct_get(sequence).await {
            Ok(message) => return Ok(Some(message.payload)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => {}
            Err(error) => return Err(told::failed("read a message", &self.names.stream, error)),
        }
        match self.stream.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.payload)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(told::failed("read a message", &self.names.stream, error)),
        }
    }
}
