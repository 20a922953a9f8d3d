//! Signing in with a browser.

use super::server::{Server, agent};
use rollyard_server::Settings;
use serde_json::{Value, json};
use tempfile::TempDir;

fn guarded() -> Server {
    start_in(TempDir::new().unwrap())
}

fn start_in(dir: TempDir) -> Server {
    Server::start_in(dir, json!({}), Settings { token: Some("s3cret".to_owned()), ..Settings::default() })
}

struct Answer {
    status: u16,
    body: Value,
    /// As it is set, with its attributes.
    set_cookie: Option<String>,
}

impl Answer {
    /// What a browser would send back.
    fn cookie(&self) -> String {
        self.set_cookie.as_deref().unwrap().split(';').next().unwrap().to_owned()
    }
}

fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let request = ureq::http::Request::builder().method(method).uri(server.url(path));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut answered = agent().run(request.body(body.to_owned()).unwrap()).unwrap();
    let set_cookie = answered.headers().get("set-cookie").map(|value| value.to_str().unwrap().to_owned());
    let text = answered.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status: answered.status().as_u16(), body, set_cookie }
}

fn sign_in(server: &Server) -> Answer {
    let answer = ask(server, "POST", "/api/session", &[], r#"{"token": "s3cret"}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer
}

fn session(server: &Server, headers: &[(&str, &str)]) -> Value {
    ask(server, "GET", "/api/session", headers, "").body
}

#[test]
fn the_token_is_traded_for_a_cookie_until_it_is_given_back() {
    let server = guarded();
    assert_eq!(session(&server, &[]), json!({"needs_token": true, "signed_in": false}));
    let signed = sign_in(&server);
    assert_eq!(signed.body, json!({"needs_token": true, "signed_in": true}));
    let cookie = signed.cookie();
    let mine = [("cookie", cookie.as_str())];
    for (method, path, body) in [
        ("GET", "/api/runs", ""),
        ("GET", "/api/live", ""),
        ("POST", "/api/runs", r#"{"name": "other"}"#),
        ("GET", "/metrics", ""),
    ] {
        let status = ask(&server, method, path, &mine, body).status;
        assert!(status < 300, "{method} {path}: {status}");
        assert_eq!(ask(&server, method, path, &[], body).status, 401, "{method} {path}");
    }
    assert_eq!(session(&server, &mine)["signed_in"], true);
    let ended = ask(&server, "DELETE", "/api/session", &mine, "");
    assert_eq!((ended.status, &ended.body["signed_in"]), (200, &json!(false)));
    assert!(ended.set_cookie.unwrap().contains("Max-Age=0"));
    assert_eq!(ask(&server, "GET", "/api/runs", &mine, "").status, 401);
}

#[test]
fn the_cookie_tells_nothing_of_the_token_and_no_script_reads_it() {
    let server = guarded();
    let (first, second) = (sign_in(&server), sign_in(&server));
    assert_ne!(first.cookie(), second.cookie());
    let set = first.set_cookie.unwrap();
    assert!(!set.contains("s3cret"), "{set}");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "{set}");
    let by_proxy =
        ask(&server, "POST", "/api/session", &[("x-forwarded-proto", "https")], r#"{"token": "s3cret"}"#);
    assert!(by_proxy.set_cookie.unwrap().contains("; Secure"));
}

#[test]
fn a_wrong_token_gets_no_cookie() {
    let server = guarded();
    for (body, status, part) in [
        (r#"{"token": "nope"}"#, 401, "--token"),
        (r#"{"token": ""}"#, 401, "--token"),
        ("{}", 400, "token"),
        (r#"{"token": 7}"#, 400, "token"),
        (r#"{"token": "s3cret", "user": "a"}"#, 400, "user"),
        ("not json", 400, "token"),
    ] {
        let answer = ask(&server, "POST", "/api/session", &[], body);
        assert_eq!((answer.status, &answer.set_cookie), (status, &None), "{body}");
        assert!(answer.body["error"]["message"].as_str().unwrap().contains(part), "{body}: {}", answer.body);
    }
    let long = format!(r#"{{"token": "{}"}}"#, "x".repeat(17 << 10));
    assert_eq!(ask(&server, "POST", "/api/session", &[], &long).status, 400);
}

#[test]
fn another_sites_page_gains_nothing_by_the_cookie() {
    let server = guarded();
    let cookie = sign_in(&server).cookie();
    let mine = ("cookie", cookie.as_str());
    for (site, status) in [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)] {
        for (method, path, body) in [("GET", "/api/runs", ""), ("PATCH", "/api/runs/default", "{}")] {
            let answer = ask(&server, method, path, &[mine, ("sec-fetch-site", site)], body);
            assert_eq!(answer.status, status, "{method} {site}");
        }
    }
    let evil = ("origin", "http://evil.example");
    assert_eq!(ask(&server, "POST", "/api/runs", &[mine, evil], r#"{"name": "x"}"#).status, 403);
    assert_eq!(ask(&server, "DELETE", "/api/session", &[mine, evil], "").status, 403);
    // A token in a header was put there on purpose.
    let token = ("authorization", "Bearer s3cret");
    assert_eq!(ask(&server, "GET", "/api/runs", &[token, ("sec-fetch-site", "cross-site")], "").status, 200);
}

#[test]
fn a_restart_signs_everybody_out() {
    let mut server = guarded();
    let cookie = sign_in(&server).cookie();
    let dir = server.dir.take().unwrap();
    drop(server);
    let server = start_in(dir);
    assert_eq!(session(&server, &[("cookie", &cookie)])["signed_in"], false);
    assert_eq!(ask(&server, "GET", "/api/runs", &[("cookie", &cookie)], "").status, 401);
}

#[test]
fn where_no_token_is_needed_everybody_is_signed_in() {
    let server = Server::start(json!({}));
    assert_eq!(session(&server, &[]), json!({"needs_token": false, "signed_in": true}));
    let answer = ask(&server, "POST", "/api/session", &[], r#"{"token": "any"}"#);
    assert_eq!((answer.status, answer.set_cookie), (200, None));
}
