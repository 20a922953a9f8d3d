//! The start payload as a generator's process gets it: with our address, and without what is finished.

use rollyard_store::yard::Yard;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::runs::DEFAULT_RUN;

/// Instances that the ledger is asked about at once, so that nobody waits long for it.
const ASKED_AT_ONCE: usize = 10_000;

/// Where a process on this machine reaches a run of ours.
pub(super) fn own_url(local: SocketAddr, token: Option<&str>, run: &str) -> String {
    let ip = match local.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let token = token.map(|token| format!("rollyard:{}@", escaped(token))).unwrap_or_default();
    let path = if run == DEFAULT_RUN { String::new() } else { format!("/runs/{run}") };
    format!("http://{token}{}{path}", SocketAddr::new(ip, local.port()))
}

/// As it may stand in a URL.
fn escaped(token: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    token
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// An address that is none, or everybody's, becomes ours.
pub(super) fn fill_in_buffer_url(payload: &mut Map<String, Value>, own_url: &str) {
    let field = "remote_buffer_url";
    let is_said = payload.get(field).and_then(Value::as_str).is_some_and(|url| {
        let url = url.trim();
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        !host.is_empty() && !host.starts_with("0.0.0.0")
    });
    if !is_said {
        payload.insert(field.to_owned(), Value::from(own_url));
    }
}

/// Adds one mention to `skip_instance_ids` for every group that is finished, as far as the payload has none yet.
pub(super) async fn skip_finished(payload: &mut Map<String, Value>, yard: &Yard) -> Result<usize, String> {
    let Some(file) = payload.get("input_file").and_then(Value::as_str) else { return Ok(0) };
    let file = file.to_owned();
    let ids = tokio::task::spawn_blocking(move || instance_ids(Path::new(&file)));
    let ids = ids.await.map_err(|error| error.to_string())??;
    let mut skipped = match payload.get("skip_instance_ids") {
        Some(Value::Array(ids)) => ids.clone(),
        _ => Vec::new(),
    };
    let mut mentions: HashMap<String, u32> = HashMap::new();
    for id in skipped.iter().map(text) {
        *mentions.entry(id).or_default() += 1;
    }
    let before = skipped.len();
    for some in ids.chunks(ASKED_AT_ONCE) {
        let some = some.to_vec();
        let finished = yard.ask(move |ledger| {
            let count = |id: String| (ledger.rounds_finished(&id), id);
            some.into_iter().map(count).filter(|(rounds, _)| *rounds > 0).collect::<Vec<_>>()
        });
        for (rounds, id) in finished.await.map_err(|error| error.to_string())? {
            let missing = rounds.saturating_sub(mentions.get(&id).copied().unwrap_or(0));
            skipped.extend((0..missing).map(|_| Value::from(id.as_str())));
        }
    }
    let added = skipped.len() - before;
    if added > 0 {
        payload.insert("skip_instance_ids".to_owned(), Value::Array(skipped));
    }
    Ok(added)
}

/// 1 and "1" are the same instance.
fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// The instances of a data set, in its order. A line that cannot be read is the generator's to complain about.
fn instance_ids(file: &Path) -> Result<Vec<String>, String> {
    use std::io::{BufRead, BufReader};
    #[derive(serde::Deserialize)]
    struct Line {
        instance_id: Value,
    }
    let open = std::fs::File::open(file).map_err(|error| format!("{error}: {}", file.display()))?;
    let ids = BufReader::new(open).lines().map_while(Result::ok).filter_map(|line| {
        let line: Line = serde_json::from_str(&line).ok()?;
        Some(text(&line.instance_id))
    });
    Ok(ids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_process_on_this_machine_is_told_an_address_it_can_reach() {
        for (local, token, run, expected) in [
            ("127.0.0.1:8889", None, "default", "http://127.0.0.1:8889"),
            ("0.0.0.0:80", Some("s3cret"), "default", "http://rollyard:s3cret@127.0.0.1:80"),
            ("10.0.0.5:80", Some("a@b/c"), "two", "http://rollyard:a%40b%2Fc@10.0.0.5:80/runs/two"),
            ("[::]:80", None, "two", "http://[::1]:80/runs/two"),
        ] {
            assert_eq!(own_url(local.parse().unwrap(), token, run), expected);
        }
    }

    #[test]
    fn a_buffer_url_that_nobody_could_reach_is_replaced() {
        for (given, expected) in [
            (json!({}), "ours"),
            (json!({"remote_buffer_url": null}), "ours"),
            (json!({"remote_buffer_url": ""}), "ours"),
            (json!({"remote_buffer_url": "http://0.0.0.0:8889"}), "ours"),
            (json!({"remote_buffer_url": "http://head-node:8889/runs/a"}), "http://head-node:8889/runs/a"),
        ] {
            let mut payload = given.as_object().unwrap().clone();
            fill_in_buffer_url(&mut payload, "ours");
            assert_eq!(payload["remote_buffer_url"], expected, "{given}");
        }
    }
}
