//! Claims the runs that this node should have, and gives up those that others should.

use rollyard_core::ids::RunName;
use rollyard_core::run_config::RunConfig;
use rollyard_store::yard::{Yard, YardError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

use super::placement::Duty;
use super::{Claimant, Cluster, Opened, Owner};
use crate::App;
use crate::runs::RunError;

/// How often there may be something to do, besides when something is heard.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often it is said that another node has this one's name.
const NAMESAKE_SAID_EVERY: Duration = Duration::from_secs(10);

impl Cluster {
    /// Looks after the runs until the server is told to stop.
    pub(crate) async fn keep(self: Arc<Self>, app: App) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed = self.changed.subscribe();
        let mut namesake_said: Option<Instant> = None;
        let listing = self.tasks.spawn(Arc::clone(&self).list_runs(app.stopping.clone()));
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = changed.changed() => {}
                () = app.stopping.cancelled() => break,
            }
            for yard in app.runs.all() {
                if let Some((_, claim)) = yard.blobs() {
                    self.register().reclaimed(yard.run_name().as_str(), claim);
                }
            }
            for yard in self.lost(&app) {
                self.tasks.spawn(Arc::clone(&self).lose(app.clone(), yard));
            }
            let (duties, namesake) = {
                let mut register = self.register();
                (register.duties(Instant::now()), register.nodes.take_namesake())
            };
            for (run, duty) in duties {
                let Ok(run) = RunName::try_from(run.as_str()) else { continue };
                let (cluster, app) = (Arc::clone(&self), app.clone());
                match duty {
                    Duty::Claim => drop(self.tasks.spawn(async move {
                        let config = app.runs.defaults().clone();
                        // Why it could not be opened was said where it was found out.
                        let _said = cluster.open(&app, run, config).await;
                    })),
                    Duty::HandOver => drop(self.tasks.spawn(async move { cluster.give(&app, &run).await })),
                    Duty::Nothing => {}
                }
                self.urgent.notify_one();
            }
            if let Some(namesake) = namesake
                && namesake_said.is_none_or(|at| at.elapsed() > NAMESAKE_SAID_EVERY)
            {
                tracing::error!("another node has the same name, stop one of them: {}", namesake.url);
                namesake_said = Some(Instant::now());
            }
        }
        listing.abort();
        self.register().retiring = true;
        self.tell();
    }

    async fn list_runs(self: Arc<Self>, stopping: tokio_util::sync::CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.timing.discover_every) => {}
                () = stopping.cancelled() => return,
            }
            self.discover(self.timing.discover_every / 2).await;
        }
    }

    /// Takes those that belong to somebody else by now out of the open runs.
    fn lost(&self, app: &App) -> Vec<Yard> {
        let mut lost = self.register().outdated(Instant::now());
        let is_over = |yard: &&Yard| yard.is_over();
        lost.extend(app.runs.all().iter().filter(is_over).map(|yard| yard.run_name().to_string()));
        lost.iter().filter_map(|run| app.runs.take(run)).collect()
    }

    async fn lose(self: Arc<Self>, app: App, yard: Yard) {
        let run = yard.run_name().clone();
        tracing::warn!(%run, "the run is not this node's any more");
        self.register().set_busy(run.as_str());
        app.generators.release(run.as_str()).await;
        // There is nothing that it could still write, and nobody waits for it.
        self.tasks.spawn_blocking(move || yard.close());
        self.register().lost(run.as_str(), Instant::now());
        self.tell();
    }

    /// Claims a run that is marked as busy, and opens it.
    async fn open(&self, app: &App, run: RunName, config: RunConfig) -> Result<Yard, RunError> {
        let Ok(_permit) = self.opening.acquire().await else {
            return Err(RunError::NoOwner { run: run.to_string() });
        };
        let since = Instant::now();
        let claimant = {
            let register = self.register();
            Claimant { node: register.me.node.clone(), url: register.me.url.clone() }
        };
        let me = claimant.node.clone();
        let (ground, name) = (Arc::clone(&self.ground), run.clone());
        let opened = tokio::task::spawn_blocking(move || ground.open(&name, &config, &claimant)).await;
        let opened =
            opened.unwrap_or_else(|error| Err(YardError::State(format!("opening it went wrong: {error}"))));
        match opened {
            Ok(Opened { yard, epoch, before }) => {
                let from = before.filter(|before| *before != me);
                let secs = since.elapsed().as_secs_f64();
                match &from {
                    Some(from) => {
                        self.takeovers.fetch_add(1, Ordering::Relaxed);
                        tracing::info!(%run, epoch, secs, "took the run over from {from}");
                    }
                    None => tracing::info!(%run, epoch, secs, "owns the run"),
                }
                app.runs.put(yard.clone());
                self.register().opened(run.as_str(), epoch);
                app.generators.adopt(&yard);
                self.tell();
                Ok(yard)
            }
            Err(cause) => {
                let now = Instant::now();
                if matches!(cause, YardError::Moved { .. }) {
                    tracing::info!(%run, "another node was quicker to claim the run");
                    self.register().lost(run.as_str(), now);
                } else {
                    tracing::error!(%run, "the run cannot be opened: {cause}");
                    self.register().failed(run.as_str(), now);
                }
                self.tell();
                Err(RunError::Yard { run: run.to_string(), cause })
            }
        }
    }

    /// Closes a run in good order, for somebody else to take it.
    async fn give(&self, app: &App, run: &RunName) {
        tracing::info!(%run, "hands the run over");
        // It answers as long as its generator writes its last.
        app.generators.release(run.as_str()).await;
        self.register().set_busy(run.as_str());
        if let Some(yard) = app.runs.take(run.as_str())
            && let Err(error) = tokio::task::spawn_blocking(move || yard.close()).await
        {
            tracing::error!(%run, "closing the run went wrong: {error}");
        }
        self.register().closed(run.as_str());
        self.tell();
    }

    /// Gives everything up, and says goodbye.
    pub(crate) async fn leave(self: &Arc<Self>, app: &App) {
        self.register().retiring = true;
        let giving = app.runs.all().into_iter().map(|yard| {
            let (cluster, app) = (Arc::clone(self), app.clone());
            async move { cluster.give(&app, yard.run_name()).await }
        });
        futures_util::future::join_all(giving).await;
        self.fall_silent().await;
        // What was being opened meanwhile.
        for yard in app.runs.all() {
            let _closed = tokio::task::spawn_blocking(move || yard.close()).await;
        }
    }

    /// Makes a run here, with `config`; false if it was there, and is open here.
    pub(crate) async fn create(
        &self,
        app: &App,
        run: RunName,
        config: RunConfig,
    ) -> Result<(Yard, bool), RunError> {
        if let Ok(yard) = app.runs.find(run.as_str()) {
            return Ok((yard, false));
        }
        let elsewhere = |owner: Option<Owner>| match owner {
            Some(Owner::There { node, url, .. }) => RunError::Elsewhere { run: run.to_string(), node, url },
            _ => RunError::NoOwner { run: run.to_string() },
        };
        if self.owner(run.as_str()).is_some() || !self.register().begin(run.as_str()) {
            return Err(elsewhere(self.owner(run.as_str())));
        }
        // The others hear that it is being made before they can find it.
        self.tell();
        let (ground, name) = (Arc::clone(&self.ground), run.clone());
        let made = tokio::task::spawn_blocking(move || ground.create(&name)).await;
        match made {
            Ok(Ok(true)) => Ok((self.open(app, run, config).await?, true)),
            // It was there, and this node had not heard of it.
            Ok(Ok(false)) => {
                self.register().closed(run.as_str());
                Err(elsewhere(None))
            }
            Ok(Err(error)) => {
                self.register().forget(run.as_str());
                Err(error.into())
            }
            Err(error) => {
                self.register().forget(run.as_str());
                Err(RunError::Yard { run: run.to_string(), cause: YardError::State(error.to_string()) })
            }
        }
    }
}
