//! The server of a demo: yard, archive and viewer, in this process.

use anyhow::{Context, Result};
use rollyard_server::{App, Runs, Settings};
use rollyard_store::archive::ArchiveSettings;
use serde_json::Map;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::RUN;
use super::folder::Folder;
use crate::serve::listen_from;

#[derive(Debug)]
pub(in crate::demo) struct Host {
    address: SocketAddr,
    runs: Arc<Runs>,
    stopping: CancellationToken,
    serving: JoinHandle<io::Result<()>>,
}

impl Host {
    pub(in crate::demo) async fn start(address: SocketAddr, folder: &Folder) -> Result<Self> {
        let listener = listen_from(address)?;
        let address = listener.local_addr()?;
        // The viewer is opened before there is anything to archive, and is to wait for it: a folder that is not there at
        // all would be none that may be read.
        std::fs::create_dir_all(folder.archive())
            .with_context(|| format!("cannot make the folder {}", folder.archive().display()))?;
        let mut archive = ArchiveSettings::new(&folder.archive().to_string_lossy());
        archive.with_tokens = true;
        let data = folder.yard();
        let opened = tokio::task::spawn_blocking(move || {
            Runs::open_archived(&data, &Map::new(), Some(archive), |_, _, _| {})
        });
        let runs = opened.await?.with_context(|| format!("cannot open {}", folder.yard().display()))?;
        let runs = Arc::new(runs);
        let settings = Settings {
            tokenizer: Some(Arc::new(rollyard_tiny::tokenizer::tokenizer()?)),
            ..Settings::default()
        };
        let stopping = CancellationToken::new();
        let app = App::new(Arc::clone(&runs), settings, stopping.clone());
        let serving = tokio::spawn(rollyard_server::serve(listener, app));
        Ok(Self { address, runs, stopping, serving })
    }

    pub(in crate::demo) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The viewer on the rollouts of the demo, the newest first. The question is the name of its instance, and says more
    /// of a row than where it comes from.
    pub(in crate::demo) fn page(&self) -> String {
        format!("{}/?place=yard://{RUN}&cols=step,reward,instance_id,status,flags&follow=1", self.url())
    }

    /// Lets what is under way finish.
    pub(in crate::demo) async fn stop(self) -> Result<()> {
        self.stopping.cancel();
        let served = self.serving.await?;
        let runs = self.runs;
        tokio::task::spawn_blocking(move || runs.close()).await?;
        Ok(served?)
    }
}
