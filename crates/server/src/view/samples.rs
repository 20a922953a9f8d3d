//! The read calls of the older viewer, for scripts that use them: `/api/samples`, `/api/files`, `/api/contents`.
//!
//! They give what lies in files, whole, and know nothing of views. Whatever reads more than a few thousand rows is
//! better off with `/api/view`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::Query};
use bytes::Bytes;
use memchr::memchr_iter;
use rollyard_store::catalog::RowNo;
use rollyard_store::places::{Depth, ReadAt};
use rollyard_store::records::Body as RowBody;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::browse::FileAnswer;
use super::indexing::View;
use super::search::flag;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(samples))
        .routes(routes!(files))
        .routes(routes!(files_below))
        .routes(routes!(contents))
        .routes(routes!(contents_of))
}

const SAMPLES_MAX: usize = 10_000;

/// Samples of one answer if nobody says how many.
const SAMPLES: usize = 1_000;

const READ_BYTES: u64 = 1 << 20;

/// Samples of one or more files (`file` may be given several times), in the order of the files. The header
/// `x-total-count` has how many there are.
#[utoipa::path(get, path = "/samples", tag = "samples",
    params(("file" = String, Query, description = "a file, a folder, a glob or s3://; may be given several times"),
        ("limit" = Option<usize>, Query, description = "at most 10,000; 1,000 if left out"), ("offset" = Option<usize>, Query)),
    responses((status = 200, body = Vec<Object>), (status = 400, body = ErrorAnswer), (status = 403, body = ErrorAnswer),
        (status = 404, body = ErrorAnswer)))]
async fn samples(
    State(app): State<App>,
    Query(params): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let mut asked = SamplesAsked { files: Vec::new(), limit: SAMPLES, offset: 0 };
    for (name, value) in params {
        asked.hear(&name, value)?;
    }
    if asked.files.is_empty() {
        return Err(ApiError::wrong_field(
            "file",
            "missing",
            "a file, a folder, a glob or s3://bucket/prefix",
        ));
    }
    let view = app.views.open(&asked.files).await?;
    if let Err(error) = view.refresh().await {
        app.views.forget(&view);
        return Err(error);
    }
    blocking(move || {
        let (total, samples) = read_samples(&view, asked.limit, asked.offset)?;
        Ok(([("x-total-count", total.to_string())], Json(samples)).into_response())
    })
    .await
}

struct SamplesAsked {
    files: Vec<String>,
    limit: usize,
    offset: usize,
}

impl SamplesAsked {
    fn hear(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        let number = || {
            let number = value.parse::<usize>();
            number.map_err(|_| ApiError::wrong_field(name, format_args!("{value:?}"), "a whole number"))
        };
        match name {
            "limit" => self.limit = number()?,
            "offset" => self.offset = number()?,
            "file" | "files" | "path" => self.files.push(value),
            other => {
                let message = format!("{other:?} is no parameter; there are file, limit and offset");
                return Err(ApiError::bad("wrong_parameter", message));
            }
        }
        if self.limit > SAMPLES_MAX {
            let expected = format!("at most {SAMPLES_MAX}; page on with offset");
            return Err(ApiError::wrong_field("limit", self.limit, &expected));
        }
        Ok(())
    }
}

fn read_samples(view: &View, limit: usize, offset: usize) -> Result<(i64, Vec<Value>), ApiError> {
    let connection = view.catalog().connect()?;
    let total = connection.query_row("SELECT count(*) FROM rows WHERE bad = 0", [], |row| row.get(0))?;
    // As the files have them, copies too.
    let sql = "SELECT rows.row FROM rows JOIN sources USING (source) WHERE bad = 0 \
               ORDER BY sources.url, rows.line LIMIT ?1 OFFSET ?2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([limit as i64, offset as i64], |row| row.get(0).map(RowNo))?;
    let rows: Vec<RowNo> = rows.collect::<rusqlite::Result<_>>()?;
    let mut samples = Vec::with_capacity(rows.len());
    for row in rows {
        samples.push(sample(&view.catalog().body(row)?));
    }
    Ok((total, samples))
}

/// The row itself if it is in the viewer's format, else what was read of it.
pub(super) fn sample(body: &RowBody) -> Value {
    let as_it_stands = serde_json::from_slice::<Value>(&body.raw).ok();
    let as_it_stands = as_it_stands.filter(|row| row.get("messages").is_some_and(Value::is_array));
    let mut sample = as_it_stands.unwrap_or_else(|| {
        let rollout = body.rollout().unwrap_or_default();
        let mut sample = rollout.rest;
        sample.insert("messages".to_owned(), rollout.messages.into());
        sample.insert("attributes".to_owned(), rollout.attributes.into());
        sample.insert("timestamp".to_owned(), rollout.timestamp.unwrap_or_default());
        Value::Object(sample)
    });
    if let Some(fields) = sample.as_object_mut() {
        fields.insert("source_file".to_owned(), body.url.clone().into());
    }
    sample
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FilesAsked {
    /// A folder or `s3://bucket/prefix`; all roots if left out.
    #[serde(default)]
    path: String,
    /// Everything below, as it is if left out, or one level.
    #[serde(default = "yes", deserialize_with = "flag")]
    recursive: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, ToSchema)]
struct FilesAnswer {
    files: Vec<FileAnswer>,
    folders: Vec<String>,
}

