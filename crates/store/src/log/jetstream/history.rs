//! Reads a stream from some message on, and puts batches together.

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::StreamExt;
use rollyard_core::ids::RunName;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::contract::Entry;
use super::super::error::{LogError, ReplayError};
use super::blobs::BlobStore;
use super::connection::{Connection, last_message};
use super::message::{BadMessage, Piece, entries};
use super::names::Names;
use super::reader::Reader;
use super::segments::Segments;
use super::settings::Blobs;
use super::told;

/// How long a message may keep its reader waiting.
const MESSAGE_WITHIN: Duration = Duration::from_secs(3);

/// Calls `visit` with every message of a subject in `messages`, the last of which must be one of it.
pub(super) async fn visit_messages<E: From<LogError>>(
    stream: &Stream,
    names: &Names,
    subject: &str,
    messages: RangeInclusive<u64>,
    mut visit: impl FnMut(u64, &Bytes) -> Result<(), E>,
) -> Result<(), E> {
    if messages.is_empty() {
        return Ok(());
    }
    let (from, last) = messages.into_inner();
    let failed = |error: &dyn std::fmt::Display| told::failed("read it", &names.stream, error);
    let config = pull::OrderedConfig {
        filter_subject: subject.to_owned(),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
        ..pull::OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|error| failed(&error))?;
    let name = consumer.cached_info().name.clone();
    let mut messages = consumer.messages().await.map_err(|error| failed(&error))?;
    while let Some(message) = next(&mut messages, names).await? {
        let sequence = message.info().map_err(|error| failed(&error))?.stream_sequence;
        visit(sequence, &message.payload)?;
        if sequence >= last {
            drop(messages);
            finish(stream, names, &name).await;
            return Ok(());
        }
    }
    let short = format!("it ended before message {last}");
    Err(failed(&short).into())
}

/// The next message that is read. One that does not come is not waited for without end: it may have been purged, or
/// the server that was asked is gone.
pub(super) async fn next(
    messages: &mut pull::Ordered,
    names: &Names,
) -> Result<Option<async_nats::jetstream::Message>, LogError> {
    let failed = |error: &dyn std::fmt::Display| told::failed("read it", &names.stream, error);
    let next = tokio::time::timeout(MESSAGE_WITHIN, messages.next()).await;
    next.map_err(|error| failed(&error))?.transpose().map_err(|error| failed(&error))
}

/// Takes a reader off the server, which would keep it for minutes. It is gone by itself if this fails.
pub(super) async fn finish(stream: &Stream, names: &Names, consumer: &str) {
    if let Err(error) = stream.delete_consumer(consumer).await {
        tracing::debug!(run = %names.run, "a consumer is left to end by itself: {error}");
    }
}

/// The newest part of the history, and the sequence of its message.
pub(super) async fn newest(stream: &Stream, names: &Names) -> Result<Option<(Piece, u64)>, LogError> {
    let Some(message) = last_message(stream, names, &names.history()).await? else { return Ok(None) };
    let piece = Piece::decode(&message.payload);
    Ok(Some((piece.map_err(|bad| told::bad(&names.stream, message.sequence, bad))?, message.sequence)))
}

