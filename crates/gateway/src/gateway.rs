//! All sessions of a gateway: opened, rewarded, closed, and handed on.

use rollyard_engine::executor::Load;
use rollyard_engine::generate::SharedEngine;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::delivery::Yard;
use crate::groups::Groups;
use crate::journal::{Journal, Receipt};
use crate::live::{Called, Live};
use crate::look::{News, SessionRow};
use crate::model::Model;
use crate::refusal::{Kind, Refusal};
use crate::session::continuity::ContinuityCounts;
use crate::session::event::{Closed, Closing, Event, Opened};
use crate::session::opening::Opening;
use crate::session::prepare::turn_id;
use crate::settings::Settings;

/// Agents ask it, through [`routes`](crate::routes) or in this process.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) engine: SharedEngine,
    pub(crate) model: Model,
    pub(crate) settings: Settings,
    journal: Arc<dyn Journal>,
    pub(crate) yard: Arc<dyn Yard>,
    sessions: RwLock<HashMap<Arc<str>, Arc<Live>>>,
    pub(crate) groups: Groups,
    counts: Counts,
    started_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) opened: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// For people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct GatewayCounts {
    pub opened: u64,
    pub closed: u64,
    pub requests: u64,
    pub refused: u64,
    pub open_now: usize,
    pub boundaries: ContinuityCounts,
}

/// One record of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    session: String,
    event: Event,
}

/// What an executor is given for a new session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SessionKeys {
    pub session: String,
    /// For the agent: it can ask in this session and nothing else.
    pub api_key: String,
    /// For whoever judges: it can set rewards and close this session.
    pub reward_key: String,
    pub expires_ms: u64,
}

impl Gateway {
    pub fn new(
        engine: SharedEngine,
        model: Model,
        settings: Settings,
        journal: Arc<dyn Journal>,
        yard: Arc<dyn Yard>,
    ) -> Arc<Self> {
        let (sessions, groups, counts) = (RwLock::default(), Groups::default(), Counts::default());
        Arc::new(Self {
            engine,
            model,
            settings,
            journal,
            yard,
            sessions,
            groups,
            counts,
            started_ms: now_ms(),
        })
    }

    /// Puts back what a journal has, in its order. Says how many sessions go on. Those that were closed lately are there
    /// too: whoever ended one and did not hear the answer may say it again.
    pub fn recover(&self, records: impl IntoIterator<Item = Vec<u8>>) -> Result<usize, String> {
        for bytes in records {
            let Record { session, event } =
                rmp_serde::from_slice(&bytes).map_err(|error| format!("a record cannot be read: {error}"))?;
            let session: Arc<str> = session.into();
            if let Event::Opened(opened) = event {
                let Opened { key, reward_key, opening, round, at_ms } = *opened;
                let live = Live::new(Arc::clone(&session), (key, reward_key), opening, at_ms, round);
                self.groups.add(&live);
                self.write_sessions().insert(session, live);
                continue;
            }
            let Some(live) = self.find(&session) else {
                return Err(format!("session {session} was never opened"));
            };
            let (is_closed, is_delivered) =
                (matches!(event, Event::Closed(_)), matches!(event, Event::Delivered));
            live.inner().state.apply(event).map_err(|error| format!("session {session}: {error}"))?;
            if is_closed {
                live.over.cancel();
            }
            if is_delivered {
                self.groups.remove(&live);
            }
        }
        let sessions = self.write_sessions();
        for live in sessions.values() {
            let mut inner = live.inner();
            let turns: Vec<(u128, u32)> =
                inner.state.tree.turns().map(|(_, turn)| (turn.question, turn.id)).collect();
            let raws =
                inner.state.tree.turns().flat_map(|(_, turn)| turn.messages.iter().map(|said| said.raw));
            inner.written = raws.collect();
            for (question, id) in turns {
                inner.calls.entry(question).or_default().push(Called::recovered(id));
            }
        }
        let is_over = |live: &&Arc<Live>| live.over.is_cancelled();
        Ok(sessions.len() - sessions.values().filter(is_over).count())
    }

