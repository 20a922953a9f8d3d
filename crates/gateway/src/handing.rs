//! Hands the rollouts of closed sessions on, and keeps the house in order: sessions expire, groups that wait in vain
//! go out as they are, what could not be delivered is tried again.

use rollyard_engine::episode::Sample;
use rollyard_engine::sink::item::{self, Label};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::delivery::Delivery;
use crate::gateway::{Gateway, now_ms};
use crate::live::Live;
use crate::look::News;
use crate::refusal::Refusal;
use crate::session::event::{Closing, Event};

const SWEEP_EVERY: Duration = Duration::from_millis(500);

impl Gateway {
    /// Keeps order until it is told to stop.
    pub async fn keep_order(self: Arc<Self>, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(SWEEP_EVERY) => self.sweep().await,
            }
        }
    }

    pub(crate) async fn sweep(&self) {
        let now = now_ms();
        for live in self.all() {
            let (closed, is_delivered) = {
                let inner = live.inner();
                (inner.state.closed.clone(), inner.state.is_delivered)
            };
            match closed {
                None if now >= live.expires_ms() => self.expire(&live).await,
                None => {}
                Some(_) if !is_delivered => self.hand_on(&live).await,
                Some(closed)
                    if now.saturating_sub(closed.at_ms) > self.settings.keep_closed.as_millis() as u64 =>
                {
                    self.let_go(&live);
                }
                Some(_) => {}
            }
        }
    }

    async fn expire(&self, live: &Arc<Live>) {
        let reason = live.time_is_up();
        let lacks_reward = { live.inner().state.rewards.is_empty() };
        let outcome = async {
            if let Some(reward) = live.opening.reward_if_expired.filter(|_| lacks_reward) {
                self.reward(live, None, reward).await?;
            }
            self.close(live, Closing::Expired, &reason).await
        };
        if let Err(refusal) = outcome.await {
            tracing::warn!(session = %live.id, %refusal, "a session could not be closed");
        }
        self.hand_on(live).await;
    }

    /// Ends the session and brings its rollouts to the yard, if its group is complete.
    pub async fn finish(&self, live: &Arc<Live>, reward: Option<f64>) -> Result<(), Refusal> {
        self.end(live, reward).await?;
        self.hand_on(live).await;
        Ok(())
    }

    /// A closed session whose group is over goes to the yard. What fails is tried again later.
    pub async fn hand_on(&self, live: &Arc<Live>) {
        let members = match live.opening.group_size {
            None => vec![Arc::clone(live)],
            Some(size) => match self.whole_group(live, size) {
                Some(members) => members,
                None => return,
            },
        };
        let mine: Vec<Arc<Live>> = members.iter().filter(|live| live.begin_delivery()).cloned().collect();
        if mine.is_empty() {
            // Somebody else is at it: whoever is told that the session has ended can rely on its rollout.
            let mut delivering = live.delivering.subscribe();
            let _ended = delivering.wait_for(|is_delivering| !is_delivering).await;
            return;
        }
        let outcome = self.deliver(live, &mine).await;
        for member in &mine {
            member.end_delivery();
        }
        if let Err(message) = outcome {
            tracing::warn!(session = %live.id, run = live.opening.run, "rollouts wait to be delivered: {message}");
        }
    }

    /// The sessions of the group, if none is open and none is missing, or nobody has come for long.
    fn whole_group(&self, live: &Live, size: u32) -> Option<Vec<Arc<Live>>> {
        let members = self.groups.of(live);
        let closed: Vec<_> = members.iter().filter_map(|member| member.closed()).collect();
        if closed.len() < members.len() {
            return None;
        }
        let mut slots: Vec<u32> = members.iter().map(|member| member.opening.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let last_ms = closed.iter().map(|closed| closed.at_ms).max().unwrap_or_default();
        let waited = now_ms().saturating_sub(last_ms) > self.settings.group_wait.as_millis() as u64;
        (slots.len() >= size as usize || waited).then_some(members)
    }

    async fn deliver(&self, live: &Live, members: &[Arc<Live>]) -> Result<(), String> {
        let mut samples = Vec::new();
        for member in members {
            for (part, sample) in member.samples()?.into_iter().enumerate() {
                samples.push((Arc::clone(member), part, sample));
            }
        }
        let is_group = live.opening.group_size.is_some();
        let group_size = is_group.then_some(samples.len());
        let items: Vec<Vec<u8>> = samples
            .iter()
            .map(|(member, part, sample)| write_item(member, *part, sample, group_size))
            .collect::<Result<_, _>>()?;
        let announced = live.opening.group_size.map_or(0, |size| size as usize);
        let closes_group = is_group && items.len() < announced;
        if !items.is_empty() {
            let run = live.opening.run.clone();
            let instance_id = live.opening.instance_id.clone();
            self.yard.deliver(Delivery { run, instance_id, items, closes_group }).await?;
        }
        for member in members {
            let receipt = {
                let mut inner = member.inner();
                inner.state.is_delivered = true;
                self.journal(&member.id, &Event::Delivered)
            };
            receipt.await.map_err(|error| error.to_string())?;
            self.groups.remove(member);
            member.say(|| News::Session(Box::new(member.row())));
        }
        Ok(())
    }
}

