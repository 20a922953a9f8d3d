//! Agents at a server: their sessions, what their keys open, and where their rollouts go.

use super::server::{Server, agent, eventually};
use rollyard_core::run_config::Durability;
use rollyard_core::tokens::{ModelFiles, Tokenizer};
use rollyard_engine::clients::{EngineConfig, HttpEngine};
use rollyard_server::{GateSettings, Settings};
use rollyard_test_engine::{Settings as EngineSettings, TestEngine};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const TOKENS: &[u8] = include_bytes!("../../../core/tests/fixtures/tokens/chatml/tokenizer.json");
const TEMPLATE: &str = include_str!("../../../core/tests/fixtures/templates/chatml.jinja");
const TOKEN: &str = "s3cret";

/// A server with a gateway before an engine of its own.
struct Gated {
    server: Server,
    engine: TestEngine,
    _runtime: Runtime,
}

pub(crate) fn gate(url: String) -> GateSettings {
    let files = ModelFiles { chat_template: Some(TEMPLATE), ..ModelFiles::default() };
    let engine = HttpEngine::new(EngineConfig { urls: vec![url], ..EngineConfig::default() }).unwrap();
    GateSettings {
        engine: Arc::new(engine),
        tokenizer: Arc::new(Tokenizer::new(TOKENS, files).unwrap()),
        model: "m".to_owned(),
        aliases: Vec::new(),
        context_tokens: Some(4000),
        grammar: None,
        durability: Durability::Fsync,
        gateway: Default::default(),
    }
}

impl Gated {
    fn start(token: Option<&str>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let settings = EngineSettings { vocabulary: 90, ..EngineSettings::default() };
        let engine = runtime.block_on(TestEngine::start(settings)).unwrap();
        let settings = Settings { token: token.map(str::to_owned), ..Settings::default() };
        let knobs = json!({"group_size": 1, "validate": "sized"});
        let dir = TempDir::new().unwrap();
        let server = Server::start_gated(dir, knobs, settings, Some(gate(engine.url())));
        Self { server, engine, _runtime: runtime }
    }

    fn restart(mut self) -> Self {
        let dir = self.server.dir.take().unwrap();
        let gate = gate(self.engine.url());
        let knobs = json!({"group_size": 1, "validate": "sized"});
        drop(self.server);
        self.server = Server::start_gated(dir, knobs, Settings::default(), Some(gate));
        self
    }

    fn call(&self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {key}");
        self.server.send(path, body.to_string().as_bytes(), &[("authorization", &bearer)])
    }

    fn open(&self, token: &str) -> Value {
        let (status, opened) = self.call("/api/sessions", token, &json!({"instance_id": "i"}));
        assert_eq!(status, 200, "{opened}");
        opened
    }
}

fn text<'a>(opened: &'a Value, name: &str) -> &'a str {
    opened[name].as_str().unwrap()
}

fn chat() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Go"}], "max_tokens": 8})
}

#[test]
fn a_rollout_of_an_agent_is_in_the_run_when_its_session_has_ended() {
    let gated = Gated::start(None);
    let opened = gated.open("");
    assert_eq!(opened["base_url"], format!("http://{}/v1", gated.server.addr));
    let (status, said) = gated.call("/v1/chat/completions", text(&opened, "api_key"), &chat());
    assert_eq!(status, 200, "{said}");
    let end = format!("/api/sessions/{}/end", text(&opened, "session"));
    let (status, row) = gated.call(&end, text(&opened, "reward_key"), &json!({"reward": 0.5}));
    assert_eq!((status, &row["is_delivered"]), (200, &json!(true)), "{row}");
    let rows = gated.server.read(json!({}));
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["uid"], &rows[0]["instance_id"]), (&opened["session"], &json!("i")));
    assert_eq!(rows[0]["response_tokens"].as_array().unwrap().len(), 8);
    assert_eq!(rows[0]["messages"][1]["content"], said["choices"][0]["message"]["content"]);
    let metrics =
        agent().get(gated.server.url("/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(metrics.contains("rollyard_gateway_sessions{column=\"opened\"} 1"), "{metrics}");
    assert!(metrics.contains("path=\"/v1/chat/completions\""));
}

#[test]
fn sessions_go_on_when_the_server_starts_again() {
    let gated = Gated::start(None);
    let opened = gated.open("");
    let (_, said) = gated.call("/v1/chat/completions", text(&opened, "api_key"), &chat());
    let gated = gated.restart();
    let mut body = chat();
    let next = [said["choices"][0]["message"].clone(), json!({"role": "user", "content": "And?"})];
    body["messages"].as_array_mut().unwrap().extend(next);
    let (status, said) = gated.call("/v1/chat/completions", text(&opened, "api_key"), &body);
    assert_eq!(status, 200, "{said}");
    let view = gated.server.get(&format!("/api/sessions/{}", text(&opened, "session"))).1;
    assert_eq!((view["turns"].as_array().unwrap().len(), &view["turns"][1]["follows"]), (2, &json!(0)));
    assert_eq!(view["turns"][1]["cut"], json!(null));
}

