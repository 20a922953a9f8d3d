//! What a generator's `get_group_data_meta_info` is told, and what it says.
//!
//! It wants all raw rollouts since the last read that was delivered, also those of groups that were dropped since. So
//! while a run uses it, what arrives is kept in memory, in the order of the ledger: a lease takes what there is, an
//! ack forgets it, a return puts it back. A read waits only a moment for the function; if it is late or fails, the
//! reader gets the built-in statistics, and the run a note.

use bytes::Bytes;
use rollyard_core::ids::LeaseNo;
use rollyard_core::ledger::{Event, Ledger, Uid};
use rollyard_core::pipeline::{Meta, MetaInfo};
use rollyard_core::run_config::RunConfig;
use rollyard_store::yard::{Granted, News, Yard, YardError};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Generators;

/// A read waits so long for the function, if `hook_seconds` is not shorter.
const WITHIN: Duration = Duration::from_secs(2);

/// More than this between two reads is not kept: the reader gets the built-in statistics instead.
const KEPT_BYTES_MAX: usize = 512 << 20;

/// Readers of one run that may wait at once.
const ASKS_MAX: usize = 64;

/// The runs whose reads may ask a function for their statistics.
#[derive(Debug, Default)]
pub(super) struct Metas {
    by_run: Mutex<HashMap<String, Line>>,
}

/// The way to the task that follows a run.
#[derive(Clone, Debug)]
struct Line {
    is_used: Arc<AtomicBool>,
    asks: mpsc::Sender<Ask>,
    /// Cancelled when the run is not this server's any more.
    released: CancellationToken,
}

/// A reader that wants to know what the function says of what its lease took.
#[derive(Debug)]
struct Ask {
    lease: LeaseNo,
    reply: oneshot::Sender<Result<Map<String, Value>, String>>,
}

/// The other end of a line.
pub(super) struct Asks {
    is_used: Arc<AtomicBool>,
    asks: mpsc::Receiver<Ask>,
}

impl Metas {
    /// `None` if the run has been attached before.
    pub(super) fn attach(&self, run: &str) -> Option<Asks> {
        let mut by_run = self.by_run.lock().unwrap_or_else(PoisonError::into_inner);
        if by_run.contains_key(run) {
            return None;
        }
        let (sender, asks) = mpsc::channel(ASKS_MAX);
        let is_used = Arc::new(AtomicBool::new(false));
        let line = Line { is_used: Arc::clone(&is_used), asks: sender, released: CancellationToken::new() };
        by_run.insert(run.to_owned(), line);
        Some(Asks { is_used, asks })
    }

    /// Cancelled when the run is released, or the server stops.
    pub(super) fn released(&self, run: &str, stopping: &CancellationToken) -> CancellationToken {
        let released = stopping.child_token();
        if let Some(line) = self.by_run.lock().unwrap_or_else(PoisonError::into_inner).get_mut(run) {
            line.released = released.clone();
        }
        released
    }

    /// Nobody follows the run any more.
    pub(super) fn release(&self, run: &str) {
        let line = self.by_run.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        if let Some(line) = line {
            line.released.cancel();
        }
    }

    fn line(&self, run: &str) -> Option<Line> {
        let by_run = self.by_run.lock().unwrap_or_else(PoisonError::into_inner);
        by_run.get(run).filter(|line| line.is_used.load(Ordering::Relaxed)).cloned()
    }
}

impl Generators {
    /// The `meta_info` of a read: what the run's generator makes of it, or else the built-in one, null if there is
    /// none.
    pub(crate) async fn meta_info(self: &Arc<Self>, yard: &Yard, granted: &Granted) -> Value {
        let built_in = || json!(granted.meta);
        let Some(line) = self.metas.line(yard.run_name().as_str()) else { return built_in() };
        // Nobody else knows of the lease yet: if the reader goes away while it waits here, it goes back.
        let mut held = Held { yard, lease: Some(granted.lease) };
        let (reply, answer) = oneshot::channel();
        let asked = async {
            line.asks
                .send(Ask { lease: granted.lease, reply })
                .await
                .map_err(|_| "the run is closing".to_owned())?;
            answer.await.map_err(|_| "the run is closing".to_owned())?
        };
        let late = |_| format!("get_group_data_meta_info did not answer within {} s", WITHIN.as_secs_f64());
        let outcome = tokio::time::timeout(WITHIN, asked).await.map_err(late).and_then(|outcome| outcome);
        held.lease = None;
        match outcome {
            Ok(said) => Value::Object(with_finished(said, granted.meta.as_ref())),
            Err(why) => {
                self.tell(yard, &format!("a read got the built-in statistics: {why}")).await;
                built_in()
            }
        }
    }
}

