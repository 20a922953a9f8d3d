//! The gateway in a server: its sessions are kept in the data folder, and its rollouts go to the runs beside it.

use axum::http::HeaderMap;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_core::ledger::{Command, Ledger};
use rollyard_core::run_config::Durability;
use rollyard_core::tokens::Tokenizer;
use rollyard_core::wire::item;
use rollyard_engine::generate::SharedEngine;
use rollyard_gateway::delivery::{Delivery, RunLoad, Yard as RunsOfGateway};
use rollyard_gateway::gateway::Gateway;
use rollyard_gateway::journal::{Journal, JournalError, Receipt};
use rollyard_gateway::model::{Model, ModelError, ModelSettings};
use rollyard_gateway::refusal::{Kind, Refusal};
use rollyard_gateway::routes::Operator;
use rollyard_store::journal::Journal as StoredJournal;
use rollyard_store::yard::{Submission, YardError};
use std::path::Path;
use std::sync::Arc;

use crate::guard::Guard;
use crate::runs::{RunError, Runs};

mod elsewhere;

/// What a gateway is told when the server starts.
#[derive(Clone, Debug)]
pub struct GateSettings {
    pub engine: SharedEngine,
    pub tokenizer: Arc<Tokenizer>,
    /// As agents call the model.
    pub model: String,
    pub aliases: Vec<String>,
    /// As the model's files say, if left out.
    pub context_tokens: Option<usize>,
    /// How the model writes thoughts and calls; found in its chat template, if left out.
    pub grammar: Option<String>,
    pub durability: Durability,
    pub gateway: rollyard_gateway::settings::Settings,
}

#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("the journal of sessions cannot be opened: {0}")]
    Journal(#[from] rollyard_store::journal::JournalError),
    #[error("the journal of sessions cannot be understood: {0}")]
    Record(String),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Opens the gateway, with the sessions that were open when the server stopped.
pub(crate) fn open(settings: GateSettings, runs: &Arc<Runs>) -> Result<Arc<Gateway>, GateError> {
    let GateSettings { engine, tokenizer, model, aliases, context_tokens, grammar, durability, gateway } =
        settings;
    let model = Model::open(ModelSettings { name: model, aliases, tokenizer, context_tokens, grammar })?;
    let (journal, records) = open_journal(runs.dir(), durability)?;
    let yard = Arc::new(Beside { runs: Arc::clone(runs) });
    let gateway = Gateway::new(engine, model, gateway, Arc::new(Kept { journal }), yard);
    let sessions =
        gateway.recover(records.into_iter().map(|record| record.to_vec())).map_err(GateError::Record)?;
    if sessions > 0 {
        tracing::info!(sessions, "sessions of the gateway go on");
    }
    Ok(gateway)
}

fn open_journal(dir: &Path, durability: Durability) -> Result<(StoredJournal, Vec<Bytes>), GateError> {
    Ok(StoredJournal::open(&dir.join("sessions"), durability)?)
}

/// Whoever has the server's token runs it. Where it has none, nobody is known to.
pub(crate) fn operator(guard: &Arc<Guard>) -> Operator {
    let guard = Arc::clone(guard);
    Operator(Arc::new(move |headers: &HeaderMap| guard.needs_token() && guard.admits(headers)))
}

#[derive(Debug)]
struct Kept {
    journal: StoredJournal,
}

impl Journal for Kept {
    fn append(&self, session: &str, record: Vec<u8>) -> Receipt {
        let heard = self.journal.write(session, record);
        async move {
            match heard.await {
                Ok(outcome) => outcome.map_err(|error| JournalError(error.to_string())),
                Err(_) => Err(JournalError("it is closed".to_owned())),
            }
        }
        .boxed()
    }

    fn forget(&self, session: &str) {
        self.journal.forget(session);
    }
}

/// The runs of the same server.
#[derive(Debug)]
struct Beside {
    runs: Arc<Runs>,
}

fn load_of(ledger: &Ledger) -> RunLoad {
    let books = ledger.books();
    RunLoad { steps: ledger.version().unwrap_or(0), accepted: books.held + books.leased + books.trained }
}

impl RunsOfGateway for Beside {
    fn load<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Option<RunLoad>, Refusal>> {
        async move {
            let unknown = |error: String| Refusal {
                field: Some("run".to_owned()),
                ..Refusal::new(Kind::NotFound, error)
            };
            let yard = match (self.runs.find(run), self.runs.cluster()) {
                (Ok(yard), _) => yard,
                (Err(RunError::Elsewhere { .. } | RunError::NoOwner { .. }), Some(cluster)) => {
                    return elsewhere::load(cluster, &self.runs, run).await.map(Some);
                }
                (Err(error), _) => return Err(unknown(error.to_string())),
            };
            let load = yard.ask(load_of).await;
            Ok(Some(load.map_err(|error| Refusal::new(Kind::Internal, error.to_string()))?))
        }
        .boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let yard = match (self.runs.find(&delivery.run), self.runs.cluster()) {
                (Ok(yard), _) => yard,
                (Err(RunError::Elsewhere { .. }), Some(cluster)) => {
                    return elsewhere::deliver(cluster, delivery).await;
                }
                (Err(error), _) => return Err(error.to_string()),
            };
            let mut submissions = Vec::with_capacity(delivery.items.len());
            for json in delivery.items {
                let json = Bytes::from(json);
                let read =
                    item::decode(&json).map_err(|error| format!("a rollout cannot be read: {error}"))?;
                submissions.push(Submission::new(read, json));
            }
            let outcomes = yard.admit(submissions).await.map_err(|error| error.to_string())?;
            for outcome in outcomes {
                outcome.map_err(|error| format!("the run refuses a rollout: {error}"))?;
            }
            if delivery.closes_group {
                let instance = delivery.instance_id;
                match yard.run(Command::CloseGroup { instance }).await {
                    // It was complete with what it has, and is closed.
                    Ok(_) | Err(YardError::Refused(_)) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            Ok(())
        }
        .boxed()
    }
}
