//! Many servers, one yard: every run has one owner, any node takes any request.
//!
//! Who owns a run is decided in the run's own log: a claim is an append that only one can make, and whoever owned it
//! before can append nothing more. Everything here is about asking the right node and claiming at the right moment;
//! where it is wrong, a request waits or is asked again, and no rollout is lost or read twice.
//!
//! [`placement`] says who should own what, [`nodes`] who is alive, [`register`] puts both together; all three are told
//! what time it is. [`voice`] says and hears heartbeats, [`keeper`] claims, opens and hands over. [`route`] finds the run
//! that a request is about, [`forward`] brings it to its owner with the [`body`] kept for a second try, [`direct`] sees
//! to it that large rollouts need not go that way, [`settle`] acks what was read through another node, and [`gather`]
//! puts together what all nodes say. [`ground`] is what they share: [`jetstream`], or memory in tests.

mod body;
mod direct;
mod forward;
mod gather;
mod ground;
mod jetstream;
mod keeper;
mod nodes;
mod placement;
mod register;
mod route;
mod settle;
mod voice;

pub use ground::{Claimant, Ground, Opened};
pub use jetstream::JetStream;
pub use nodes::{BadNodeName, NodeName};
pub use placement::Timing;

pub(crate) use forward::FORWARDED;
pub(crate) use register::Owner;
pub(crate) use settle::{Settler, Verdict};

use rollyard_core::ids::RunName;
use rollyard_engine::http::{self, HttpError};
use rollyard_store::log::{BlobPlace, LogError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::runs::DEFAULT_RUN;
use forward::Forwards;
use register::{Me, Register};

/// Runs that a node opens at once: each may read a long log.
const OPENED_AT_ONCE: usize = 16;

/// An owner that does not answer a connection by then is as good as none.
const CONNECTED_WITHIN: Duration = Duration::from_secs(2);

/// Who a node of a cluster is.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    pub node: NodeName,
    /// Where the other nodes reach this one, like `http://10.0.0.7:8889`.
    pub url: String,
    /// The token of all nodes.
    pub token: Option<String>,
    pub timing: Timing,
}

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("a node called {node:?} is running already: {url}")]
    NameTaken { node: String, url: String },
    #[error("the other nodes cannot be heard: {0}")]
    Deaf(String),
    #[error("no client for the other nodes: {0}")]
    Http(#[from] HttpError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// This node among the others.
#[derive(Debug)]
pub struct Cluster {
    ground: Arc<dyn Ground>,
    register: Mutex<Register>,
    timing: Timing,
    /// Changes whenever a run may have got or lost its owner.
    changed: watch::Sender<()>,
    /// A heartbeat is due at once.
    urgent: Notify,
    opening: Semaphore,
    http: reqwest::Client,
    /// By run.
    blob_places: Mutex<HashMap<String, Arc<dyn BlobPlace>>>,
    direct_bytes: Arc<AtomicU64>,
    forwards: Forwards,
    takeovers: AtomicU64,
    /// When the list of runs was last asked for.
    discovered: tokio::sync::Mutex<Option<Instant>>,
    /// Ends the heartbeats.
    silent: CancellationToken,
    tasks: TaskTracker,
}

impl Cluster {
    /// Joins the nodes on `ground`: listens for long enough to know who is there, and refuses if somebody has the name.
    pub async fn join(ground: Arc<dyn Ground>, settings: ClusterSettings) -> Result<Arc<Self>, JoinError> {
        let ClusterSettings { node, url, token, timing } = settings;
        let mut incarnation = [0; 8];
        getrandom::fill(&mut incarnation).map_err(|error| JoinError::Deaf(error.to_string()))?;
        let me = Me {
            node: node.to_string(),
            url: url.trim_end_matches('/').to_owned(),
            incarnation: u64::from_le_bytes(incarnation),
            started_ms: now_ms(),
        };
        let http = http::client(token.as_deref(), |builder| {
            builder.connect_timeout(CONNECTED_WITHIN).redirect(reqwest::redirect::Policy::none())
        })?;
        let cluster = Arc::new(Self {
            ground,
            register: Mutex::new(Register::new(me, timing)),
            timing,
            changed: watch::Sender::default(),
            urgent: Notify::new(),
            opening: Semaphore::new(OPENED_AT_ONCE),
            http,
            blob_places: Mutex::default(),
            direct_bytes: Arc::default(),
            forwards: Forwards::default(),
            takeovers: AtomicU64::new(0),
            discovered: tokio::sync::Mutex::default(),
            silent: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        cluster.clone().begin_to_speak().await?;
        Ok(cluster)
    }

    /// This node's name.
    pub fn node(&self) -> String {
        self.register().me.node.clone()
    }

    /// Whom to ask about a run; `None` if there is no such run, as far as is known.
    pub(crate) fn owner(&self, run: &str) -> Option<Owner> {
        self.register().owner(run, Instant::now())
    }

    pub(crate) fn known(&self) -> Vec<String> {
        self.register().placed(Instant::now()).into_iter().map(|(run, ..)| run).collect()
    }

    pub(crate) fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.timing
    }

    pub(crate) fn takeovers(&self) -> u64 {
        self.takeovers.load(Ordering::Relaxed)
    }

    pub(crate) fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Asks which runs there are, unless that was done a moment ago.
    pub(crate) async fn discover(&self, unless_within: Duration) {
        let mut discovered = self.discovered.lock().await;
        if discovered.is_some_and(|at| at.elapsed() < unless_within) {
            return;
        }
        let ground = Arc::clone(&self.ground);
        match tokio::task::spawn_blocking(move || ground.runs()).await {
            Ok(Ok(runs)) => self.register().listed(&runs, Instant::now()),
            Ok(Err(error)) => tracing::warn!("the runs cannot be listed: {error}"),
            Err(error) => tracing::error!("the runs cannot be listed: {error}"),
        }
        *discovered = Some(Instant::now());
    }

    /// Sees to it that the default run is there, whoever is to own it.
    async fn make_default(&self) -> Result<(), JoinError> {
        let ground = Arc::clone(&self.ground);
        let made = tokio::task::spawn_blocking(move || match RunName::try_from(DEFAULT_RUN) {
            Ok(run) => ground.create(&run),
            Err(_) => Ok(false),
        });
        made.await.map_err(|error| JoinError::Deaf(error.to_string()))??;
        self.register().know(DEFAULT_RUN);
        Ok(())
    }

    /// Something about who has which run is new: for whoever waits here, and for the other nodes.
    fn tell(&self) {
        self.changed.send_replace(());
        self.urgent.notify_one();
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
