//! Who may ask.
//!
//! With a key, whoever has it. Without one the server listens to this machine only, and then a page in somebody's
//! browser must not reach it: a request has to call the server by its address, not by a name that was bent to lead
//! here, and must not come from a page of somebody else's.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

use super::refusal::Refusal;

pub(super) struct Guard {
    key: Option<String>,
    /// What the server may be called where there is no key.
    names: Vec<String>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Guard {
    pub(super) fn new(key: Option<&str>, local: SocketAddr) -> Self {
        let port = local.port();
        let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        let names = hosts.into_iter().map(|host| format!("{host}:{port}"));
        Self { key: key.map(str::to_owned), names: names.chain([local.to_string()]).collect() }
    }

    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match &self.key {
            Some(key) => check_key(key, headers),
            None => self.check_name(uri, headers),
        }
    }

    fn check_name(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let refuse = |code, message| Err(Refusal::new(StatusCode::FORBIDDEN, code, message));
        let called = uri.authority().map(|authority| authority.as_str());
        let called = called.or_else(|| text(headers, header::HOST)).unwrap_or_default();
        if !self.names.iter().any(|name| name == called) {
            let message = format!(
                "this server is not called {called:?}; ask it by its address, or give it an --api-key"
            );
            return refuse("wrong_host", message);
        }
        match text(headers, header::ORIGIN) {
            Some(origin) if origin.strip_prefix("http://") != Some(called) => {
                let message = format!("pages from {origin:?} may not use this server without an --api-key");
                refuse("wrong_origin", message)
            }
            _ => Ok(()),
        }
    }
}

fn check_key(key: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let given = text(headers, header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if given.is_some_and(|(_, given)| given.trim().as_bytes().ct_eq(key.as_bytes()).into()) {
        return Ok(());
    }
    let message = match given {
        Some(_) => "this is not the key of this server; send its --api-key as `Authorization: Bearer KEY`",
        None => "send the key of this server, its --api-key, as `Authorization: Bearer KEY`",
    };
    Err(Refusal::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: Option<&str>, headers: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let guard = Guard::new(key, "127.0.0.1:30000".parse().unwrap());
        guard.check(&Uri::from_static("/generate"), &map.collect()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn without_a_key_only_this_machine_is_let_in() {
        let ours = ("host", "127.0.0.1:30000");
        for (headers, found) in [
            (vec![ours], Ok(())),
            (vec![("host", "localhost:30000")], Ok(())),
            (vec![ours, ("origin", "http://127.0.0.1:30000")], Ok(())),
            (vec![], Err("wrong_host")),
            (vec![("host", "evil.example:30000")], Err("wrong_host")),
            (vec![ours, ("origin", "http://evil.example")], Err("wrong_origin")),
            (vec![ours, ("origin", "null")], Err("wrong_origin")),
        ] {
            assert_eq!(check(None, &headers), found, "{headers:?}");
        }
    }

    #[test]
    fn a_key_is_asked_for_where_there_is_one() {
        let elsewhere = ("host", "tiny.example");
        for (given, found) in [
            ("Bearer s3cret", Ok(())),
            ("bearer s3cret", Ok(())),
            ("Bearer s3cre", Err("invalid_api_key")),
            ("Bearer s3crets", Err("invalid_api_key")),
            ("Basic s3cret", Err("invalid_api_key")),
            ("s3cret", Err("invalid_api_key")),
        ] {
            assert_eq!(check(Some("s3cret"), &[elsewhere, ("authorization", given)]), found, "{given}");
        }
        assert_eq!(check(Some("s3cret"), &[("host", "127.0.0.1:30000")]), Err("invalid_api_key"));
    }
}