    /// A new session, if the pacing rule allows it.
    pub async fn open(&self, mut opening: Opening) -> Result<SessionKeys, Refusal> {
        opening.check().map_err(|wrong| Refusal::new(Kind::BadRequest, wrong))?;
        self.admit(&opening.run).await?;
        let session: Arc<str> = format!("s{}", random(10)?).into();
        if opening.instance_id.is_empty() {
            opening.instance_id = session.to_string();
        }
        let key = format!("sk-{session}-{}", random(24)?);
        let reward_key = format!("rk-{session}-{}", random(24)?);
        let at_ms = now_ms();
        let round = self.groups.round(&opening);
        let keys = (key.clone(), reward_key.clone());
        let live = Live::new(Arc::clone(&session), keys.clone(), opening.clone(), at_ms, round);
        let opened = Opened { key: keys.0, reward_key: keys.1, opening, round, at_ms };
        let expires_ms = live.expires_ms();
        self.groups.add(&live);
        self.write_sessions().insert(Arc::clone(&session), live);
        self.journal(&session, &Event::Opened(Box::new(opened)))
            .await
            .map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?;
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        Ok(SessionKeys { session: session.to_string(), api_key: key, reward_key, expires_ms })
    }

    async fn admit(&self, run: &str) -> Result<(), Refusal> {
        let load = self.yard.load(run).await?;
        let open = self.open_sessions();
        let running = open.iter().filter(|live| live.opening.run == run).count() as u64;
        if open.len() >= self.settings.sessions_max {
            return Err(no_capacity(format!(
                "{} sessions are open, and no more may be: sessions_max",
                open.len()
            )));
        }
        let Some(pace) = &self.settings.pace else { return Ok(()) };
        let load = load.unwrap_or_default();
        let load = Load { steps: load.steps, running, accepted: load.accepted };
        if pace.capacity(load) > 0 {
            return Ok(());
        }
        Err(no_capacity(format!(
            "run {run:?} has no room for another rollout now: {running} are under way, {} wait or were trained, and \
             the trainer has taken {} steps",
            load.accepted, load.steps
        )))
    }

