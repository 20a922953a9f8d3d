//! A sample as an item of a yard.

use rollyard_core::rollout::NO_VERSION;
use rollyard_core::wire::rollout::TokenFields;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::episode::Sample;
use crate::executor::version_range;
use crate::generate::Message;

/// What only the writer knows of a sample.
#[derive(Debug)]
pub struct Label<'a, E> {
    pub uid: &'a str,
    pub instance_id: &'a str,
    /// Where it comes from: what a replay balances by, and what the viewer calls its source.
    pub env_name: Option<&'a str>,
    /// When it was made, in seconds since 1970.
    pub timestamp: Option<f64>,
    pub group_size: Option<usize>,
    /// The pass over the data set.
    pub epoch: Option<u32>,
    pub extra_info: E,
}

#[derive(Serialize)]
struct Item<'a, E> {
    uid: &'a str,
    instance_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    env_name: Option<&'a str>,
    messages: &'a [Message],
    reward: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u32>,
    extra_info: E,
    #[serde(flatten)]
    tokens: Option<TokenFields<'a>>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

/// Appends the item's JSON, or says what in it JSON cannot carry.
pub fn write<E: Serialize>(body: &mut Vec<u8>, label: Label<'_, E>, sample: &Sample) -> Result<(), String> {
    let tokens = sample.rollout.as_ref().map(TokenFields::of).transpose();
    let item = Item {
        uid: label.uid,
        instance_id: label.instance_id,
        // A workflow that says it itself knows better.
        env_name: label.env_name.filter(|_| !sample.extra.contains_key("env_name")),
        messages: &sample.messages,
        reward: sample.reward,
        weight_version: version_range(sample).map(|(head, _)| head).filter(|head| *head > NO_VERSION),
        timestamp: label.timestamp,
        group_size: label.group_size,
        epoch: label.epoch,
        extra_info: label.extra_info,
        tokens: tokens.map_err(|error| error.to_string())?,
        extra: &sample.extra,
    };
    serde_json::to_writer(body, &item).map_err(|error| error.to_string())
}
