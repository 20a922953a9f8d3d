//! Samples for many callers at once, on one thread that owns the model.
//!
//! A [`TinyEngine`] is a handle. What is asked through it goes to a [`desk`]; the [`thread`] behind it takes in as many
//! texts as it has places for and reads on in all of them with every step. Texts come and go between two steps, and so
//! do new weights: then a text is read again from its beginning by the new ones, and its next tokens are a segment
//! of their own. Who asks as a server does ([`WhenCut::Answer`]) is given what there is so far instead.
//!
//! The noise of a token comes from the seed of its request and the token's place in the text, from nothing else. So the
//! same request is answered with the same tokens whatever else is sampled, and an answer that was cut and asked for
//! again goes on as if it had never been.

mod api;
mod ask;
mod check;
mod desk;
mod model;
mod sampling;
mod text;
mod thread;

pub(crate) use api::chat_tokens;
pub use ask::{Alternative, Answer, Ask, AskError, Ended, Event, Flow, Sampled, WhenCut};
pub use model::Model;

use rollyard_core::tokens::Tokenizer;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::model::{Policy, Weights};
use desk::{Desk, Note};
use thread::Sampling;

#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Texts that are sampled at once.
    pub texts_max: usize,
    /// Requests that wait for a place among them. Whoever asks beyond waits to be let into the queue.
    pub waiting_max: usize,
    /// Tokens of new texts that are read in one step, so that the others do not stand still for long.
    pub prefill_tokens_max: usize,
    /// Of requests that name none; left out, they differ each time.
    pub seed: Option<u64>,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self { texts_max: 256, waiting_max: 1024, prefill_tokens_max: 8192, seed: None }
    }
}

/// What an engine is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Tokens since it began.
    pub sampled: u64,
    pub running: usize,
    pub waiting: usize,
    pub version: i32,
    pub paused: bool,
}

/// Cheap to clone. The thread ends, and is waited for, when the last clone goes.
#[derive(Clone, Debug)]
pub struct TinyEngine {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    desk: Arc<Desk>,
    tokenizer: Arc<Tokenizer>,
    facts: Facts,
    /// Seeds of requests that name none.
    seeds: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// What does not change about a model.
#[derive(Clone, Copy, Debug)]
struct Facts {
    vocabulary: usize,
    context: usize,
}

impl TinyEngine {
    /// Over the small model, whose weights can change. Fails if no thread can be started.
    pub fn start(
        weights: Arc<Weights>,
        version: i32,
        tokenizer: Arc<Tokenizer>,
        settings: EngineSettings,
    ) -> io::Result<Self> {
        Self::over(Model::Policy(Policy::new(weights)), version, tokenizer, settings)
    }

    pub fn over(
        model: Model,
        version: i32,
        tokenizer: Arc<Tokenizer>,
        settings: EngineSettings,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk::new(settings.waiting_max.max(1), version));
        let facts = Facts { vocabulary: model.decoder().vocabulary(), context: model.decoder().context() };
        let sampling = Sampling::new(model, version, Arc::clone(&desk), Arc::clone(&tokenizer), settings);
        let thread = std::thread::Builder::new().name("tiny-engine".to_owned()).spawn(|| sampling.run())?;
        let seeds = AtomicU64::new(settings.seed.unwrap_or_else(|| RandomState::new().hash_one(0)));
        Ok(Self { handle: Arc::new(Handle { desk, tokenizer, facts, seeds, thread: Some(thread) }) })
    }

    /// Samples until the answer is complete. Dropping the future gives its place to the next.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, AskError> {
        self.begin(ask, false).await?.answer().await
    }

    /// Token by token.
    pub async fn stream(&self, ask: Ask) -> Result<Flow, AskError> {
        self.begin(ask, true).await
    }

    async fn begin(&self, mut ask: Ask, streams: bool) -> Result<Flow, AskError> {
        check::check(&ask, self.handle.facts)?;
        if ask.sampling.seed.is_none() {
            // The golden ratio, as far as 64 bits go: neighbours in the count are none in what comes out.
            let seed = self.handle.seeds.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            ask.sampling.seed = Some(seed);
        }
        let events = self.handle.desk.push(ask, streams, self.handle.facts.context).await?;
        Ok(Flow::new(events, self.clone()))
    }

    /// New weights, which have this version from now on. What is under way is interrupted between two tokens.
    pub async fn update(&self, weights: Arc<Weights>, version: i32) -> Result<(), AskError> {
        self.handle.desk.tell(|done| Note::Update { weights, version, done }).await?
    }

    /// Interrupts what is under way; nothing is sampled until [`TinyEngine::go_on`].
    pub async fn hold(&self) -> Result<(), AskError> {
        self.handle.desk.tell(|done| Note::Pause { done }).await
    }

    pub async fn go_on(&self) -> Result<(), AskError> {
        self.handle.desk.tell(|done| Note::Resume { done }).await
    }

    /// Ends the requests of this name, or all of them, with what they have. Says how many there were.
    pub async fn abort(&self, rid: Option<String>) -> Result<usize, AskError> {
        self.handle.desk.tell(|done| Note::Abort { rid, done }).await
    }

    pub fn stats(&self) -> Stats {
        self.handle.desk.stats()
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.handle.tokenizer
    }

    /// Tokens of the longest text.
    pub fn context(&self) -> usize {
        self.handle.facts.context
    }

    pub fn vocabulary(&self) -> usize {
        self.handle.facts.vocabulary
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.desk.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr.
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
