//! Who may ask at all.
//!
//! Beyond loopback every request needs the token. On loopback there may be none, so a page in somebody's
//! browser must not be able to reach us: a request has to call us by a name of ours (which a rebound DNS
//! name is not), and one that comes from a page has to come from ours.
//!
//! A browser that gave the token once has a cookie of a [session](crate::session) in its place. A cookie is sent by
//! whatever page has the browser ask, so it counts only where our own page did. The page itself holds no data: its
//! files are for everybody.

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

use crate::error::ApiError;
use crate::page;
use crate::session::Sessions;
use crate::settings::Settings;

#[derive(Debug)]
pub(crate) struct Guard {
    token: Option<String>,
    hosts: Vec<String>,
    local: SocketAddr,
    pub(crate) sessions: Sessions,
}

impl Guard {
    pub(crate) fn new(settings: &Settings, local: SocketAddr) -> Self {
        let (token, hosts) = (settings.token.clone(), settings.hosts.clone());
        Self { token, hosts, local, sessions: Sessions::new(local.port()) }
    }

    pub(crate) fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        self.check_host(headers, uri)?;
        self.check_origin(headers)?;
        if is_for_everybody(method, uri.path()) { Ok(()) } else { self.check_token(headers) }
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request with these headers may see what is kept here.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        self.check_token(headers).is_ok()
    }

    /// Where none is needed, any will do.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_none_or(|token| given.as_bytes().ct_eq(token.as_bytes()).into())
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

    /// Whether the token itself was sent, and not only a cookie for it.
    pub(crate) fn brings_token(&self, headers: &HeaderMap) -> bool {
        let given = text(headers, header::AUTHORIZATION).and_then(credentials);
        given.is_some_and(|given| self.is_token(&given))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if !self.needs_token() || self.brings_token(headers) {
            return Ok(());
        }
        if self.sessions.knows(headers) {
            return check_asker(headers);
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

/// Whoever watches over the process has no token, and learns nothing here. Signing in is how one gets by with a cookie.
fn is_for_everybody(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/api/session" => true,
        // Agents bring the key of their session, which is looked at where they ask.
        path if rollyard_gateway::routes::is_agents_path(path) => true,
        path if is_judgement(path) => true,
        _ => matches!(*method, Method::GET | Method::HEAD) && page::is_file(path),
    }
}

/// Rewards have a key of their own, which is looked at where they are set.
fn is_judgement(path: &str) -> bool {
    let call = path.strip_prefix("/api/sessions/").and_then(|rest| rest.split_once('/'));
    call.is_some_and(|(_, call)| matches!(call, "reward" | "end" | "abandon" | "export"))
}

/// By a cookie, only our own page may ask, or somebody who typed the address. Browsers say who asks; a page on another
/// port of this host would get past the cookie's `SameSite`, and its plain GET has no Origin.
fn check_asker(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => {
            let message =
                "a page of another site asks with the cookie of this one; open the address by itself";
            Err(ApiError::new(StatusCode::FORBIDDEN, "wrong_origin", message))
        }
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
        guard.check(&Method::GET, &Uri::from_static("/buffer/stats"), &map).map_err(|error| error.code)
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

    #[test]
    fn the_page_is_for_everybody_and_what_it_shows_is_not() {
        let open = |method, path| is_for_everybody(&method, path);
        for path in ["/", "/live", "/assets/page-1a2b.js", "/favicon.svg", "/healthz", "/api/session"] {
            assert!(open(Method::GET, path), "{path}");
        }
        for path in
            ["/api/runs", "/api/live", "/api/view/open", "/metrics", "/buffer/stats", "/api/sessions", "/x"]
        {
            assert!(!open(Method::GET, path), "{path}");
        }
        assert!(open(Method::POST, "/api/session") && open(Method::HEAD, "/"));
        assert!(!open(Method::POST, "/") && !open(Method::POST, "/assets/page.js"));
    }
}
