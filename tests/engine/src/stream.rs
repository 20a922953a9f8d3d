//! One generation that is told while it comes about: events in time, and what breaks into them.

use bytes::Bytes;
use futures_util::stream::{StreamExt, unfold};
use hyper::body::Frame;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use crate::engine::{Engine, UnderWay};
use crate::generate::{End, Generation, Question, aborted, ended, keep_script, sample};
use crate::http::{self, Answer};
use crate::model::logprob;
use crate::settings::Settings;

/// What a generation holds until its end.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) under_way: UnderWay,
    pub(crate) place: OwnedSemaphorePermit,
}

impl Held {
    pub(crate) fn answered(self) {
        drop(self.place);
        self.under_way.answered();
    }
}

/// What was sampled so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoFar<'a> {
    pub(crate) tokens: &'a [i32],
    pub(crate) logprobs: &'a [f32],
    /// So many were told before.
    pub(crate) told: usize,
    pub(crate) version: i32,
    pub(crate) end: Option<End>,
}

/// Writes an event's data in the words of a dialect.
pub(crate) type Tell = Box<dyn FnMut(&Settings, SoFar<'_>) -> Vec<u8> + Send>;

struct Telling {
    engine: Arc<Engine>,
    settings: Settings,
    held: Option<Held>,
    tell: Tell,
    rid: String,
    /// All that is to come.
    tokens: Vec<i32>,
    end: End,
    /// Of those that were told.
    logprobs: Vec<f32>,
    break_after: Option<usize>,
    began: Instant,
    aborts: watch::Receiver<u64>,
    since: u64,
}

pub(crate) fn answer(
    engine: &Arc<Engine>,
    settings: Settings,
    held: Option<Held>,
    question: Question<'_>,
    tell: Tell,
) -> Answer {
    let Generation { tokens, end, .. } = sample(&settings, question);
    let mut aborts = engine.watch_aborts();
    let since = *aborts.borrow_and_update();
    let breaks = &mut engine.settings().break_next;
    let break_after = (!breaks.is_empty()).then(|| breaks.remove(0) as usize);
    let telling = Telling {
        engine: Arc::clone(engine),
        began: Instant::now() + Duration::from_millis(settings.latency_ms),
        settings,
        held,
        tell,
        rid: question.rid.to_owned(),
        logprobs: Vec::with_capacity(tokens.len()),
        tokens,
        end,
        break_after,
        aborts,
        since,
    };
    http::events(unfold(telling, step).boxed())
}

async fn step(mut telling: Telling) -> Option<(io::Result<Frame<Bytes>>, Telling)> {
    let frame = telling.next().await?;
    Some((frame, telling))
}

impl Telling {
    /// `None` behind the end.
    async fn next(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        self.held.as_ref()?;
        let told = self.logprobs.len();
        if self.break_after == Some(told) {
            keep_script(&self.engine, &self.settings, told);
            self.finish();
            // Bytes are only sure to be on their way when there was nothing more to send for a moment.
            tokio::task::yield_now().await;
            return Some(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let to = self.next_stop(told);
        if self.is_aborted_before(to).await {
            self.tokens.truncate(told);
            self.end = End::Abort;
        }
        let to = to.min(self.tokens.len());
        let version = self.version_at(told);
        let new = self.tokens.get(told..to).unwrap_or_default();
        self.logprobs.extend(new.iter().map(|token| logprob(*token, version)));
        // An abort has an event of its own: nobody knew of it when the last token was sampled. A stop comes with its
        // token, so that no break fits in between.
        let is_all = to == self.tokens.len();
        let is_last = match self.end {
            End::Stop => is_all,
            End::Length => is_all && self.break_after != Some(to),
            End::Abort => is_all && to == told,
        };
        let end = is_last.then_some(self.end);
        let tokens = self.tokens.get(..to).unwrap_or_default();
        let so_far = SoFar { tokens, logprobs: &self.logprobs, told, version, end };
        let mut frame = b"data: ".to_vec();
        frame.append(&mut (self.tell)(&self.settings, so_far));
        frame.extend_from_slice(b"\n\n");
        if is_last {
            frame.extend_from_slice(b"data: [DONE]\n\n");
            ended(&self.engine, &self.settings, self.end, to);
            self.finish();
        }
        Some(Ok(Frame::data(frame.into())))
    }

    /// How many tokens are told with the next event.
    fn next_stop(&self, told: usize) -> usize {
        let mut to = told + self.settings.stream_interval.max(1);
        let grows_after = self.settings.version_grows_after.map(|after| after as usize);
        for stop in [grows_after, self.break_after].into_iter().flatten() {
            if stop > told {
                to = to.min(stop);
            }
        }
        to.min(self.tokens.len())
    }

    /// Of the weights that sample the next token.
    fn version_at(&self, told: usize) -> i32 {
        let mut settings = self.engine.settings();
        let grows = self.settings.version_grows_after == u32::try_from(told).ok();
        settings.version += i32::from(grows && told < self.tokens.len());
        settings.version
    }

    /// Lets the time pass that so many tokens take.
    async fn is_aborted_before(&mut self, tokens: usize) -> bool {
        let Self { engine, settings, rid, began, aborts, since, .. } = self;
        let hangs = engine.settings().hang;
        let due = *began + Duration::from_secs_f64(settings.latency_ms_per_token * tokens as f64 / 1000.0);
        if !hangs && due <= Instant::now() {
            return aborts.has_changed().unwrap_or(false) && engine.is_aborted(rid, *since);
        }
        let passes = async {
            if hangs {
                pending::<()>().await;
            }
            sleep_until(due).await;
        };
        tokio::select! {
            () = passes => false,
            () = aborted(engine, rid, *since, aborts) => true,
        }
    }

    fn finish(&mut self) {
        if let Some(held) = self.held.take() {
            held.answered();
        }
    }
}
