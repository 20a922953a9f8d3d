//! Accepted groups go to a yard.
//!
//! A rollout is named before it is sent, so that it may be sent as often as it takes: the yard recognises it.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Sink;
use super::identity::Naming;
use super::item::{self, Label};
use crate::executor::{Finished, Status};
use crate::yard::{YardClient, YardError};

#[derive(Debug)]
pub struct YardSink {
    client: YardClient,
    naming: Naming,
}

#[derive(Deserialize)]
struct Written {
    rejected_total: u64,
    rejected: Vec<Value>,
}

impl YardSink {
    /// Makes the run if there is none of that name, with these knobs.
    pub async fn open(client: YardClient, naming: Naming, config: &Value) -> Result<Self, YardError> {
        client.make_run(config).await?;
        Ok(Self { client, naming })
    }

    pub fn client(&self) -> &YardClient {
        &self.client
    }

    async fn write(&self, finished: &Finished) -> Result<(), YardError> {
        let instance_id = Naming::instance_id(&finished.data);
        let (body, count) = self.items(finished, &instance_id)?;
        let written: Written = self.client.read(&self.client.post("rollouts", body).await?)?;
        if let Some(first) = written.rejected.first() {
            let message = first.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
            let (refused, url) = (written.rejected_total, self.client.url().to_owned());
            return Err(YardError::Rejected { refused, message: message.to_owned(), url });
        }
        if count < finished.group_size as usize {
            // Nobody else will come. What an incomplete group is good for is the run's own rule.
            let body = json!({"instance_id": instance_id}).to_string().into_bytes();
            match self.client.post("close_group", body).await {
                Err(YardError::Refused { status: 404, .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn items(&self, finished: &Finished, instance_id: &str) -> Result<(Vec<u8>, usize), YardError> {
        let timestamp = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let said = ["env_name", "data_source"].into_iter().find_map(|name| finished.data.get(name)?.as_str());
        let group_size = finished.trajectories().map(|(_, trajectory)| trajectory.samples.len()).sum();
        let mut body = Vec::new();
        for (sample_idx, trajectory) in finished.trajectories() {
            for (part, sample) in trajectory.samples.iter().enumerate() {
                let uid = self.naming.uid(finished.id.0, &finished.data, sample_idx, part);
                let label = Label {
                    uid: &uid,
                    instance_id,
                    env_name: said,
                    timestamp: Some(timestamp),
                    group_size: Some(group_size),
                    epoch: None,
                    extra_info: json!({"task_id": finished.id, "sample_idx": sample_idx}),
                };
                item::write(&mut body, label, sample).map_err(|message| YardError::Rejected {
                    refused: 1,
                    message,
                    url: uid.clone(),
                })?;
                body.push(b'\n');
            }
        }
        Ok((body, group_size))
    }
}

impl Sink for YardSink {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match finished.status {
                Status::Accepted => self.write(finished).await.map_err(|error| error.to_string()),
                Status::Rejected(_) | Status::Failed(_) => Ok(()),
            }
        })
    }
}
