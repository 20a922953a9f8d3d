//! Signing in: a browser gives the token once, and has a cookie from then on.
//!
//! A page cannot put a header on what the browser asks for by itself: events, downloads, links. So it trades the token
//! for a session. Its key is drawn at random and tells nothing of the token; scripts cannot read the cookie, and no
//! other site can have it sent. Sessions are kept in memory only: a restart signs everybody out, and so does a week.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt, Limited};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::error::{ApiError, ErrorAnswer};
use crate::guard::Guard;

const LASTS: Duration = Duration::from_secs(7 * 24 * 3600);

/// Beyond that the oldest is signed out.
const SESSIONS_MAX: usize = 1000;

/// Whoever asks here may be anybody, so little is read.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The same for every wrong token, so that trying many takes long and the time tells nothing.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(500);

pub(crate) fn routes(guard: Arc<Guard>) -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, sign_in, sign_out)).layer(Extension(guard))
}

/// Who is signed in.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// Has our port in it: cookies are shared by all servers of a host, and two must not sign each other out.
    cookie: String,
    /// When each was begun, by key.
    begun: Mutex<HashMap<String, Instant>>,
}

impl Sessions {
    pub(crate) fn new(port: u16) -> Self {
        Self { cookie: format!("rollyard_session_{port}"), begun: Mutex::default() }
    }

    /// Whether the request has the cookie of a session.
    pub(crate) fn knows(&self, headers: &HeaderMap) -> bool {
        let begun = self.lock();
        self.keys(headers).any(|key| begun.get(key).is_some_and(|begun| begun.elapsed() < LASTS))
    }

    /// A new session; its key goes into the cookie.
    fn begin(&self) -> Result<String, ApiError> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| {
            let message = format!("no session can be begun, the system gives no random numbers: {error}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_random", message)
        })?;
        let key = URL_SAFE_NO_PAD.encode(random);
        let mut begun = self.lock();
        begun.retain(|_, begun| begun.elapsed() < LASTS);
        if begun.len() >= SESSIONS_MAX {
            let oldest = begun.iter().min_by_key(|(_, begun)| **begun).map(|(key, _)| key.clone());
            oldest.and_then(|key| begun.remove(&key));
        }
        begun.insert(key.clone(), Instant::now());
        Ok(key)
    }

    fn end(&self, headers: &HeaderMap) {
        let mut begun = self.lock();
        for key in self.keys(headers) {
            begun.remove(key);
        }
    }

    fn keys<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.cookie).map(|(_, key)| key)
    }

    /// The header that sets the cookie; an empty key takes it away.
    fn cookie(&self, key: &str, asked: &HeaderMap) -> Result<HeaderValue, ApiError> {
        let secs = if key.is_empty() { 0 } else { LASTS.as_secs() };
        // We speak plain HTTP ourselves; a proxy that took the request by HTTPS says so.
        let by_https = asked.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
        let secure = if by_https { "; Secure" } else { "" };
        let text =
            format!("{}={key}; Path=/; Max-Age={secs}; HttpOnly; SameSite=Strict{secure}", self.cookie);
        text.parse().map_err(|_| ApiError::bad("bad_cookie", "the cookie cannot be written"))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this server has to be given a token, and whether whoever asks has.
#[derive(Serialize, ToSchema)]
struct SessionAnswer {
    needs_token: bool,
    signed_in: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// Whether a token is needed, and whether the request has what is needed. Anybody may ask.
#[utoipa::path(get, path = "/session", tag = "session", responses((status = 200, body = SessionAnswer)))]
async fn show(Extension(guard): Extension<Arc<Guard>>, headers: HeaderMap) -> Json<SessionAnswer> {
    Json(SessionAnswer { needs_token: guard.needs_token(), signed_in: guard.admits(&headers) })
}

/// Trade the token for a cookie.
#[utoipa::path(post, path = "/session", tag = "session", request_body = SignIn,
    responses((status = 200, body = SessionAnswer), (status = 400, body = ErrorAnswer), (status = 401, body = ErrorAnswer)))]
async fn sign_in(Extension(guard): Extension<Arc<Guard>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let read = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let read = read.map_err(|error| {
        ApiError::bad("unreadable_body", format!("the body cannot be read: {error}; send {{\"token\": …}}"))
    })?;
    let given: SignIn = serde_json::from_slice(&read.to_bytes()).map_err(|error| {
        ApiError::bad("wrong_field", format!("the body does not fit: {error}; send {{\"token\": …}}"))
    })?;
    if !guard.is_token(&given.token) {
        tokio::time::sleep(WRONG_TOKEN_PAUSE).await;
        let message = "this is not the token of this server; it is what `rollyard serve` was given as --token or \
                       ROLLYARD_TOKEN";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "wrong_token", message));
    }
    let mut response =
        Json(SessionAnswer { needs_token: guard.needs_token(), signed_in: true }).into_response();
    // Where no token is needed there is nothing to remember.
    if guard.needs_token() {
        let key = guard.sessions.begin()?;
        response.headers_mut().insert(header::SET_COOKIE, guard.sessions.cookie(&key, &parts.headers)?);
    }
    Ok(response)
}

/// End the session.
#[utoipa::path(delete, path = "/session", tag = "session", responses((status = 200, body = SessionAnswer)))]
async fn sign_out(Extension(guard): Extension<Arc<Guard>>, headers: HeaderMap) -> Result<Response, ApiError> {
    guard.sessions.end(&headers);
    let answer = SessionAnswer { needs_token: guard.needs_token(), signed_in: guard.admits(&headers) };
    let mut response = Json(answer).into_response();
    response.headers_mut().insert(header::SET_COOKIE, guard.sessions.cookie("", &headers)?);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cookie(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, value.parse().unwrap())])
    }

    #[test]
    fn a_session_is_known_by_its_cookie_until_it_is_ended() {
        let sessions = Sessions::new(8889);
        let key = sessions.begin().unwrap();
        let mine = with_cookie(&format!("theme=dark; rollyard_session_8889={key}"));
        assert!(sessions.knows(&mine));
        for other in [
            "rollyard_session_8889=".to_owned(),
            format!("rollyard_session_8890={key}"),
            format!("rollyard_session_8889={key}x"),
            key.clone(),
        ] {
            assert!(!sessions.knows(&with_cookie(&other)), "{other}");
        }
        sessions.end(&mine);
        assert!(!sessions.knows(&mine));
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let sessions = Sessions::new(1);
        let keys: Vec<String> = (0..=SESSIONS_MAX).map(|_| sessions.begin().unwrap()).collect();
        let known = |key: &String| sessions.knows(&with_cookie(&format!("rollyard_session_1={key}")));
        assert!(!known(&keys[0]) && keys[1..].iter().all(known));
    }

    #[test]
    fn the_cookie_is_for_us_alone() {
        let sessions = Sessions::new(1);
        let plain = sessions.cookie("k", &HeaderMap::new()).unwrap();
        assert_eq!(plain, "rollyard_session_1=k; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict");
        let by_https =
            HeaderMap::from_iter([("x-forwarded-proto".parse().unwrap(), "https".parse().unwrap())]);
        assert!(sessions.cookie("k", &by_https).unwrap().to_str().unwrap().ends_with("; Secure"));
        assert!(sessions.cookie("", &by_https).unwrap().to_str().unwrap().contains("Max-Age=0;"));
    }
}