    pub fn find(&self, session: &str) -> Option<Arc<Live>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }

    /// The session that an agent's key is for.
    pub fn by_key(&self, key: &str) -> Result<Arc<Live>, Refusal> {
        self.by(key, "sk-", |live| &live.key)
    }

    /// The session that a judge's key is for.
    pub fn by_reward_key(&self, key: &str) -> Result<Arc<Live>, Refusal> {
        if key.starts_with("sk-") {
            let message = "this key may ask, but not reward: rewards need the session's reward_key";
            return Err(Refusal::new(Kind::Forbidden, message));
        }
        self.by(key, "rk-", |live| &live.reward_key)
    }

    fn by(&self, key: &str, prefix: &str, of: fn(&Live) -> &String) -> Result<Arc<Live>, Refusal> {
        let unknown = || {
            let message = "the key is not that of a session here; open one with POST /api/sessions";
            Refusal::new(Kind::Unauthorized, message)
        };
        let rest = key.strip_prefix(prefix).ok_or_else(unknown)?;
        let (session, _) = rest.split_once('-').ok_or_else(unknown)?;
        let live = self.find(session).ok_or_else(unknown)?;
        let same = subtle::ConstantTimeEq::ct_eq(of(&live).as_bytes(), key.as_bytes());
        if same.into() { Ok(live) } else { Err(unknown()) }
    }

    pub fn rows(&self) -> Vec<SessionRow> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let mut rows: Vec<SessionRow> = sessions.values().map(|live| live.row()).collect();
        rows.sort_by(|a, b| {
            (b.facts.opened_ms, &b.facts.session).cmp(&(a.facts.opened_ms, &a.facts.session))
        });
        rows
    }

    pub fn counts(&self) -> GatewayCounts {
        GatewayCounts {
            opened: self.counts.opened.load(Ordering::Relaxed),
            closed: self.counts.closed.load(Ordering::Relaxed),
            requests: self.counts.requests.load(Ordering::Relaxed),
            refused: self.counts.refused.load(Ordering::Relaxed),
            open_now: self.open_sessions().len(),
            boundaries: self.model.continuity.counts(),
        }
    }

    pub(crate) fn started_secs(&self) -> u64 {
        self.started_ms / 1000
    }

    pub(crate) fn count_request(&self, is_refused: bool) {
        let counter = if is_refused { &self.counts.refused } else { &self.counts.requests };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Of one answer, by the name that the agent was told, or of what the session ends with. The same again is no change.
    pub async fn reward(&self, live: &Live, answer: Option<&str>, reward: f64) -> Result<(), Refusal> {
        if !reward.is_finite() {
            return Err(Refusal::field("reward", format!("reward is {reward}, but must be a finite number")));
        }
        let receipt = {
            let mut inner = live.inner();
            let turn = match answer {
                None => None,
                Some(name) => {
                    let found = turn_id(name, &live.id).and_then(|id| inner.state.tree.by_id(id));
                    Some(found.ok_or_else(|| {
                        let message =
                            format!("interaction_id is {name:?}, but the session has no such answer");
                        Refusal {
                            field: Some("interaction_id".to_owned()),
                            ..Refusal::new(Kind::NotFound, message)
                        }
                    })?)
                }
            };
            let has = match turn {
                Some(turn) => inner.state.rewards.of_turns.get(&turn).copied(),
                None => inner.state.rewards.last,
            };
            if has == Some(reward) {
                return Ok(());
            }
            if let Some(closed) = &inner.state.closed {
                return Err(over(closed));
            }
            let event = Event::Rewarded { turn, reward };
            let receipt = self.journal(&live.id, &event);
            inner.state.apply(event).map_err(|error| Refusal::new(Kind::Internal, error))?;
            receipt
        };
        receipt.await.map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?;
        if let Some(turn) = answer.and_then(|name| turn_id(name, &live.id)) {
            live.say(|| News::Rewarded { turn, reward });
        }
        live.say(|| News::Session(Box::new(live.row())));
        Ok(())
    }

    /// The agent is done. The same again is no change.
    pub async fn end(&self, live: &Live, reward: Option<f64>) -> Result<(), Refusal> {
        if let Some(reward) = reward {
            self.reward(live, None, reward).await?;
        }
        let lacks_reward = { live.inner().state.rewards.is_empty() };
        if lacks_reward && live.closed().is_none() {
            let message =
                "the session has no reward; set one first, or give it with the end: {\"reward\": …}";
            return Err(Refusal::new(Kind::Conflict, message));
        }
        self.close(live, Closing::Ended, "the agent is done").await
    }

    /// It leaves no rollout.
    pub async fn abandon(&self, live: &Live, reason: &str) -> Result<(), Refusal> {
        self.close(live, Closing::Abandoned, reason).await
    }

    pub(crate) async fn close(&self, live: &Live, how: Closing, reason: &str) -> Result<(), Refusal> {
        let receipt = {
            let mut inner = live.inner();
            match &inner.state.closed {
                Some(closed) if closed.how == how => return Ok(()),
                Some(closed) => return Err(over(closed)),
                None => {}
            }
            let event = Event::Closed(Closed { how, reason: reason.to_owned(), at_ms: now_ms() });
            let receipt = self.journal(&live.id, &event);
            inner.state.apply(event).map_err(|error| Refusal::new(Kind::Internal, error))?;
            receipt
        };
        live.over.cancel();
        receipt.await.map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?;
        self.counts.closed.fetch_add(1, Ordering::Relaxed);
        live.say(|| News::Session(Box::new(live.row())));
        Ok(())
    }

    pub(crate) fn journal(&self, session: &str, event: &Event) -> Receipt {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            session: &'a str,
            event: &'a Event,
        }
        let record =
            rmp_serde::to_vec(&Borrowed { session, event }).expect("numbers and texts can be written");
        self.journal.append(session, record)
    }

    pub(crate) fn forget(&self, live: &Live) {
        self.journal.forget(&live.id);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn open_sessions(&self) -> Vec<Arc<Live>> {
        let mut all = self.all();
        all.retain(|live| !live.over.is_cancelled());
        all
    }

    pub(crate) fn remove(&self, live: &Live) {
        self.write_sessions().remove(&live.id);
    }

    fn write_sessions(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Live>>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Its time is over, whether or not it was closed for that already.
pub(crate) fn expired(live: &Live) -> Refusal {
    Refusal::new(Kind::Forbidden, format!("the session is expired: {}", live.time_is_up()))
}

pub(crate) fn over(closed: &Closed) -> Refusal {
    let message = format!("the session is {}: {}", closed.how.name(), closed.reason);
    Refusal::new(if closed.how == Closing::Expired { Kind::Forbidden } else { Kind::Conflict }, message)
}

fn no_capacity(message: String) -> Refusal {
    Refusal { retry_after: Some(Duration::from_secs(1)), ..Refusal::new(Kind::NoCapacity, message) }
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// So many random bytes, in hexadecimal.
fn random(bytes: usize) -> Result<String, Refusal> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)
        .map_err(|error| Refusal::new(Kind::Internal, format!("no random key can be made: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
