//! Says heartbeats and hears those of all nodes.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

use super::nodes::Beat;
use super::{Cluster, JoinError};

/// A heartbeat that cannot be said by then is not worth saying.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// Whoever starts waits so long to hear itself; then there is something wrong with the way there.
const HEARD_WITHIN: Duration = Duration::from_secs(15);

/// What is under way when this node leaves may take so long.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

impl Cluster {
    /// Returns when this node has listened for long enough, and nobody else has its name.
    pub(super) async fn begin_to_speak(self: Arc<Self>) -> Result<(), JoinError> {
        let heard = self.ground.listen().await.map_err(JoinError::Deaf)?;
        self.tasks.spawn(Arc::clone(&self).speak(heard));
        let begun = Instant::now();
        loop {
            tokio::time::sleep(self.timing.beat_every / 3).await;
            let (namesake, hears) = {
                let mut register = self.register();
                (register.nodes.take_namesake(), register.nodes.hears(Instant::now()))
            };
            if let Some(namesake) = namesake.filter(|namesake| !namesake.yields) {
                self.silent.cancel();
                return Err(JoinError::NameTaken { node: self.node(), url: namesake.url });
            }
            if hears {
                break;
            }
            if begun.elapsed() > HEARD_WITHIN {
                self.silent.cancel();
                let why = format!("not even this node's own heartbeats within {} s", HEARD_WITHIN.as_secs());
                return Err(JoinError::Deaf(why));
            }
        }
        self.make_default().await?;
        self.discover(Duration::ZERO).await;
        self.register().joining = false;
        self.tell();
        Ok(())
    }

    async fn speak(self: Arc<Self>, mut heard: BoxStream<'static, Bytes>) {
        let mut ticks = tokio::time::interval(self.timing.beat_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // What was heard comes first: after a pause the ears are full, and what one says depends on it.
                biased;
                () = self.silent.cancelled() => return,
                beat = heard.next() => match beat {
                    Some(beat) => self.hear(&beat),
                    None => return tracing::error!("the other nodes cannot be heard any more"),
                },
                () = self.urgent.notified() => self.say().await,
                _ = ticks.tick() => self.say().await,
            }
        }
    }

    fn hear(&self, beat: &[u8]) {
        let Ok(beat) = serde_json::from_slice::<Beat>(beat) else {
            tracing::debug!("a heartbeat that is none: {}", String::from_utf8_lossy(beat));
            return;
        };
        self.register().heard(beat, Instant::now());
        self.changed.send_replace(());
    }

    async fn say(&self) {
        let beat = self.register().beat(Instant::now());
        let Ok(beat) = serde_json::to_vec(&beat) else { return };
        let said = tokio::time::timeout(SAID_WITHIN, self.ground.shout(beat.into())).await;
        let why = match said {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => "it took too long".to_owned(),
        };
        tracing::debug!("a heartbeat could not be said: {why}");
    }

    /// The last word: what this node had may be taken at once.
    pub(super) async fn fall_silent(&self) {
        self.register().leaving = true;
        self.say().await;
        self.silent.cancel();
        self.tasks.close();
        if tokio::time::timeout(ENDED_WITHIN, self.tasks.wait()).await.is_err() {
            tracing::warn!("runs were still being opened; others will");
        }
    }
}
