//! Rows to take along: as they stand in their files, or their summary.

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rollyard_store::archive::parquet;
use rollyard_store::catalog::RowNo;
use rollyard_store::catalog::columns::COLUMNS;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, words};
use super::bundle;
use super::indexing::View;
use super::rows::choice;
use super::samples::sample;
use super::shelf::OfView;
use super::summary::summary;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export))
}

/// What is sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// Of lines that become one Parquet file, all of it in memory.
const PARQUET_BYTES_MAX: usize = 512 << 20;

/// Pieces that may wait for a slow reader.
pub(super) const WAITING_MAX: usize = 4;

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The rows as they stand in their files, one a line.
    #[default]
    Jsonl,
    /// The columns of the catalog.
    Csv,
    /// The rollouts in the archive's schema, up to 512 MB of them.
    Parquet,
    /// One page that works without a server, with up to 2,000 rollouts or 100 MB of them.
    Html,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ExportAsked {
    filter: String,
    /// As in `rows`.
    sort: String,
    /// Of CSV, all of the catalog if left out; of the list in HTML, the usual ones if left out.
    columns: String,
    #[param(inline)]
    format: Format,
}

/// All rows of a filter, as a file. A row that cannot be read any longer breaks the download off.
#[utoipa::path(get, path = "/{view}/export", tag = "view", params(("view" = String, Path), ExportAsked),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>), (status = 400, body = ErrorAnswer)))]
async fn export(
    State(app): State<App>,
    OfView(view): OfView,
    Params(asked): Params<ExportAsked>,
) -> Result<Response, ApiError> {
    let (chosen, choice) = (Arc::clone(&view), choice(&asked.filter, &asked.sort));
    let rows = blocking(move || Ok(chosen.query.rows(&choice)?)).await?;
    if matches!(asked.format, Format::Parquet) {
        return blocking(move || parquet_file(&view, &rows)).await;
    }
    let columns = words(&asked.columns);
    if matches!(asked.format, Format::Html) {
        let wanted = bundle::Wanted { filter: asked.filter, columns };
        return blocking(move || bundle::file(&app, &view, &rows, wanted)).await;
    }
    let (sender, pieces) = mpsc::channel(WAITING_MAX);
    let tasks = view.tasks.clone();
    tasks.spawn_blocking(move || {
        let sent = match asked.format {
            Format::Jsonl => send_lines(&view, &rows, &sender),
            _ => send_csv(&view, &rows, columns, &sender),
        };
        if let Err(error) = sent {
            // The answer has begun: all that is left is to break it off.
            tracing::warn!("an export broke off: {}", error.message);
            let _closed = sender.blocking_send(Err(io::Error::other(error.message)));
        }
    });
    let (kind, name) = match asked.format {
        Format::Jsonl => ("application/x-ndjson", "rollouts.jsonl"),
        _ => ("text/csv; charset=utf-8", "rollouts.csv"),
    };
    Ok((headers(kind, name), Body::from_stream(ReceiverStream::new(pieces))).into_response())
}

pub(super) fn headers(kind: &str, name: &str) -> [(header::HeaderName, String); 2] {
    let disposition = format!("attachment; filename=\"{name}\"");
    [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)]
}

/// A Parquet file ends with its table of contents, so it is made before it is sent.
fn parquet_file(view: &View, rows: &[RowNo]) -> Result<Response, ApiError> {
    let mut lines = Vec::new();
    for row in rows {
        let line = sample(&view.catalog().body(*row)?);
        lines.extend_from_slice(line.to_string().as_bytes());
        lines.push(b'\n');
        if lines.len() > PARQUET_BYTES_MAX {
            let message = format!(
                "these rollouts are more than {} MB, which is too much for one Parquet file here; narrow the filter, or \
                 use `rollyard convert`",
                PARQUET_BYTES_MAX >> 20
            );
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "export_too_large", message));
        }
    }
    let file = parquet::of_rollouts(&lines).map_err(|error| {
        let message = format!("the rollouts cannot be written as Parquet: {error}");
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "not_parquet", message)
    })?;
    Ok((headers("application/vnd.apache.parquet", "rollouts.parquet"), file).into_response())
}

pub(super) type Pieces = mpsc::Sender<io::Result<Bytes>>;

/// Gathers lines to pieces of a size that is worth a packet.
struct Pack<'a> {
    bytes: Vec<u8>,
    to: &'a Pieces,
}

impl Pack<'_> {
    /// False if nobody reads any longer.
    fn line(&mut self, line: &[u8]) -> bool {
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
        self.bytes.len() < PIECE_BYTES || self.send()
    }

    fn send(&mut self) -> bool {
        let piece = Bytes::from(std::mem::take(&mut self.bytes));
        piece.is_empty() || self.to.blocking_send(Ok(piece)).is_ok()
    }
}

fn send_lines(view: &View, rows: &[RowNo], to: &Pieces) -> Result<(), ApiError> {
    let mut pack = Pack { bytes: Vec::new(), to };
    for row in rows {
        let body = view.catalog().body(*row)?;
        if !pack.line(&one_line(&body.raw)) {
            return Ok(());
        }
    }
    pack.send();
    Ok(())
}

/// A row of a file that is one JSON list may stand on several lines; between its parts a space is as good.
fn one_line(raw: &Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', raw).is_none() {
        return raw.clone();
    }
    raw.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

fn send_csv(view: &View, rows: &[RowNo], columns: Vec<String>, to: &Pieces) -> Result<(), ApiError> {
    let columns = if columns.is_empty() {
        let all = COLUMNS.iter().map(|column| column.name.to_owned());
        std::iter::once("id".to_owned()).chain(all).chain(["source_file".to_owned()]).collect()
    } else {
        columns
    };
    let connection = view.catalog().connect()?;
    let mut pack = Pack { bytes: Vec::new(), to };
    let header: Vec<Value> = columns.iter().map(|column| Value::String(column.clone())).collect();
    let mut goes_on = pack.line(csv_line(&header).as_bytes());
    for row in rows {
        let Some(summary) = summary(&connection, *row)? else { continue };
        let values: Vec<Value> = columns.iter().map(|column| summary.value(column)).collect();
        goes_on = goes_on && pack.line(csv_line(&values).as_bytes());
        if !goes_on {
            return Ok(());
        }
    }
    pack.send();
    Ok(())
}

fn csv_line(values: &[Value]) -> String {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains(['"', ',', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    values.iter().map(cell).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_with_commas_and_quotes_stay_one_cell() {
        let values = [json!(1), json!(0.5), json!(null), json!("a,b"), json!("say \"x\"\nnow"), json!(true)];
        assert_eq!(csv_line(&values), "1,0.5,,\"a,b\",\"say \"\"x\"\"\nnow\",true");
    }

    #[test]
    fn a_row_of_several_lines_becomes_one() {
        assert_eq!(one_line(&Bytes::from_static(b"{\"a\":\r\n 1}")), "{\"a\":   1}".as_bytes());
    }
}
