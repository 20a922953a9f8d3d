//! SGLang's calls: [`generate`] samples, [`control`] is for whoever runs the engine.

mod asked;
mod control;
mod generate;

use axum::Router;
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::sync::Arc;

use super::App;
use super::refusal::{self, Form, Refusal};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/generate", post(generate::answer))
        .route("/health", get(control::health))
        .route("/health_generate", get(control::health_generate))
        .route("/get_model_info", get(control::model_info))
        .route("/model_info", get(control::model_info))
        .route("/get_server_info", get(control::server_info))
        .route("/server_info", get(control::server_info))
        .route("/abort_request", post(control::abort))
        .route("/pause_generation", post(control::pause))
        .route("/continue_generation", post(control::go_on))
        .route("/flush_cache", get(control::flush).post(control::flush))
        .route("/update_weights_from_disk", post(control::update_weights))
}

/// `{"error": {"message"}}`
#[derive(Debug)]
pub(super) struct Sglang;

pub(super) type Failure = refusal::Failure<Sglang>;

impl Form for Sglang {
    fn body(refusal: &Refusal) -> Value {
        json!({"error": {"message": refusal.message}})
    }
}