impl Live {
    /// Whether its rollouts are ours to deliver now.
    fn begin_delivery(&self) -> bool {
        // Under the lock, so that two who come at once do not both begin.
        let inner = self.inner();
        let may = !inner.state.is_delivered && inner.state.closed.is_some();
        may && !self.delivering.send_replace(true)
    }

    fn end_delivery(&self) {
        self.delivering.send_replace(false);
    }

    /// What it is worth: nothing, if it was abandoned or has no reward.
    pub fn samples(&self) -> Result<Vec<Sample>, String> {
        let inner = self.inner();
        let is_abandoned = inner.state.closed.as_ref().is_some_and(|closed| closed.how == Closing::Abandoned);
        if is_abandoned || inner.state.rewards.is_empty() || inner.state.tree.is_empty() {
            return Ok(Vec::new());
        }
        inner.state.samples(&self.opening).map_err(|error| format!("session {}: {error}", self.id))
    }
}

fn write_item(
    live: &Live,
    part: usize,
    sample: &Sample,
    group_size: Option<usize>,
) -> Result<Vec<u8>, String> {
    let uid = if part == 0 { live.id.to_string() } else { format!("{}.{part}", live.id) };
    let mut extra_info: Map<String, Value> = live.opening.extra_info.clone();
    extra_info.insert("session".to_owned(), Value::from(&*live.id));
    extra_info.insert("slot".to_owned(), live.opening.slot.into());
    let closed = live.closed();
    if let Some(closed) = &closed {
        extra_info.insert("closed".to_owned(), Value::from(closed.how.name()));
    }
    // The same every time it is written: a yard takes it for the same rollout.
    let timestamp = closed.map(|closed| closed.at_ms as f64 / 1e3);
    let label = Label {
        uid: &uid,
        instance_id: &live.opening.instance_id,
        env_name: Some(live.opening.env_name.as_str()).filter(|name| !name.is_empty()),
        timestamp,
        group_size,
        epoch: None,
        extra_info,
    };
    let mut body = Vec::new();
    item::write(&mut body, label, sample)?;
    Ok(body)
}

impl Live {
    /// What would go to the yard now, as items.
    pub(crate) fn items(
        &self,
        style: crate::session::export::Style,
        discount: f64,
    ) -> Result<Vec<Vec<u8>>, String> {
        let opening = crate::session::opening::Opening { style, discount, ..self.opening.clone() };
        let samples = {
            let inner = self.inner();
            inner.state.samples(&opening).map_err(|error| error.to_string())?
        };
        samples.iter().enumerate().map(|(part, sample)| write_item(self, part, sample, None)).collect()
    }
}
