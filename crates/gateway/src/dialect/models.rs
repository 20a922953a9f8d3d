//! The list of models, in a form that the clients of OpenAI and of Anthropic both read.

use jiff::Timestamp;
use serde::Serialize;

use super::wire;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    r#type: &'static str,
    display_name: &'a str,
    created_at: String,
    lifecycle: &'static str,
}

/// The answer to `GET /v1/models`.
pub fn models(list: &[&str], created: u64) -> Vec<u8> {
    wire::body(&List {
        object: "list",
        data: list.iter().map(|id| Model::new(id, created)).collect(),
        has_more: false,
        first_id: list.first().copied(),
        last_id: list.last().copied(),
    })
}

/// The answer to `GET /v1/models/{id}`.
pub fn model(id: &str, created: u64) -> Vec<u8> {
    wire::body(&Model::new(id, created))
}

impl<'a> Model<'a> {
    fn new(id: &'a str, created: u64) -> Self {
        let seconds = i64::try_from(created).unwrap_or(i64::MAX);
        let created_at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string();
        Self {
            id,
            object: "model",
            created,
            owned_by: "rollyard",
            r#type: "model",
            display_name: id,
            created_at,
            lifecycle: "active",
        }
    }
}