/// Visits every record from `from_seq` on. The first of `messages` must begin a batch, the last be of the history.
pub(super) async fn replay<E>(
    stream: &Stream,
    names: &Names,
    messages: RangeInclusive<u64>,
    from_seq: u64,
    mut progress: impl FnMut(u64, u64),
    mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<u64, ReplayError<E>> {
    let (from, last) = messages.clone().into_inner();
    let total = (last + 1).saturating_sub(from);
    let mut batch = Gathered::default();
    let mut next_seq = None;
    visit_messages(stream, names, &names.history(), messages, |sequence, bytes| {
        let bad = |bad| ReplayError::Log(told::bad(&names.stream, sequence, bad));
        let Some(first_seq) = batch.add(Piece::decode(bytes).map_err(bad)?).map_err(bad)? else {
            return Ok(());
        };
        if next_seq.is_some_and(|next_seq| next_seq != first_seq)
            || first_seq > from_seq.max(1) && next_seq.is_none()
        {
            return Err(bad(BadMessage::Damaged("records are missing before it")));
        }
        let found = entries(&batch.bytes).map_err(bad)?;
        next_seq = Some(first_seq + found.len() as u64);
        for (seq, entry) in (first_seq..).zip(found).filter(|(seq, _)| *seq >= from_seq) {
            let entry = Entry { seq, place: entry.place, payload_len: entry.payload_len, body: entry.body };
            visit(entry).map_err(ReplayError::Visit)?;
        }
        progress(sequence + 1 - from, total);
        Ok(())
    })
    .await?;
    Ok(next_seq.unwrap_or(from_seq.max(1)) - 1)
}

/// The pieces of a batch so far.
#[derive(Debug, Default)]
struct Gathered {
    first_seq: u64,
    epoch: u64,
    pieces: u32,
    bytes: Vec<u8>,
}

impl Gathered {
    /// Takes a piece in; gives the number of the batch's first record when it is whole.
    fn add(&mut self, piece: Piece) -> Result<Option<u64>, BadMessage> {
        // A batch that was begun by an owner who did not finish it is passed over.
        if piece.piece == 0 {
            (self.first_seq, self.epoch, self.pieces) = (piece.first_seq, piece.epoch, 0);
            self.bytes.clear();
        }
        if (self.first_seq, self.epoch, self.pieces) != (piece.first_seq, piece.epoch, piece.piece) {
            return Err(BadMessage::Damaged("a part of a batch is missing before it"));
        }
        self.pieces += 1;
        self.bytes.extend_from_slice(&piece.bytes);
        Ok(piece.last.then_some(piece.first_seq))
    }
}

/// When a stream was made: tells it from one of the same name that was removed before, or is elsewhere.
pub(super) fn born(stream: &Stream) -> String {
    stream.cached_info().created.unix_timestamp_nanos().to_string()
}

/// A run's history, read without owning it.
#[derive(Debug)]
pub struct Followed {
    /// Reads the payloads of the records seen.
    pub reader: Reader,
    /// The last record seen; 0 when there is none.
    pub last_seq: u64,
}

impl Connection {
    /// Visits every record of a run from the first on, claiming nothing. Nothing if the run has no stream.
    pub fn visit<E>(
        &self,
        run: &RunName,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Option<Followed>, ReplayError<E>> {
        let names = self.names(run);
        self.run(async {
            let Some(stream) = self.find(&names).await? else { return Ok(None) };
            self.visit_stream(&names, stream, visit).await.map(Some)
        })
    }

    pub(super) async fn visit_stream<E>(
        &self,
        names: &Names,
        stream: Stream,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Followed, ReplayError<E>> {
        let last = newest(&stream, names).await?.map_or(0, |(_, sequence)| sequence);
        let last_seq = replay(&stream, names, 1..=last, 1, |_, _| {}, visit).await?;
        // Afterwards, so that the segments of everything seen are known.
        let segments = Segments::find(&stream, names).await?;
        let blobs = self.blobs(names, &stream, self.bucket(names).await?)?;
        let reader = Reader::new(self.clone(), names.clone(), stream, blobs, segments, None);
        Ok(Followed { reader, last_seq })
    }

    /// Where a run's large payloads are: in its bucket, where nothing else was chosen.
    pub(super) fn blobs(
        &self,
        names: &Names,
        stream: &Stream,
        bucket: BlobStore,
    ) -> Result<BlobStore, LogError> {
        match &self.settings().blobs {
            Blobs::JetStream => Ok(bucket),
            Blobs::Bucket(url) => BlobStore::bucket(url, &format!("{}-{}", names.stream, born(stream))),
        }
    }
}
