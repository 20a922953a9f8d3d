//! A batch that was drawn as Arrow columns, for trainers that would rather not parse JSON.
//!
//! Unlike JSON it is made whole before the first byte is sent: a column is known when its last row is. Rollouts
//! must carry their tokens, because there is no column for messages.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use rollyard_core::ids::GroupNo;
use rollyard_core::ledger::{Command, SampledRow, Uid};
use rollyard_core::rollout::{Metadata, Rollout};
use rollyard_core::wire::{item, rollout as wire};
use rollyard_store::log::ReadError;
use rollyard_store::rollouts::columns::{About, Row, encode};
use rollyard_store::yard::Yard;
use std::collections::BTreeMap;

use crate::error::ApiError;

pub(crate) const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";

/// Does the reader want columns?
pub(crate) fn wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with(ARROW_STREAM))
}

/// The rows as one Arrow IPC stream, with `extras` in its schema.
pub(crate) async fn answer(
    yard: &Yard,
    rows: Vec<SampledRow>,
    extras: BTreeMap<String, String>,
) -> Result<Response, ApiError> {
    let reading = yard.clone();
    let read = tokio::task::spawn_blocking(move || {
        rows.iter().map(|row| read(&reading, row)).collect::<Result<Vec<_>, ApiError>>()
    });
    let read = read.await.map_err(internal)??;
    let mut drawn = Vec::with_capacity(read.len());
    for row in read {
        match row {
            Ok(row) => drawn.push(row),
            // As in JSON: it leaves with its reason on the books, and the rest is delivered.
            Err(Damaged(uid)) => drop(yard.run(Command::Discard { uid }).await?),
        }
    }
    let bytes = tokio::task::spawn_blocking(move || {
        let mut groups: BTreeMap<GroupNo, u32> = BTreeMap::new();
        let rows: Vec<Row<'_>> = drawn
            .iter()
            .map(|drawn| {
                let next = groups.len() as u32;
                Row {
                    rollout: &drawn.rollout,
                    group: *groups.entry(drawn.group).or_insert(next),
                    uid: Some(&drawn.uid),
                    advantage: Some(drawn.advantage),
                    used: Some(drawn.used),
                }
            })
            .collect();
        encode(&rows, &About { metadata: Metadata::default(), extras })
    });
    let bytes = bytes.await.map_err(internal)?.map_err(internal)?;
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(ARROW_STREAM));
    Ok(response)
}

struct Drawn {
    rollout: Rollout,
    uid: String,
    group: GroupNo,
    advantage: f32,
    used: u32,
}

/// A rollout whose bytes are not what was written.
struct Damaged(Uid);

fn read(yard: &Yard, row: &SampledRow) -> Result<Result<Drawn, Damaged>, ApiError> {
    let payload = match yard.payload(row.place) {
        Ok(payload) => payload,
        Err(error @ (ReadError::Corrupt { .. } | ReadError::Gone { .. })) => {
            tracing::error!("{error}");
            return Ok(Err(Damaged(row.uid)));
        }
        Err(error @ ReadError::Io { .. }) => return Err(internal(error)),
    };
    let uid = item::decode(&payload).map_err(internal)?.uid;
    let refused = |error: &dyn std::fmt::Display| {
        let message = format!("rollout {uid:?} cannot be a row of Arrow columns: {error}; ask for JSON");
        ApiError::new(StatusCode::NOT_ACCEPTABLE, "no_tokens", message)
    };
    let mut rollout = wire::decode(&payload).map_err(|error| refused(&error))?;
    if rollout.metadata.weight_step < 0 {
        let weight_step = i64::try_from(row.version).unwrap_or(i64::MAX);
        let metadata = Metadata { weight_step, ..rollout.metadata.clone() };
        rollout.set_metadata(metadata).map_err(|error| refused(&error))?;
    }
    let (group, advantage, used) = (row.group, row.advantage as f32, row.used);
    Ok(Ok(Drawn { rollout, uid, group, advantage, used }))
}

fn internal(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "columns", error.to_string())
}
