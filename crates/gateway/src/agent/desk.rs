//! A gateway of an executor's own: agents ask it on this machine, and their sessions are taken by those who ran them.
//!
//! It listens from the first episode on, for each engine once, on a free port of the loopback address. When it is
//! closed, every agent has ended and nothing listens any more; when it is dropped, that happens by itself.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rollyard_engine::episode::EpisodeError;
use rollyard_engine::generate::{EngineError, SharedEngine};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Access;
use crate::delivery::{Delivery, RunLoad, Yard};
use crate::gateway::Gateway;
use crate::journal::Nowhere;
use crate::live::Live;
use crate::model::{Model, ModelSettings};
use crate::refusal::Refusal;
use crate::routes;
use crate::session::opening::Opening;
use crate::settings::Settings;

/// An agent that was told to end, or a connection, is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Desk {
    model: ModelSettings,
    rooms: Mutex<Vec<Room>>,
    /// Episodes under way.
    visits: TaskTracker,
    stopping: CancellationToken,
}

/// The gateway to one engine.
#[derive(Debug)]
struct Room {
    gateway: Arc<Gateway>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

/// One agent's session. Dropped before it is taken, it leaves nothing.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) gateway: Arc<Gateway>,
    pub(super) live: Arc<Live>,
    pub(super) access: Access,
    _counted: TaskTrackerToken,
}

impl Desk {
    pub fn new(model: ModelSettings) -> Arc<Self> {
        let (rooms, visits, stopping) = (Mutex::default(), TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { model, rooms, visits, stopping })
    }

    /// Where agents of this engine ask, once the first has come.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.rooms().iter().map(|room| room.address).collect()
    }

    pub(super) async fn open(&self, engine: &SharedEngine, opening: Opening) -> Result<Visit, EpisodeError> {
        let counted = self.visits.token();
        let (gateway, address) = self.room(engine)?;
        let keys = gateway.open(opening).await.map_err(refused)?;
        let gone = || EpisodeError::Workflow("the session is gone".to_owned());
        let live = gateway.find(&keys.session).ok_or_else(gone)?;
        let access = Access::new(address, keys.api_key, gateway.model.name.clone(), keys.session);
        Ok(Visit { gateway, live, access, _counted: counted })
    }

    /// The gateway to an engine, which listens from now on if it did not yet.
    fn room(&self, engine: &SharedEngine) -> Result<(Arc<Gateway>, SocketAddr), EpisodeError> {
        let mut rooms = self.rooms();
        if self.stopping.is_cancelled() {
            return Err(EpisodeError::Engine(EngineError::Closed));
        }
        if let Some(room) = rooms.iter().find(|room| Arc::ptr_eq(&room.gateway.engine, engine)) {
            return Ok((Arc::clone(&room.gateway), room.address));
        }
        if !engine.capabilities().token_ids {
            let told = "what an agent asks is recorded in tokens, but this engine only speaks text; use SGLang or vLLM";
            return Err(EpisodeError::Engine(EngineError::BadRequest(told.to_owned())));
        }
        let room = self.listen(engine)?;
        let found = (Arc::clone(&room.gateway), room.address);
        rooms.push(room);
        Ok(found)
    }

    fn listen(&self, engine: &SharedEngine) -> Result<Room, EpisodeError> {
        let model = Model::open(self.model.clone());
        let model =
            model.map_err(|error| EpisodeError::Engine(EngineError::BadRequest(error.to_string())))?;
        // How many run at once is the executor's business.
        let settings = Settings { sessions_max: usize::MAX, ..Settings::default() };
        let gateway = Gateway::new(Arc::clone(engine), model, settings, Arc::new(Nowhere), Arc::new(NoYard));
        let cannot = |error: std::io::Error| {
            EpisodeError::Workflow(format!("the gateway for agents cannot listen on 127.0.0.1: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let serving = tokio::spawn(serve(listener, Arc::clone(&gateway), self.stopping.clone()));
        Ok(Room { gateway, address, serving })
    }

    /// Completes when the desk is being closed.
    pub(super) async fn stopped(&self) {
        self.stopping.cancelled().await;
    }

    /// Ends all agents, and returns when they have ended and nothing listens any more.
    pub async fn close(&self) {
        let rooms = {
            let mut rooms = self.rooms();
            self.stopping.cancel();
            std::mem::take(&mut *rooms)
        };
        self.visits.close();
        if tokio::time::timeout(PATIENCE, self.visits.wait()).await.is_err() {
            tracing::warn!("{} agents have not ended", self.visits.len());
        }
        for mut room in rooms {
            if tokio::time::timeout(PATIENCE, &mut room.serving).await.is_err() {
                room.serving.abort();
            }
        }
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // After it was taken there is nothing left of it.
        self.gateway.give_up(&self.live, "the episode was given up");
    }
}

async fn serve(listener: tokio::net::TcpListener, gateway: Arc<Gateway>, stopping: CancellationToken) {
    use axum::serve::ListenerExt;
    // Tokens are small and each is a write of its own: waiting to fill a packet would only delay them.
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!("nodelay: {error}");
        }
    });
    let serving = axum::serve(listener, routes::agents(gateway));
    if let Err(error) = serving.with_graceful_shutdown(stopping.cancelled_owned()).await {
        tracing::error!("the gateway for agents has stopped: {error}");
    }
}

/// What agents are refused with before they have begun.
pub(super) fn refused(refusal: Refusal) -> EpisodeError {
    EpisodeError::Workflow(refusal.message)
}

/// Sessions are taken here, so nothing is ever delivered.
#[derive(Debug)]
struct NoYard;

impl Yard for NoYard {
    fn load<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<RunLoad>, Refusal>> {
        ready(Ok(None)).boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<(), String>> {
        let count = delivery.items.len();
        ready(Err(format!("{count} rollouts would be delivered, but there is no yard here"))).boxed()
    }
}