/// Files that can hold rollouts, below a folder.
#[utoipa::path(get, path = "/files", tag = "samples", params(FilesAsked),
    responses((status = 200, body = FilesAnswer), (status = 403, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn files(
    State(app): State<App>,
    Params(asked): Params<FilesAsked>,
) -> Result<Json<FilesAnswer>, ApiError> {
    let places = if asked.path.is_empty() { app.views.reach.roots.clone() } else { vec![asked.path] };
    list(app, places, asked.recursive).await
}

/// The same, with the folder in the path of the URL: `/api/files/data/run1` or `/api/files/s3://bucket/prefix`.
#[utoipa::path(get, path = "/files/{*path}", tag = "samples", params(("path" = String, Path)),
    responses((status = 200, body = FilesAnswer), (status = 403, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn files_below(
    State(app): State<App>,
    Path(path): Path<String>,
    Params(asked): Params<FilesAsked>,
) -> Result<Json<FilesAnswer>, ApiError> {
    let place = place_of_path(&app, &path);
    list(app, vec![place], asked.recursive).await
}

async fn list(app: App, places: Vec<String>, is_recursive: bool) -> Result<Json<FilesAnswer>, ApiError> {
    let depth = if is_recursive { Depth::All } else { Depth::One };
    let views = Arc::clone(&app.views);
    blocking(move || {
        let mut answer = FilesAnswer { files: Vec::new(), folders: Vec::new() };
        for said in &places {
            let listing = views.places.browse(&views.reach.resolve(said)?, depth)?;
            answer.files.extend(listing.files.into_iter().map(FileAnswer::from));
            answer.folders.extend(listing.folders);
        }
        Ok(Json(answer))
    })
    .await
}

/// A path that was put into a URL has lost its first slash, and proxies make one slash of two.
fn place_of_path(app: &App, path: &str) -> String {
    if path.contains("://") || path.starts_with('/') {
        return path.to_owned();
    }
    if let Some((scheme @ ("s3" | "gs" | "az" | "yard"), rest)) = path.split_once(":/") {
        return format!("{scheme}://{rest}");
    }
    let absolute = format!("/{path}");
    if app.views.places.admit(&absolute).is_ok() {
        return absolute;
    }
    // Below the first root, for whoever knows only names below it.
    match app.settings.roots.first() {
        Some(root) => root.join(path).display().to_string(),
        None => absolute,
    }
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ContentsAsked {
    /// A file.
    path: String,
    /// Lines that are passed over.
    offset: u64,
    /// Lines to give; all if left out.
    limit: Option<u64>,
}

/// The content of a file as it is, or some of its lines.
#[utoipa::path(get, path = "/contents", tag = "samples", params(ContentsAsked),
    responses((status = 200, content_type = "text/plain", body = String), (status = 403, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn contents(
    State(app): State<App>,
    Params(asked): Params<ContentsAsked>,
) -> Result<Response, ApiError> {
    if asked.path.is_empty() {
        return Err(ApiError::wrong_field("path", "missing", "a file; /api/files lists them"));
    }
    let place = app.views.reach.resolve(&asked.path)?;
    stream(app, place, asked).await
}

/// The same, with the file in the path of the URL.
#[utoipa::path(get, path = "/contents/{*path}", tag = "samples", params(("path" = String, Path)),
    responses((status = 200, content_type = "text/plain", body = String), (status = 403, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn contents_of(
    State(app): State<App>,
    Path(path): Path<String>,
    Params(asked): Params<ContentsAsked>,
) -> Result<Response, ApiError> {
    let place = app.views.reach.resolve(&place_of_path(&app, &path))?;
    stream(app, place, asked).await
}

async fn stream(app: App, place: String, asked: ContentsAsked) -> Result<Response, ApiError> {
    let views = Arc::clone(&app.views);
    let file = blocking(move || Ok(views.places.open(&place)?)).await?;
    let (sender, pieces) = mpsc::channel(4);
    app.views.tasks.spawn_blocking(move || {
        let lines = Lines { skip: asked.offset, take: asked.limit.unwrap_or(u64::MAX) };
        if let Err(error) = lines.send(&*file, &sender) {
            let _closed = sender.blocking_send(Err(io::Error::other(error.message)));
        }
    });
    let kind =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((StatusCode::OK, kind, Body::from_stream(ReceiverStream::new(pieces))).into_response())
}

/// Lines of a file, by number.
struct Lines {
    skip: u64,
    take: u64,
}

impl Lines {
    fn send(mut self, file: &dyn ReadAt, to: &mpsc::Sender<io::Result<Bytes>>) -> Result<(), ApiError> {
        let mut at = 0;
        while self.take > 0 {
            let piece = file.read_at(at..at + READ_BYTES)?;
            if piece.is_empty() {
                break;
            }
            at += piece.len() as u64;
            let wanted = self.cut(&piece);
            if !wanted.is_empty() && to.blocking_send(Ok(wanted)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The part of a piece that belongs to lines that are wanted.
    fn cut(&mut self, piece: &Bytes) -> Bytes {
        let mut from = 0;
        for end in memchr_iter(b'\n', piece) {
            if self.skip > 0 {
                self.skip -= 1;
                from = end + 1;
            } else {
                self.take = self.take.saturating_sub(1);
                if self.take == 0 {
                    return piece.slice(from..=end);
                }
            }
        }
        if self.skip > 0 { Bytes::new() } else { piece.slice(from..) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_across_pieces() {
        let pieces = ["a\nb", "b\nc\n", "d\n", "e"];
        for (skip, take, expected) in [
            (0, u64::MAX, "a\nbb\nc\nd\ne"),
            (1, 1, "bb\n"),
            (0, 2, "a\nbb\n"),
            (3, 10, "d\ne"),
            (4, 1, "e"),
            (9, 1, ""),
        ] {
            let mut lines = Lines { skip, take };
            let mut given = String::new();
            for piece in pieces {
                if lines.take > 0 {
                    given.push_str(std::str::from_utf8(&lines.cut(&Bytes::from(piece))).unwrap());
                }
            }
            assert_eq!(given, expected, "{skip} {take}");
        }
    }
}
