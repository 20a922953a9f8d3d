//! The ground that real clusters stand on: a stream per run, heartbeats by plain publish and subscribe.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, StreamExt};
use rollyard_core::ids::RunName;
use rollyard_core::run_config::RunConfig;
use rollyard_store::log::jetstream::Connection;
use rollyard_store::log::{BlobPlace, LogError};
use rollyard_store::yard::{self, Hold, YardError};
use std::sync::Arc;

use super::ground::{Claimant, Ground, Opened};

/// A yard on NATS JetStream.
#[derive(Debug)]
pub struct JetStream {
    connection: Connection,
    subject: String,
}

impl JetStream {
    pub fn new(connection: Connection) -> Self {
        let subject = format!("ry.{}.nodes", connection.yard());
        Self { connection, subject }
    }
}

impl Ground for JetStream {
    fn runs(&self) -> Result<Vec<RunName>, LogError> {
        self.connection.runs()
    }

    fn create(&self, run: &RunName) -> Result<bool, LogError> {
        self.connection.create(run)
    }

    fn open(&self, run: &RunName, config: &RunConfig, claimant: &Claimant) -> Result<Opened, YardError> {
        let opener = Arc::new(self.connection.opener(run, &claimant.node, &claimant.url));
        let claims = Arc::clone(&opener);
        let yard = yard::open_held_on(run, config, Hold::none(), &mut |_, _| {}, move || opener.open())?;
        let before = claims.before().map(|claim| claim.node);
        Ok(Opened { yard, epoch: claims.epoch().unwrap_or_default(), before })
    }

    fn blobs(&self, run: &RunName) -> Result<Option<Arc<dyn BlobPlace>>, LogError> {
        self.connection.blobs_of(run)
    }

    fn shout(&self, heartbeat: Bytes) -> BoxFuture<'_, Result<(), String>> {
        async {
            let client = self.connection.client();
            client.publish(self.subject.clone(), heartbeat).await.map_err(|error| error.to_string())?;
            client.flush().await.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>> {
        async {
            let heard = self.connection.client().subscribe(self.subject.clone()).await;
            let heard = heard.map_err(|error| error.to_string())?;
            Ok(heard.map(|message| message.payload).boxed())
        }
        .boxed()
    }
}