#[test]
fn what_a_key_is_not_for_it_does_not_open() {
    let gated = Gated::start(Some(TOKEN));
    let (one, two) = (gated.open(TOKEN), gated.open(TOKEN));
    let (key, judge) = (text(&one, "api_key"), text(&one, "reward_key"));
    let of = |opened: &Value, call: &str| format!("/api/sessions/{}/{call}", text(opened, "session"));
    gated.call("/v1/chat/completions", key, &chat());
    let reward = json!({"reward": 1.0});
    for (path, with, status) in [
        // An agent is no judge, and nobody else's agent.
        (of(&one, "reward"), key, 403),
        (of(&one, "end"), key, 403),
        (of(&one, "abandon"), key, 403),
        (of(&two, "reward"), judge, 403),
        (of(&two, "end"), judge, 403),
        (of(&one, "reward"), "", 401),
        (of(&one, "reward"), "rk-nonsense", 401),
        // A judge does not ask, and neither key is the server's.
        ("/v1/chat/completions".to_owned(), judge, 401),
        ("/v1/chat/completions".to_owned(), TOKEN, 401),
        ("/api/sessions".to_owned(), key, 401),
        ("/api/runs/default/rollouts".to_owned(), key, 401),
        ("/buffer/write".to_owned(), judge, 401),
    ] {
        let (found, said) = gated.call(&path, with, &reward);
        assert_eq!(found, status, "{path} with {with:?}: {said}");
    }
    let look = |with: &str| {
        let request = agent().get(gated.server.url(&format!("/api/sessions/{}", text(&two, "session"))));
        request.header("authorization", format!("Bearer {with}")).call().unwrap().status().as_u16()
    };
    assert_eq!([look(key), look(judge), look(TOKEN)], [401, 401, 200]);
    assert_eq!(gated.call(&of(&one, "reward"), judge, &reward).0, 200);
    assert_eq!(gated.call(&of(&one, "end"), TOKEN, &json!({})).0, 200);
}

#[test]
fn without_a_token_rewards_still_need_their_key() {
    let gated = Gated::start(None);
    let opened = gated.open("");
    let path = format!("/api/sessions/{}/reward", text(&opened, "session"));
    assert_eq!(gated.server.post(&path, json!({"reward": 1.0})).0, 401);
    let (status, said) = gated.call(&path, text(&opened, "reward_key"), &json!({"reward": "much"}));
    assert_eq!(status, 400);
    assert!(said["error"]["message"].as_str().unwrap().contains("reward"), "{said}");
}

#[test]
fn a_server_without_an_engine_says_what_is_missing() {
    let server = Server::start(json!({}));
    let (status, said) = server.post("/api/sessions", json!({}));
    assert_eq!(status, 404);
    assert!(said["error"]["message"].as_str().unwrap().contains("--engine"), "{said}");
    assert_eq!(server.get("/api/sessions").1, json!({"sessions": [], "counts": null}));
    let (status, said) = server.post("/api/sessions", json!({"run": 7}));
    assert!(status == 400 && said["error"]["message"].as_str().unwrap().contains("run"), "{said}");
}

#[test]
fn a_run_that_does_not_exist_is_named() {
    let gated = Gated::start(None);
    let (status, said) = gated.server.post("/api/sessions", json!({"run": "nope"}));
    assert_eq!(status, 404);
    assert!(said["error"]["message"].as_str().unwrap().contains("\"nope\""), "{said}");
    let (status, said) = gated.server.post("/api/sessions", json!({"budgets": {}}));
    assert_eq!(status, 400, "{said}");
}

#[test]
fn a_session_is_watched_as_it_streams_and_the_watcher_is_let_go_at_the_end() {
    let gated = Gated::start(None);
    let opened = gated.open("");
    let path = format!("/api/sessions/{}/events", text(&opened, "session"));
    let mut events = agent().get(gated.server.url(&path)).call().unwrap().into_body().into_reader();
    gated.engine.change(|settings| settings.latency_ms_per_token = 5.0);
    let key = text(&opened, "api_key").to_owned();
    gated.call("/v1/chat/completions", &key, &chat());
    let mut seen = String::new();
    let mut piece = [0; 4096];
    eventually("the end of the answer is told", || {
        let count = events.read(&mut piece).unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
        seen.contains("\"type\":\"ended\"")
    });
    let at = |what: &str| seen.find(what).unwrap_or_else(|| panic!("no {what} in {seen}"));
    assert!(at("event: whole") < at("\"type\":\"began\""));
    assert!(
        at("\"type\":\"began\"") < at("\"type\":\"said\"")
            && at("\"type\":\"said\"") < at("\"type\":\"ended\"")
    );
    let began = std::time::Instant::now();
    drop(gated);
    assert!(began.elapsed().as_secs() < 8, "a watcher keeps the server from stopping");
}
