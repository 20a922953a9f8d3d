//! A gateway with an engine, a journal and a yard that a test can look into.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures_util::future::{BoxFuture, FutureExt, ready};
use http_body_util::BodyExt;
use rollyard_engine::clients::{EngineConfig, HttpEngine};
use rollyard_test_engine::{Settings as EngineSettings, TestEngine};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

use crate::delivery::{Delivery, RunLoad, Yard};
use crate::gateway::{Gateway, SessionKeys};
use crate::journal::{Journal, JournalError, Receipt};
use crate::model::Model;
use crate::parse::Grammar;
use crate::refusal::Refusal;
use crate::routes::agents;
use crate::session::continuity::Continuity;
use crate::session::opening::Opening;
use crate::settings::Settings;
use crate::testing::{THINKING, encode, with_template};

#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) records: Mutex<Vec<Vec<u8>>>,
    pub(super) is_broken: AtomicBool,
}

impl Journal for Records {
    fn append(&self, _: &str, record: Vec<u8>) -> Receipt {
        if self.is_broken.load(Ordering::Relaxed) {
            return ready(Err(JournalError("the disk is full".to_owned()))).boxed();
        }
        self.records.lock().unwrap().push(record);
        ready(Ok(())).boxed()
    }

    fn forget(&self, _: &str) {}
}

#[derive(Debug, Default)]
pub(super) struct Delivered {
    pub(super) deliveries: Mutex<Vec<Delivery>>,
    pub(super) load: Mutex<RunLoad>,
    pub(super) is_away: AtomicBool,
}

impl Delivered {
    /// The rollouts that came, in order.
    pub(super) fn items(&self) -> Vec<Value> {
        let deliveries = self.deliveries.lock().unwrap();
        deliveries
            .iter()
            .flat_map(|one| &one.items)
            .map(|item| serde_json::from_slice(item).unwrap())
            .collect()
    }
}

impl Yard for Delivered {
    fn load<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<RunLoad>, Refusal>> {
        ready(Ok(Some(*self.load.lock().unwrap()))).boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<(), String>> {
        if self.is_away.load(Ordering::Relaxed) {
            return ready(Err("the yard is away".to_owned())).boxed();
        }
        self.deliveries.lock().unwrap().push(delivery);
        ready(Ok(())).boxed()
    }
}

pub(super) struct House {
    pub(super) engine: TestEngine,
    pub(super) gateway: Arc<Gateway>,
    pub(super) journal: Arc<Records>,
    pub(super) yard: Arc<Delivered>,
    router: Router,
}

impl House {
    pub(super) async fn new(engine: EngineSettings) -> Self {
        Self::with(engine, Settings::default()).await
    }

    pub(super) async fn with(engine: EngineSettings, settings: Settings) -> Self {
        let engine = EngineSettings { records: true, vocabulary: 200, ..engine };
        let engine = TestEngine::listen("127.0.0.1:0".parse().unwrap(), engine).await.unwrap();
        let (journal, yard) = (Arc::new(Records::default()), Arc::new(Delivered::default()));
        Self::around(engine, settings, journal, yard)
    }

    /// Another gateway on the same journal, as after a crash.
    pub(super) fn restarted(self) -> Self {
        let Self { engine, journal, yard, .. } = self;
        let house = Self::around(engine, Settings::default(), journal, yard);
        let records = house.journal.records.lock().unwrap().clone();
        house.gateway.recover(records).unwrap();
        house
    }

    fn around(engine: TestEngine, settings: Settings, journal: Arc<Records>, yard: Arc<Delivered>) -> Self {
        let config = EngineConfig {
            urls: vec![engine.url()],
            attempts: 2,
            backoff_secs: 0.01,
            ..EngineConfig::default()
        };
        let model = Model {
            name: "m".to_owned(),
            aliases: Vec::new(),
            tokenizer: with_template(THINKING),
            grammar: Grammar::of_template(THINKING),
            context_tokens: 2000,
            continuity: Continuity::default(),
        };
        let http = Arc::new(HttpEngine::new(config).unwrap());
        let gateway = Gateway::new(http, model, settings, journal.clone(), yard.clone());
        let router = agents(gateway.clone());
        Self { engine, gateway, journal, yard, router }
    }

    pub(super) async fn open(&self, opening: Value) -> SessionKeys {
        let opening: Opening = serde_json::from_value(opening).unwrap();
        self.gateway.open(opening).await.unwrap()
    }

    /// Has the model say these texts next, each to its end.
    pub(super) fn says(&self, texts: &[&str]) {
        let tokenizer = &self.gateway.model.tokenizer;
        let answers = texts.iter().map(|text| encode(tokenizer, &format!("{text}<|im_end|>"))).collect();
        self.engine.change(|settings| settings.token_answers = answers);
    }

    pub(super) async fn send(
        &self,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> axum::response::Response {
        let mut request = Request::post(path).header("authorization", format!("Bearer {key}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap()
    }

    pub(super) async fn ask(&self, key: &str, body: &Value) -> (StatusCode, Value) {
        self.ask_with(key, &[], body).await
    }

    pub(super) async fn ask_with(
        &self,
        key: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (StatusCode, Value) {
        let response = self.send("/v1/chat/completions", key, headers, body).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }
}

pub(super) fn chat(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 40})
}

/// Waits on a condition, with a deadline.
pub(super) async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it happens within 20 s");
}
