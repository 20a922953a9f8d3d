//! Who may ask at all.
//!
//! Beyond loopback every request needs the token. On loopback there may be none, so a page in somebody's
//! browser must not be able to reach us: a request has to call us by a name of ours (which a rebound DNS
//! name is not), and one that comes from a page has to come from ours.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

use crate::error::ApiError;
use crate::settings::Settings;

#[derive(Clone, Debug)]
pub(crate) struct Guard {
    token: Option<String>,
    hosts: Vec<String>,
    local: SocketAddr,
}

impl Guard {
    pub(crate) fn new(settings: &Settings, local: SocketAddr) -> Self {
        Self { token: settings.token.clone(), hosts: settings.hosts.clone(), local }
    }

    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        self.check_host(headers, uri)?;
        self.check_origin(headers)?;
        // Whoever watches over the process has no token, and learns nothing here.
        if uri.path() == "/healthz" { Ok(()) } else { self.check_token(headers) }
    }

    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let host = uri.authority().map(|authority| authority.as_str());
        let Some(host) = host.or_else(|| text(headers, header::HOST)) else {
            return Err(ApiError::bad("no_host", "the request has no Host header"));
        };
        // With a token, a rebound name gains nothing: the page that uses it does not know the token.
        if self.token.is_some() || self.is_ours(host) {
            return Ok(());
        }
        let message = format!("this server is not called {host:?}; allow the name with --allow-host");
        Err(ApiError::new(StatusCode::FORBIDDEN, "wrong_host", message))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = text(headers, header::ORIGIN) else { return Ok(()) };
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        let same = authority.is_some() && authority == text(headers, header::HOST);
        if same || authority.is_some_and(|authority| self.is_allowed(authority)) {
            return Ok(());
        }
        let message = format!("pages from {origin:?} may not use this server; allow it with --allow-host");
        Err(ApiError::new(StatusCode::FORBIDDEN, "wrong_origin", message))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = text(headers, header::AUTHORIZATION).and_then(credentials);
        if given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes()))) {
            return Ok(());
        }
        let message = "send the token as `Authorization: Bearer TOKEN`, or as the password in the URL: \
                       http://user:TOKEN@host:port";
        Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = strip_port(host);
        matches!(name, "localhost" | "127.0.0.1" | "[::1]")
            || name == self.local.ip().to_string()
            || name == format!("[{}]", self.local.ip())
            || self.is_allowed(host)
    }

    fn is_allowed(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed == host || allowed == strip_port(host))
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn strip_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// The secret in an Authorization header: a bearer token, or the password of basic authentication, which
/// is what clients send for a URL like `http://user:secret@host`.
fn credentials(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(decode_base64(rest.trim())?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: Option<&str>, headers: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let settings = Settings {
            token: token.map(str::to_owned),
            hosts: vec!["yard.example".to_owned()],
            ..Settings::default()
        };
        let guard = Guard::new(&settings, "127.0.0.1:8889".parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        guard.check(&map, &Uri::from_static("/buffer/stats")).map_err(|error| error.code)
    }

    #[test]
    fn a_rebound_name_does_not_reach_a_loopback_server() {
        for host in ["localhost:8889", "127.0.0.1:8889", "[::1]:8889", "127.0.0.1", "yard.example:80"] {
            assert_eq!(check(None, &[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(check(None, &[("host", "evil.example:8889")]), Err("wrong_host"));
        assert_eq!(check(None, &[]), Err("no_host"));
    }

    #[test]
    fn a_foreign_page_does_not_reach_us() {
        let ours = ("host", "localhost:8889");
        assert_eq!(check(None, &[ours, ("origin", "http://localhost:8889")]), Ok(()));
        assert_eq!(check(None, &[ours, ("origin", "https://yard.example")]), Ok(()));
        for origin in ["http://evil.example", "http://localhost:9999", "null"] {
            assert_eq!(check(None, &[ours, ("origin", origin)]), Err("wrong_origin"), "{origin}");
        }
    }

    #[test]
    fn a_token_is_needed_where_one_is_set() {
        let host = ("host", "10.0.0.7:8889");
        assert_eq!(check(Some("s3cret"), &[host]), Err("unauthorized"));
        for given in ["Bearer wrong", "Bearer s3cre", "Bearer s3crets", "Basic !!", "s3cret", "Digest s3cret"]
        {
            assert_eq!(
                check(Some("s3cret"), &[host, ("authorization", given)]),
                Err("unauthorized"),
                "{given}"
            );
        }
        assert_eq!(check(Some("s3cret"), &[host, ("authorization", "Bearer s3cret")]), Ok(()));
        // user:s3cret
        assert_eq!(check(Some("s3cret"), &[host, ("authorization", "Basic dXNlcjpzM2NyZXQ=")]), Ok(()));
    }
}
