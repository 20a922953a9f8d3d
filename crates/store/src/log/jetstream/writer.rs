//! Sends batches and purges what is not needed any more.

use async_nats::header::{NATS_EXPECTED_LAST_SEQUENCE, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{Client, HeaderMap, Request};
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

use super::super::contract::{Commit, Release, SegmentNo};
use super::super::error::{Failure, LogError};
use super::blobs::BlobStore;
use super::claim::Claim;
use super::connection::{Connection, again, last_claim, last_message};
use super::history;
use super::message::blobs_of;
use super::names::Names;
use super::reader::Reader;
use super::segments::{Extent, Segments};
use super::snapshots::Marks;
use super::stager::Batch;
use super::told;

/// An append that was not answered by then is sent again.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(100);

/// Refusals of an owner that is still the owner before it opens the log anew.
const MISFITS_MAX: usize = 3;

/// Blobs that are put or deleted at the same time.
const BLOBS_AT_ONCE: usize = 8;

const APPEND: &str = "append a batch";

/// Of which subject the last sequence is expected.
const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Who has heard from the stream this lately is still its owner: nobody takes a run over that fast.
const SURE_FOR: Duration = Duration::from_millis(500);

/// The sync thread's end of a log on JetStream.
#[derive(Debug)]
pub struct Writer {
    pub(super) connection: Connection,
    pub(super) names: Names,
    pub(super) stream: Stream,
    /// Of the server that the stream is on, if that can be had.
    pub(super) client: Client,
    pub(super) blobs: BlobStore,
    pub(super) claim: Claim,
    /// The sequence of the claim.
    pub(super) claimed_at: u64,
    pub(super) segments: Segments,
    pub(super) reader: Reader,
    pub(super) marks: Marks,
    pub(super) committed_seq: u64,
    pub(super) failed: Failure,
    /// When the stream last showed that it is ours.
    pub(super) sure: Instant,
    pub(super) sent_again: u64,
    /// Segments with blobs, which take long to delete.
    pub(super) deleting: Vec<JoinHandle<()>>,
}

/// A message, and the sequence it must get.
struct Message {
    sequence: u64,
    subject: String,
    headers: HeaderMap,
    bytes: Bytes,
}

/// A batch was not stored.
struct Unsent {
    error: LogError,
    then: Then,
}

enum Then {
    SendAgain,
    /// Something else came before it.
    LookWho,
    GiveUp,
}

impl Commit for Writer {
    type Batch = Batch;

    fn commit(&mut self, batch: Batch) -> Result<(), LogError> {
        self.failed.check()?;
        let expected = self.committed_seq + 1;
        if batch.first_seq != expected {
            return Err(LogError::OutOfOrder { expected, found: batch.first_seq });
        }
        let asked = Instant::now();
        let connection = self.connection.clone();
        let appended = connection.run(self.append(&batch));
        self.failed.remember(appended)?;
        // Not from now on: the process may have been paused since the answer came.
        self.sure = asked;
        self.committed_seq += u64::from(batch.count);
        self.marks.note(self.committed_seq, batch.last_sequence());
        for (sequence, bundle) in (batch.first_sequence..).zip(batch.bundles) {
            self.segments.set(batch.segment, bundle.extent);
            self.reader.keep(sequence, bundle.bytes);
        }
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), LogError> {
        self.failed.check()?;
        if self.sure.elapsed() < SURE_FOR {
            return Ok(());
        }
        let asked = Instant::now();
        let confirmed = self.connection.run(again(self.patience(), async || self.check_owner().await));
        self.failed.remember(confirmed)?;
        self.sure = asked;
        Ok(())
    }

    fn committed_seq(&self) -> u64 {
        self.committed_seq
    }

    fn release(&mut self, release: Release) -> Result<u64, LogError> {
        self.failed.check()?;
        let segment = release.due(self.committed_seq)?;
        let Some(extent) = self.segments.get(segment) else { return Ok(0) };
        self.segments.remove(segment);
        let purge = Purge {
            stream: self.stream.clone(),
            names: self.names.clone(),
            blobs: self.blobs.clone(),
            segment,
            extent,
            until: self.marks.last() + 1,
        };
        if extent.blobs == 0 {
            self.connection.run(again(self.patience(), async || purge.messages().await))?;
        } else {
            // The batches that follow need not wait for it. What a crash leaves is released after the next start.
            self.deleting.retain(|task| !task.is_finished());
            self.deleting.push(self.connection.handle().spawn(async move {
                if let Err(error) = purge.everything().await {
                    tracing::warn!(run = %purge.names.run, %segment, "releasing payloads: {error}");
                }
            }));
        }
        Ok(extent.bytes)
    }

    fn close(mut self) -> Result<(), LogError> {
        let deleting = std::mem::take(&mut self.deleting);
        let patience = self.patience();
        self.connection.run(async {
            let all = futures_util::future::join_all(deleting);
            let _left_for_the_next_start = tokio::time::timeout(patience, all).await;
        });
        self.failed.check()
    }
}

impl Writer {
    /// How often a batch did not fit, or was not answered, and was sent again.
    pub fn sent_again(&self) -> u64 {
        self.sent_again
    }

    fn patience(&self) -> Duration {
        self.connection.settings().patience
    }

    async fn append(&mut self, batch: &Batch) -> Result<(), LogError> {
        self.put_blobs(batch).await?;
        let until = Instant::now() + self.patience();
        let mut sent = self.send(batch).await;
        let mut misfits = 0;
        while let Err(Unsent { error, then }) = sent {
            misfits += usize::from(matches!(then, Then::LookWho));
            // An owner that does not fit any more has been forgotten by the servers; a new claim puts that right.
            if matches!(then, Then::GiveUp) || misfits > MISFITS_MAX || Instant::now() >= until {
                return Err(error);
            }
            tracing::debug!(run = %self.names.run, "an append is sent again: {error}");
            self.sent_again += 1;
            match self.check_owner().await {
                Err(fenced @ LogError::Fenced { .. }) => return Err(fenced),
                Err(unanswered) => tracing::debug!(run = %self.names.run, "{unanswered}"),
                Ok(()) => {}
            }
            tokio::time::sleep(PAUSE).await;
            sent = self.send_one_by_one(batch).await;
        }
        Ok(())
    }

    async fn put_blobs(&self, batch: &Batch) -> Result<(), LogError> {
        let put = |(name, bytes): &(String, Bytes)| {
            let (name, bytes) = (name.clone(), bytes.clone());
            again(self.patience(), async move || self.blobs.put(&name, bytes.clone()).await)
        };
        stream::iter(batch.blobs.iter().map(put).collect::<Vec<_>>())
            .buffer_unordered(BLOBS_AT_ONCE)
            .try_collect()
            .await
    }

    /// Sends the bundles, all at once, and then the history that names them.
    async fn send(&self, batch: &Batch) -> Result<(), Unsent> {
        let mut messages = self.messages(batch);
        let bundles = messages.by_ref().take(batch.bundles.len());
        if self.is_replicated() {
            // A bundle that was refused may have been refused because an old owner's has its place. What follows would
            // fit, and name the other.
            try_join_all(bundles.map(|bundle| self.ask(bundle))).await?;
        } else {
            for Message { subject, headers, bytes, .. } in bundles {
                let sent = self.client.publish_with_headers(subject, headers, bytes).await;
                sent.map_err(|error| self.unsent(&error))?;
            }
        }
        for piece in messages {
            self.ask(piece).await?;
        }
        Ok(())
    }

    fn is_replicated(&self) -> bool {
        self.stream.cached_info().config.num_replicas > 1
    }

    /// Sends again what is not there yet, and waits for each message: the one that is refused says why.
    async fn send_one_by_one(&self, batch: &Batch) -> Result<(), Unsent> {
        for message in self.messages(batch) {
            if !self.is_stored(message.sequence).await? {
                self.ask(message).await?;
            }
        }
        Ok(())
    }

    /// Whether our message of that sequence is there: its answer may have been lost.
    async fn is_stored(&self, sequence: u64) -> Result<bool, Unsent> {
        match self.stream.get_raw_message(sequence).await {
            Ok(message) => {
                let id = message.headers.get(NATS_MESSAGE_ID).map(|id| id.as_str().to_owned());
                Ok(id.is_some_and(|id| id == self.id(sequence)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(self.unsent(&error)),
        }
    }

    fn id(&self, sequence: u64) -> String {
        format!("{}.{sequence}", self.claim.epoch)
    }

    fn messages(&self, batch: &Batch) -> impl Iterator<Item = Message> {
        let (payloads, history) = (self.names.payloads(batch.segment), self.names.history());
        let bundles = batch.bundles.iter().map(|bundle| (Some(bundle.extent), bundle.bytes.clone()));
        let pieces = batch.pieces.iter().map(|piece| (None, piece.clone()));
        (batch.first_sequence..).zip(bundles.chain(pieces)).map(move |(sequence, (extent, bytes))| {
            let subject = if extent.is_some() { payloads.clone() } else { history.clone() };
            Message { sequence, subject, headers: self.headers(sequence, extent), bytes }
        })
    }

    async fn ask(&self, message: Message) -> Result<(), Unsent> {
        let Message { sequence, subject, headers, bytes } = message;
        let request = Request::new().headers(headers).payload(bytes).timeout(Some(ANSWER_WITHIN));
        let answer = self.client.send_request(subject, request).await;
        let answer = answer.map_err(|error| self.unsent(&error))?;
        let answer = serde_json::from_slice(&answer.payload).map_err(|error| self.unsent(&error))?;
        self.judge(&answer, sequence)
    }

    fn unsent(&self, error: &dyn std::fmt::Display) -> Unsent {
        Unsent { error: told::failed(APPEND, &self.names.stream, error), then: Then::SendAgain }
    }

    fn judge(&self, answer: &Response<PublishAck>, expected: u64) -> Result<(), Unsent> {
        let error = match answer {
            Response::Ok(ack) if ack.sequence == expected => return Ok(()),
            Response::Ok(ack) => {
                let what = format!("it was stored as message {}, and {expected} was meant", ack.sequence);
                return Err(Unsent { then: Then::GiveUp, ..self.unsent(&what) });
            }
            Response::Err { error } => error,
        };
        // A message before it was lost on the way, or somebody else has appended.
        let is_misfit = error.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE;
        let error = told::refused(APPEND, &self.names.stream, error);
        let then = match error {
            LogError::NoSpace { .. } => Then::GiveUp,
            _ if is_misfit => Then::LookWho,
            _ => Then::SendAgain,
        };
        Err(Unsent { error, then })
    }

    fn headers(&self, sequence: u64, extent: Option<Extent>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SEQUENCE, (sequence - 1).to_string().as_str());
        headers.insert(NATS_MESSAGE_ID, self.id(sequence).as_str());
        // Where somebody else has appended as many messages as were refused, the sequence would fit again: so the
        // newest claim must be ours too. (An expected message id would say the same, but replicas that disagree with it
        // end in a stream that takes nothing any more.) Replicas refuse a second message with this condition while one
        // is under way; there bundles go without, which are nothing without the history that names them.
        if extent.is_none() || !self.is_replicated() {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, self.claimed_at.to_string().as_str());
            headers.insert(EXPECTED_SUBJECT, self.names.claims().as_str());
        }
        if let Some(extent) = extent {
            extent.put(&mut headers);
        }
        headers
    }

    /// Refuses if the newest claim is not ours.
    async fn check_owner(&self) -> Result<(), LogError> {
        match last_claim(&self.stream, &self.names).await? {
            Some((claim, _)) if claim != self.claim => Err(fenced(&claim, &self.names)),
            _ => Ok(()),
        }
    }
}

pub(super) fn fenced(by: &Claim, names: &Names) -> LogError {
    let Claim { epoch, node, url, .. } = by.clone();
    LogError::Fenced { epoch, node, url, stream: names.stream.clone() }
}

/// A segment on its way out.
struct Purge {
    stream: Stream,
    names: Names,
    blobs: BlobStore,
    segment: SegmentNo,
    extent: Extent,
    /// Everything in the segment comes before this message. A purge that is late must not reach further.
    until: u64,
}

impl Purge {
    async fn messages(&self) -> Result<(), LogError> {
        let purged = self.stream.purge().filter(self.names.payloads(self.segment)).sequence(self.until).await;
        purged.map(drop).map_err(|error| told::failed("purge a segment", &self.names.stream, error))
    }

    /// Blobs go first: the messages say which they are.
    async fn everything(&self) -> Result<(), LogError> {
        let subject = self.names.payloads(self.segment);
        let mut blobs = Vec::new();
        let last = last_message(&self.stream, &self.names, &subject).await?;
        let messages = self.extent.base..=last.map_or(0, |message| message.sequence);
        history::visit_messages(&self.stream, &self.names, &subject, messages, |sequence, bytes| {
            blobs.extend(blobs_of(bytes).map_err(|bad| told::bad(&self.names.stream, sequence, bad))?);
            Ok::<_, LogError>(())
        })
        .await?;
        let deletes: Vec<_> = blobs.iter().map(|name| self.blobs.delete(name)).collect();
        stream::iter(deletes).buffer_unordered(BLOBS_AT_ONCE).try_collect::<()>().await?;
        self.messages().await
    }
}
