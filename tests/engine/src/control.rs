//! `GET` and `POST /control`: how the engine fares, and how it is to behave.

use bytes::Bytes;
use serde_json::json;

use crate::engine::Engine;
use crate::http::{self, Answer, bad_request};

pub(crate) fn show(engine: &Engine) -> Answer {
    http::json(&json!({"counters": engine.counters(), "settings": *engine.settings()}))
}

pub(crate) fn change(engine: &Engine, body: &Bytes) -> Answer {
    let mut settings = engine.settings();
    match settings.changed(body) {
        Ok(changed) => *settings = changed,
        Err(error) => return bad_request(&error),
    }
    drop(settings);
    show(engine)
}
