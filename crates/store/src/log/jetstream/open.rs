//! Claims a run and opens its log.

use async_nats::header::{NATS_EXPECTED_LAST_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::Stream;
use async_nats::{Client, HeaderMap, Request};
use rollyard_core::run_config::Durability;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::super::contract::{Entry, Log, Parts, SegmentNo, Snapshot};
use super::super::error::{Failure, LogError, ReplayError};
use super::super::live::Liveness;
use super::blobs::BlobStore;
use super::claim::Claim;
use super::connection::{Connection, again, last_claim};
use super::history;
use super::names::Names;
use super::reader::Reader;
use super::segments::Segments;
use super::snapshots::{self, Marks, Snapshots};
use super::stager::{Batch, Limits, Stager};
use super::told;
use super::writer::{Writer, fenced};

/// An owner that has appended between every two tries is alive, and keeps its run.
const CLAIM_TRIES: usize = 5;

/// Claims a run for a node, and opens its log: the first time whoever owned it, later only if nobody else has
/// claimed it since.
#[derive(Debug)]
pub struct Opener {
    connection: Connection,
    names: Names,
    node: String,
    url: String,
    /// Opens a stream that is not whole yet, and makes none.
    for_copy: bool,
    claimed: Mutex<Option<Claim>>,
    /// Who had the run before the first claim.
    before: OnceLock<Option<Claim>>,
}

impl Opener {
    pub(super) fn new(connection: Connection, names: Names, node: String, url: String) -> Self {
        Self {
            connection,
            names,
            node,
            url,
            for_copy: false,
            claimed: Mutex::default(),
            before: OnceLock::new(),
        }
    }

    /// For whoever fills a stream with a copy.
    pub(super) fn for_copy(connection: Connection, names: Names, node: String) -> Self {
        Self {
            connection,
            names,
            node,
            url: String::new(),
            for_copy: true,
            claimed: Mutex::default(),
            before: OnceLock::new(),
        }
    }

    pub fn open(&self) -> Result<JetStreamLog, LogError> {
        let opened = self.try_open();
        if let Err(LogError::Stream { .. }) = &opened {
            self.connection.run(self.connection.turn_away());
        }
        opened
    }

    fn try_open(&self) -> Result<JetStreamLog, LogError> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, claim, sequence) = self.connection.run(async {
            let stream = match self.for_copy {
                true => self.connection.find_any(&self.names).await?,
                false => Some(self.connection.find_or_make(&self.names).await?),
            };
            let stream = stream.ok_or_else(|| told::gone(&self.names))?;
            let (claim, sequence) = self.claim(&stream, claimed.as_ref()).await?;
            Ok::<_, LogError>((stream, claim, sequence))
        })?;
        *claimed = Some(claim.clone());
        tracing::debug!(run = %self.names.run, epoch = claim.epoch, "claimed");
        let patience = self.connection.settings().patience;
        self.connection.run(again(patience, async || self.read(&stream, &claim, sequence).await))
    }

    /// The epoch of the last claim that this made.
    pub fn epoch(&self) -> Option<u64> {
        self.claimed().map(|claim| claim.epoch)
    }

    /// Who had claimed the run before this did, if anybody had.
    pub fn before(&self) -> Option<Claim> {
        self.before.get().cloned().flatten()
    }

    pub(super) fn claimed(&self) -> Option<Claim> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends a claim right after what is there; gives it, and its sequence.
    async fn claim(&self, stream: &Stream, mine: Option<&Claim>) -> Result<(Claim, u64), LogError> {
        let doing = "claim the run";
        let until = Instant::now() + self.connection.settings().patience;
        let nonce = RandomState::new().hash_one(Instant::now());
        let mut tries = 0;
        let mut known: Option<Option<Claim>> = None;
        loop {
            // Before the claims are read: whoever claims after this is noticed by the server.
            let info = stream.get_info().await;
            let info = info.map_err(|error| told::failed(doing, &self.names.stream, error))?;
            let last = last_claim(stream, &self.names).await?;
            let last_claim = last.as_ref().map(|(claim, _)| claim.clone());
            if let Some((claim, sequence)) = last
                && claim.nonce == nonce
                && claim.node == self.node
            {
                // It was stored, and the answer was lost.
                return Ok((claim, sequence));
            }
            let owner_before =
                known.get_or_insert_with(|| mine.map_or(last_claim.clone(), |mine| Some(mine.clone())));
            if *owner_before != last_claim {
                return Err(last_claim.map_or_else(
                    || told::failed(doing, &self.names.stream, "the claims in it are gone"),
                    |claim| fenced(&claim, &self.names),
                ));
            }
            let epoch = last_claim.as_ref().map_or(1, |claim| claim.epoch + 1);
            let _kept_from_the_first = self.before.set(last_claim);
            let claim = Claim { epoch, node: self.node.clone(), url: self.url.clone(), nonce };
            match self.try_claim(&claim, info.state.last_sequence).await {
                Ok(sequence) => return Ok((claim, sequence)),
                Err((error, conflict)) => {
                    tries += usize::from(conflict);
                    if tries >= CLAIM_TRIES || Instant::now() >= until {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// On failure says whether somebody else was faster.
    async fn try_claim(&self, claim: &Claim, after: u64) -> Result<u64, (LogError, bool)> {
        let failed =
            |error: &dyn std::fmt::Display| (told::failed("claim the run", &self.names.stream, error), false);
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SEQUENCE, after.to_string().as_str());
        headers.insert(NATS_MESSAGE_ID, claim.id().as_str());
        let bytes = serde_json::to_vec(claim).map_err(|error| failed(&error))?;
        let request = Request::new().headers(headers).payload(bytes.into());
        let answer = self.connection.client().send_request(self.names.claims(), request).await;
        let answer = answer.map_err(|error| failed(&error))?;
        match serde_json::from_slice(&answer.payload).map_err(|error| failed(&error))? {
            Response::<PublishAck>::Ok(ack) => Ok(ack.sequence),
            Response::Err { error } => {
                let conflict = error.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE;
                Err((told::refused("claim the run", &self.names.stream, &error), conflict))
            }
        }
    }

    /// Finds out what is in the log that ends with the claim.
    async fn read(&self, stream: &Stream, claim: &Claim, sequence: u64) -> Result<JetStreamLog, LogError> {
        let (connection, names) = (&self.connection, &self.names);
        let newest = history::newest(stream, names).await?;
        let history_end = newest.as_ref().map_or(0, |(_, sequence)| *sequence);
        let (committed_seq, last_segment) =
            newest.map_or((0, SegmentNo(0)), |(piece, _)| (piece.committed_seq(), piece.segment));
        let segments = Segments::find(stream, names).await?;
        let bucket = connection.bucket(names).await?;
        let (snapshot, next) =
            snapshots::newest(&bucket, names, &history::born(stream), committed_seq).await?;
        let replay_from = snapshot.as_ref().map_or((0, 0), |found| (found.snapshot.seq, found.sequence));
        Ok(JetStreamLog {
            connection: connection.clone(),
            names: names.clone(),
            stream: stream.clone(),
            client: connection.client_near(stream).await,
            blobs: connection.blobs(names, stream, bucket.clone())?,
            bucket,
            claim: claim.clone(),
            committed_seq,
            claimed_at: sequence,
            history_end,
            // Those that are there may be of a batch that was not finished.
            last_segment: segments.all().last().map_or(last_segment, |(found, _)| last_segment.max(*found)),
            segments,
            snapshot: snapshot.map(|found| found.snapshot),
            replay_from,
            next_slot: next,
        })
    }
}

/// A log on JetStream right after opening: replay it, tell the stager what is live, then use its parts.
#[derive(Debug)]
pub struct JetStreamLog {
    connection: Connection,
    names: Names,
    stream: Stream,
    client: Client,
    blobs: BlobStore,
    bucket: BlobStore,
    claim: Claim,
    committed_seq: u64,
    /// The sequence of the claim, and so of the last message.
    claimed_at: u64,
    /// The sequence of the last message of its history.
    history_end: u64,
    last_segment: SegmentNo,
    segments: Segments,
    snapshot: Option<Snapshot>,
    /// Up to this record the snapshot knows everything, and this message comes before what it does not.
    replay_from: (u64, u64),
    next_slot: usize,
}

impl JetStreamLog {
    pub fn claim(&self) -> &Claim {
        &self.claim
    }
}

impl Log for JetStreamLog {
    type Batch = Batch;
    type Stager = Stager;
    type Writer = Writer;
    type Reader = Reader;
    type Snapshots = Snapshots;

    fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    fn replay<E>(
        &self,
        from_seq: u64,
        progress: impl FnMut(u64, u64),
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), ReplayError<E>> {
        let (known_seq, sequence) = self.replay_from;
        let from = if from_seq > known_seq { sequence + 1 } else { 1 };
        let messages = from..=self.history_end;
        let replayed = history::replay(&self.stream, &self.names, messages, from_seq, progress, visit);
        self.connection.run(replayed).map(drop)
    }

    /// The servers decide when they sync.
    fn set_durability(&mut self, _durability: Durability) {}

    fn into_parts(self) -> Parts<Self> {
        let Self { connection, names, stream, blobs, bucket, claim, committed_seq, segments, .. } = self;
        let message_max = connection.message_max();
        let settings = connection.settings();
        let limits = Limits {
            message_max,
            inline_max: connection.inline_max(),
            segment_bytes: settings.segment_bytes,
        };
        let found = segments.all();
        let live = Liveness::of_found(found.into_iter().map(|(segment, extent)| (segment, extent.bytes)));
        let segment = self.last_segment.next();
        let stager = Stager::new(limits, claim.epoch, segment, committed_seq + 1, self.claimed_at + 1, live);
        let reader = Reader::new(
            connection.clone(),
            names.clone(),
            stream.clone(),
            blobs.clone(),
            segments.clone(),
            Some(claim.epoch),
        );
        let marks = Marks::new(committed_seq, self.claimed_at);
        let next = Arc::new(Mutex::new(self.next_slot));
        let born = history::born(&stream);
        let snapshots =
            Snapshots { connection: connection.clone(), bucket, born, marks: marks.clone(), next };
        let writer = Writer {
            connection,
            names,
            stream,
            client: self.client,
            blobs,
            claim,
            claimed_at: self.claimed_at,
            segments,
            reader: reader.clone(),
            marks,
            committed_seq,
            failed: Failure::default(),
            sure: Instant::now(),
            sent_again: 0,
            deleting: Vec::new(),
        };
        Parts { stager, writer, reader, snapshots }
    }
}
