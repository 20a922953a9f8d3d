//! The description of the API, which the page has its types from.

use super::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Fails when the API changes without the page being told; `UPDATE_DOCS=1` writes the file anew.
#[test]
fn the_page_is_built_from_the_api_as_it_is() {
    let server = Server::start(json!({}));
    let (status, described) = server.get("/api/openapi.json");
    assert_eq!(status, 200);
    let described = format!("{described:#}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &described).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    // The text is long: what differs is told, not all of it.
    let differs = kept.lines().zip(described.lines()).position(|(kept, now)| kept != now);
    assert!(
        kept == described,
        "web/openapi.json is not what the server says, from line {:?} on; write it anew with \
         UPDATE_DOCS=1 cargo nextest run --workspace -E 'test(the_page_is_built_from_the_api)'",
        differs.map(|line| line + 1)
    );
}

/// Two types of one name would silently become one of them in the description.
#[test]
fn every_type_of_the_api_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut places);
    assert!(places.len() > 50, "{places:?}");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "rename one, or give it #[schema(as = …)]: {places:#?}");
}

fn visit(folder: &Path, places: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, places);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut renamed: Option<String> = None;
        let mut is_described = false;
        for line in text.lines() {
            if line.starts_with("#[derive(") && line.contains("ToSchema") {
                is_described = true;
            } else if let Some((_, name)) = line.split_once("schema(as = ") {
                renamed = name.split(')').next().map(str::to_owned);
            } else if let Some((_, rest)) = line.split_once("struct ").or_else(|| line.split_once("enum "))
                && is_described
                && !line.starts_with("//")
            {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned();
                places.entry(renamed.take().unwrap_or(name)).or_default().push(path.display().to_string());
                is_described = false;
            }
        }
    }
}

#[test]
fn every_call_says_what_it_answers() {
    let server = Server::start(json!({}));
    let described = server.get("/api/openapi.json").1;
    for (path, call) in [("/api/live", "get"), ("/api/session", "post"), ("/api/session", "delete")] {
        let answer = &described["paths"][path][call]["responses"]["200"]["content"]["application/json"];
        assert_ne!(answer["schema"]["$ref"], Value::Null, "{call} {path}");
    }
}
