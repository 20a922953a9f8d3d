//! The page that comes with the server.

use super::server::{Server, agent};
use flate2::read::GzDecoder;
use rollyard_server::Settings;
use serde_json::json;
use std::io::Read;
use tempfile::TempDir;
use ureq::http::{HeaderMap, Response};

const SCRIPT: &str = "assets/index-1a2b3c.js";

/// A server with a page of a few files, as `web/` builds them.
fn with_page(token: Option<&str>) -> (TempDir, Server) {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("assets")).unwrap();
    std::fs::write(dir.path().join("index.html"), "<!doctype html><title>Rollyard</title>").unwrap();
    std::fs::write(dir.path().join(SCRIPT), "console.log('rollyard');\n".repeat(200)).unwrap();
    std::fs::write(dir.path().join("assets/index-1a2b3c.css"), "body { margin: 0 }").unwrap();
    std::fs::write(dir.path().join("favicon.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    let settings = Settings {
        page: Some(dir.path().to_owned()),
        token: token.map(str::to_owned),
        ..Settings::default()
    };
    (dir, Server::start_with(json!({}), settings))
}

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let request = agent().get(server.url(path));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    taken(request.call().unwrap())
}

fn taken(mut response: Response<ureq::Body>) -> (u16, HeaderMap, Vec<u8>) {
    let bytes = response.body_mut().read_to_vec().unwrap();
    (response.status().as_u16(), response.headers().clone(), bytes)
}

const AS_BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

#[test]
fn programs_and_people_are_greeted_in_their_own_way() {
    let (_page, server) = with_page(None);
    assert_eq!(server.get("/").1, json!({"message": "Rollout Buffer Server is running"}));
    for path in ["/", "/live", "/?place=%2Fdata%2Frun", "/live?run=default"] {
        let (status, headers, body) = get(&server, path, &[AS_BROWSER]);
        assert_eq!(
            (status, headers["content-type"].to_str().unwrap()),
            (200, "text/html; charset=utf-8"),
            "{path}"
        );
        assert!(String::from_utf8(body).unwrap().contains("<title>Rollyard</title>"), "{path}");
    }
    assert_eq!(server.get("/healthz").1["status"], "ok");
}

#[test]
fn nothing_but_the_pages_own_scripts_may_run() {
    let (_page, server) = with_page(None);
    let (_, headers, _) = get(&server, "/", &[AS_BROWSER]);
    let policy = headers["content-security-policy"].to_str().unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["referrer-policy"], "no-referrer");
}

#[test]
fn files_of_the_page_have_their_types_and_are_kept_by_browsers() {
    let (_page, server) = with_page(None);
    for (path, kind, kept) in [
        (SCRIPT, "text/javascript; charset=utf-8", true),
        ("assets/index-1a2b3c.css", "text/css; charset=utf-8", true),
        ("favicon.svg", "image/svg+xml", false),
    ] {
        let (status, headers, body) = get(&server, &format!("/{path}"), &[]);
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, kind), "{path}");
        assert_eq!(headers["cache-control"].to_str().unwrap().contains("immutable"), kept, "{path}");
        assert!(!body.is_empty());
        let etag = headers["etag"].to_str().unwrap();
        assert_eq!(get(&server, &format!("/{path}"), &[("if-none-match", etag)]).0, 304, "{path}");
    }
    for path in ["/assets/none.js", "/assets/..%2findex.html", "/assets/", "/favicon.ico", "/index.htm"] {
        assert_eq!(get(&server, path, &[]).0, 404, "{path}");
    }
}

#[test]
fn whoever_takes_gzip_gets_it_also_on_this_machine() {
    let (_page, server) = with_page(None);
    let path = format!("/{SCRIPT}");
    let (_, plain_headers, plain) = get(&server, &path, &[("accept-encoding", "identity")]);
    assert!(!plain_headers.contains_key("content-encoding"));
    let (_, headers, packed) = get(&server, &path, &[("accept-encoding", "br, gzip")]);
    assert_eq!(
        (&headers["content-encoding"], &headers["vary"]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    assert!(packed.len() * 5 < plain.len(), "{} of {}", packed.len(), plain.len());
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
    // What is known in one form is not known in the other.
    assert_ne!(headers["etag"], plain_headers["etag"]);
}

#[test]
fn asking_for_the_head_gives_no_body() {
    let (_page, server) = with_page(None);
    for path in ["/".to_owned(), "/live".to_owned(), format!("/{SCRIPT}")] {
        let (status, headers, body) =
            taken(agent().head(server.url(&path)).header(AS_BROWSER.0, AS_BROWSER.1).call().unwrap());
        assert_eq!((status, body.len()), (200, 0), "{path}");
        assert_ne!(headers["content-length"], "0", "{path}");
    }
    assert_eq!(server.post("/live", json!({})).0, 405);
}

#[test]
fn a_page_that_is_built_anew_is_served_at_once() {
    let (page, server) = with_page(None);
    let etag = get(&server, "/", &[AS_BROWSER]).1["etag"].to_str().unwrap().to_owned();
    std::fs::write(page.path().join("index.html"), "<!doctype html><title>New</title>").unwrap();
    let (status, _, body) = get(&server, "/", &[AS_BROWSER, ("if-none-match", &etag)]);
    assert_eq!((status, body), (200, b"<!doctype html><title>New</title>".to_vec()));
}

#[test]
fn the_page_is_for_everybody_and_the_data_is_not() {
    let (_page, server) = with_page(Some("s3cret"));
    for path in ["/", "/live", "/assets/index-1a2b3c.js", "/favicon.svg", "/api/session"] {
        assert_eq!(get(&server, path, &[AS_BROWSER]).0, 200, "{path}");
    }
    for path in ["/api/live", "/api/runs", "/api/openapi.json", "/metrics", "/buffer/stats"] {
        assert_eq!(get(&server, path, &[AS_BROWSER]).0, 401, "{path}");
    }
}

#[test]
fn without_its_page_a_server_shows_its_books_and_how_to_get_it() {
    let nothing = TempDir::new().unwrap();
    let start = |token: Option<&str>| {
        let (page, token) = (Some(nothing.path().to_owned()), token.map(str::to_owned));
        Server::start_with(json!({}), Settings { page, token, ..Settings::default() })
    };
    let shown = |server: &Server, headers: &[(&str, &str)]| {
        let (status, answered, body) = get(server, "/", headers);
        assert_eq!(status, 200);
        assert!(answered["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        String::from_utf8(body).unwrap()
    };
    let page = shown(&start(None), &[AS_BROWSER]);
    assert!(page.contains("make build") && page.contains("/api/runs/default"), "{page}");
    let guarded = start(Some("s3cret"));
    let page = shown(&guarded, &[AS_BROWSER]);
    assert!(page.contains("make build") && !page.contains("/api/runs/default"), "{page}");
    let page = shown(&guarded, &[AS_BROWSER, ("authorization", "Bearer s3cret")]);
    assert!(page.contains("/api/runs/default"), "{page}");
}
