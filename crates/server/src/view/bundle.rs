//! Rollouts as one HTML file, to be sent to somebody who has neither the files nor a server.
//!
//! The page in it is built by `web/` as one script and one style. They stand in the file itself, and its policy lets
//! nothing run but that script, known by its hash. The rollouts are a block of JSON that no browser runs, written
//! without a single `<`: whatever a rollout says, it cannot end the block and cannot begin another.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rollyard_core::ids::Time;
use rollyard_store::archive::line::{TOKEN_FIELDS, iso};
use rollyard_store::catalog::RowNo;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::export::{Pieces, WAITING_MAX, headers};
use super::indexing::View;
use super::rollout;
use super::rows::SHOWN;
use super::summary::{Summary, summary};
use crate::App;
use crate::error::ApiError;

/// More is not read by anybody in one file.
const ROLLOUTS_MAX: usize = 2_000;
/// Of the rollouts as they stand in their files; browsers struggle with larger pages.
const BYTES_MAX: i64 = 100 << 20;
/// Other names for what only the token view of a server shows.
const MORE_TOKEN_FIELDS: [&str; 4] = ["token_texts", "entropies", "advantages", "prompt_token_ids"];

pub(super) struct Wanted {
    pub(super) filter: String,
    /// Of the list; the usual ones if there are none.
    pub(super) columns: Vec<String>,
}

/// The file, as it is written.
pub(super) fn file(
    app: &App,
    view: &Arc<View>,
    rows: &[RowNo],
    wanted: Wanted,
) -> Result<Response, ApiError> {
    let page = Page::read(app)?;
    let summaries = within_bounds(view, rows)?;
    let (sender, pieces) = mpsc::channel(WAITING_MAX);
    let (app, sent) = (app.clone(), Arc::clone(view));
    view.tasks.spawn_blocking(move || {
        if let Err(error) = send(&app, &sent, summaries, &wanted, &page, &sender) {
            tracing::warn!("an export broke off: {}", error.message);
            let _closed = sender.blocking_send(Err(io::Error::other(error.message)));
        }
    });
    let headers = headers("text/html; charset=utf-8", "rollouts.html");
    Ok((headers, Body::from_stream(ReceiverStream::new(pieces))).into_response())
}

fn within_bounds(view: &View, rows: &[RowNo]) -> Result<Vec<Summary>, ApiError> {
    let too_large = |what: String| {
        let message = format!(
            "{what} are too much for one HTML file; narrow the filter, for instance to a step or a data_source, or use \
             format=jsonl"
        );
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "export_too_large", message)
    };
    if rows.len() > ROLLOUTS_MAX {
        return Err(too_large(format!("{} rollouts (at most {ROLLOUTS_MAX})", rows.len())));
    }
    let connection = view.catalog().connect()?;
    let mut summaries = Vec::with_capacity(rows.len());
    for row in rows {
        summaries.extend(summary(&connection, *row)?);
    }
    let bytes: i64 = summaries.iter().map(|summary| summary.source.length).sum();
    if bytes > BYTES_MAX {
        return Err(too_large(format!("{} MB of rollouts (at most {})", bytes >> 20, BYTES_MAX >> 20)));
    }
    Ok(summaries)
}

/// The built page, ready to stand in a file.
struct Page {
    script: String,
    style: String,
}

impl Page {
    fn read(app: &App) -> Result<Self, ApiError> {
        let read = |name| app.page.read(name).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        let (Some(script), Some(style)) = (read("bundle/bundle.js"), read("bundle/bundle.css")) else {
            let message = "this server was built without its page, which an HTML file needs; build it with `make build`, or \
                           use format=jsonl";
            return Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_page", message));
        };
        // In a string both mean the same, and outside of one neither stands in what a bundler writes.
        let script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--");
        Ok(Self { script, style: style.replace("</", "<\\/") })
    }

    fn policy(&self) -> String {
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
        format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
             form-action 'none'",
            hash(&self.script),
            hash(&self.style)
        )
    }
}

fn send(
    app: &App,
    view: &View,
    summaries: Vec<Summary>,
    wanted: &Wanted,
    page: &Page,
    to: &Pieces,
) -> Result<(), ApiError> {
    let title = title(view);
    let columns: Vec<String> = match wanted.columns.as_slice() {
        [] => SHOWN.iter().map(|column| (*column).to_owned()).collect(),
        named => named.to_vec(),
    };
    let listed: Vec<Value> = summaries
        .iter()
        .map(|summary| {
            let values: Vec<Value> = columns.iter().map(|column| summary.value(column)).collect();
            json!({"id": summary.id, "values": values})
        })
        .collect();
    let told = |text: String| to.blocking_send(Ok(Bytes::from(text))).is_ok();
    let mut goes_on = told(head(&title, page));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let made_at = iso(Time(u64::try_from(now).unwrap_or(u64::MAX)));
    goes_on = goes_on
        && told(format!(
            "{{\"title\":{},\"filter\":{},\"made_at\":{},\"columns\":{},\"rows\":{},\"rollouts\":{{",
            inert(&title)?,
            inert(&wanted.filter)?,
            inert(&made_at)?,
            inert(&columns)?,
            inert(&listed)?
        ));
    for (nth, found) in summaries.into_iter().enumerate() {
        let id = found.id.clone();
        let mut answer = rollout::answer(app, view, found)?;
        let is_tokens = |name: &str| TOKEN_FIELDS.contains(&name) || MORE_TOKEN_FIELDS.contains(&name);
        answer.rest.retain(|name, value| !(value.is_array() && is_tokens(name)));
        let comma = if nth == 0 { "" } else { "," };
        goes_on = goes_on && told(format!("{comma}\"{id}\":{}", inert(&answer)?));
        if !goes_on {
            return Ok(());
        }
    }
    told(format!("}}}}</script>\n<script>{}</script>\n</body>\n</html>\n", page.script));
    Ok(())
}

fn head(title: &str, page: &Page) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n\
         <div id=\"root\"></div>\n<script type=\"application/json\" id=\"rollouts\">",
        page.policy(),
        escape(title),
        page.style
    )
}

/// The last part of each place.
fn title(view: &View) -> String {
    let last = |place: &String| place.trim_end_matches('/').rsplit('/').next().unwrap_or(place).to_owned();
    view.places.iter().map(last).collect::<Vec<_>>().join(", ")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON that says the same and means nothing to the parser of HTML, nor to one of old JavaScript.
fn inert(value: &impl Serialize) -> Result<String, ApiError> {
    let json = serde_json::to_string(value).map_err(|error| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", format!("a rollout is no JSON: {error}"))
    })?;
    let mut text = String::with_capacity(json.len() + json.len() / 32);
    for char in json.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(char)))
            }
            _ => text.push(char),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rollout_says_cannot_end_its_block() {
        let hostile = json!({"</script>": "<!-- <script>alert(1)</script> \u{2028} ]]> &lt; \\u003c"});
        let text = inert(&hostile).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), hostile);
    }

    #[test]
    fn the_policy_names_the_script_by_its_hash() {
        let page = Page { script: "1".to_owned(), style: String::new() };
        let policy = page.policy();
        assert!(
            policy.contains("script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"),
            "{policy}"
        );
        assert!(
            policy.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"));
    }
}