/// The function need not know which groups are finished; the trainer wants to.
fn with_finished(mut said: Map<String, Value>, meta: Option<&MetaInfo>) -> Map<String, Value> {
    if let Some(meta) = meta {
        said.entry("finished_groups").or_insert_with(|| json!(meta.finished_groups));
    }
    said
}

struct Held<'a> {
    yard: &'a Yard,
    lease: Option<LeaseNo>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.yard.return_later(lease);
        }
    }
}

/// Follows what arrives in a run, as long as its knob `meta` says so.
pub(super) async fn follow(generators: Arc<Generators>, yard: Yard, mut asks: Asks) {
    let mut turned = yard.posed();
    loop {
        turned.mark_unchanged();
        match yard.ask(|ledger| ledger.config().meta).await {
            Ok(Meta::Hook) => {
                asks.is_used.store(true, Ordering::Relaxed);
                let ended = follow_arrivals(&generators, &yard, &mut asks.asks).await;
                asks.is_used.store(false, Ordering::Relaxed);
                if ended.is_err() {
                    return;
                }
            }
            Ok(Meta::Rewards | Meta::None) => {
                if turned.changed().await.is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Returns when the function is no longer asked; an error is the end of the run.
async fn follow_arrivals(
    generators: &Arc<Generators>,
    yard: &Yard,
    asks: &mut mpsc::Receiver<Ask>,
) -> Result<(), YardError> {
    let mut news = yard.news();
    let mut arrivals = Arrivals::held_by(yard).await?;
    let mut waiting: Vec<Ask> = Vec::new();
    loop {
        tokio::select! {
            heard = news.recv() => match heard {
                Ok(heard) => {
                    if arrivals.hear(&with_payload(yard, heard).await) == Heard::TurnedOff {
                        return Ok(());
                    }
                }
                // What was missed is still on the ledger, as far as it is held.
                Err(RecvError::Lagged(_)) => arrivals = catch_up(yard, &mut news).await?,
                Err(RecvError::Closed) => return Err(YardError::Closed),
            },
            Some(ask) = asks.recv() => waiting.push(ask),
        }
        waiting.retain(|ask| !ask.reply.is_closed());
        let known = waiting.extract_if(.., |ask| arrivals.taken.contains_key(&ask.lease));
        for Ask { lease, reply } in known.collect::<Vec<_>>() {
            let taken = arrivals.told(lease);
            let (generators, yard) = (Arc::clone(generators), yard.clone());
            generators.clone().tasks.spawn(async move {
                // A reader that no longer waits needs no answer.
                let _gone = reply.send(ask_function(&generators, &yard, taken).await);
            });
        }
    }
}

/// News of a rollout with its bytes, even if those did not come through here.
async fn with_payload(yard: &Yard, mut news: News) -> News {
    let is_stored = news.payload.is_empty() && matches!(news.events.first(), Some(Event::Admitted(_)));
    if is_stored {
        let (yard, place) = (yard.clone(), news.place);
        let read = tokio::task::spawn_blocking(move || yard.payload(place)).await;
        // One that is gone meanwhile is missing in a statistic, and nowhere else.
        news.payload = read.ok().and_then(Result::ok).unwrap_or_default();
    }
    news
}

async fn catch_up(yard: &Yard, news: &mut broadcast::Receiver<News>) -> Result<Arrivals, YardError> {
    *news = yard.news();
    Arrivals::held_by(yard).await
}

async fn ask_function(
    generators: &Generators,
    yard: &Yard,
    taken: Result<String, String>,
) -> Result<Map<String, Value>, String> {
    let RunConfig { task_type, hook_seconds, .. } =
        yard.ask(|ledger| ledger.config().clone()).await.map_err(|error| error.to_string())?;
    let generator = generators.find(&task_type);
    let generator = generator.ok_or_else(|| format!("no generator file for task {task_type:?} is loaded"))?;
    let within = WITHIN.min(Duration::from_secs_f64(hook_seconds));
    generator.meta(taken?, within).await.map_err(|error| error.to_string())
}

#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Noted,
    TurnedOff,
}

/// Raw rollouts by instance, since the last read and in the leases that are out.
#[derive(Debug, Default)]
struct Arrivals {
    /// Those that were there at the beginning: news of them may still be on its way.
    known: HashSet<Uid>,
    since: Arrived,
    taken: HashMap<LeaseNo, Arrived>,
}

#[derive(Clone, Debug, Default)]
struct Arrived {
    by_instance: BTreeMap<Box<str>, Vec<Bytes>>,
    bytes: usize,
    /// There was more than is kept.
    overflows: bool,
}

impl Arrivals {
    /// What a run holds that nobody has read: where to begin after a restart.
    async fn held_by(yard: &Yard) -> Result<Self, YardError> {
        let held = yard
            .ask(|ledger: &Ledger| {
                let unread = ledger.groups().filter(|(_, group)| group.is_held());
                let rollouts = unread.flat_map(|(_, group)| {
                    group.rollouts.iter().map(|rollout| (group.instance.clone(), rollout.place, rollout.uid))
                });
                rollouts.collect::<Vec<_>>()
            })
            .await?;
        let known = held.iter().map(|(_, _, uid)| *uid).collect();
        let yard = yard.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut since = Arrived::default();
            for (instance, place, _) in held {
                // One that is gone meanwhile is missing in a statistic, and nowhere else.
                if let Ok(payload) = yard.payload(place) {
                    since.add(&instance, payload);
                }
            }
            since
        });
        Ok(Self { known, since: read.await.unwrap_or_default(), taken: HashMap::new() })
    }

    fn hear(&mut self, news: &News) -> Heard {
        for event in news.events.iter() {
            match event {
                Event::Admitted(new) if self.known.remove(&Uid::of(&new.uid)) => {}
                Event::Admitted(new) => self.since.add(&new.instance, news.payload.clone()),
                Event::Leased { lease, .. } => {
                    self.taken.insert(*lease, std::mem::take(&mut self.since));
                }
                Event::Acked { lease, .. } => drop(self.taken.remove(lease)),
                Event::Returned { lease, .. } => {
                    if let Some(back) = self.taken.remove(lease) {
                        self.since.merge(back);
                    }
                }
                Event::Configured { config, .. } if config.meta != Meta::Hook => return Heard::TurnedOff,
                _ => {}
            }
        }
        Heard::Noted
    }

    /// What the function is told of a lease, in JSON.
    fn told(&self, lease: LeaseNo) -> Result<String, String> {
        let taken = self.taken.get(&lease).ok_or("the lease is over")?;
        if taken.overflows {
            return Err(format!("more than {KEPT_BYTES_MAX} bytes arrived since the read before it"));
        }
        Ok(taken.json())
    }
}

impl Arrived {
    fn add(&mut self, instance: &str, payload: Bytes) {
        self.bytes += payload.len();
        if self.overflows || self.bytes > KEPT_BYTES_MAX {
            self.overflows = true;
            self.by_instance.clear();
            return;
        }
        match self.by_instance.get_mut(instance) {
            Some(known) => known.push(payload),
            None => drop(self.by_instance.insert(instance.into(), vec![payload])),
        }
    }

    fn merge(&mut self, earlier: Self) {
        self.overflows |= earlier.overflows;
        for (instance, payloads) in earlier.by_instance {
            for payload in payloads {
                self.add(&instance, payload);
            }
        }
    }

    fn json(&self) -> String {
        let mut json = String::with_capacity(self.bytes + 64);
        json.push('{');
        for (instance, payloads) in &self.by_instance {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&Value::from(&**instance).to_string());
            json.push_str(":[");
            for (nth, payload) in payloads.iter().enumerate() {
                if nth > 0 {
                    json.push(',');
                }
                // It was JSON, and so text, when it was admitted.
                json.push_str(std::str::from_utf8(payload).unwrap_or("null"));
            }
            json.push(']');
        }
        json.push('}');
        json
    }
}
