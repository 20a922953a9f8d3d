//! The files of the page, and how a browser gets them.
//!
//! `web/` builds to `index.html` and a few files whose names have a hash of their content. Those never change, so a
//! browser may keep them for ever; everything else is asked for again each time, which costs an empty answer as long
//! as nothing is new. The program carries the files, a debug build too; `npm run dev` is for those who change them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_128;

/// Scripts and styles from us alone: what a rollout says is never run, even if it got into the page as more than text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(rust_embed::RustEmbed)]
#[folder = "$ROLLYARD_PAGE"]
#[allow_missing = true]
struct Built;

/// The built page.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// Where the files are, if not in the program.
    folder: Option<PathBuf>,
    /// By name: files are packed once, not for every browser.
    packed: Mutex<HashMap<String, Arc<Packed>>>,
}

#[derive(Debug)]
struct Packed {
    tag: u128,
    bytes: Bytes,
}

impl Bundle {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, packed: Mutex::default() }
    }

    /// The answer for a file; `None` if the page has none of that name.
    pub(crate) async fn answer(self: &Arc<Self>, name: &str, asked: &HeaderMap) -> Option<Response> {
        let (this, name, asked) = (Arc::clone(self), name.to_owned(), asked.clone());
        // Packs a megabyte the first time, and reads the disk where a folder was given.
        tokio::task::spawn_blocking(move || this.make_answer(&name, &asked)).await.ok()?
    }

    fn make_answer(&self, name: &str, asked: &HeaderMap) -> Option<Response> {
        let plain = self.read(name)?;
        let kind = Kind::of(name);
        let tag = xxh3_128(&plain);
        let pack = kind.packs && accepts_gzip(asked);
        let etag = if pack { format!("\"{tag:032x}-gzip\"") } else { format!("\"{tag:032x}\"") };
        let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut known =
            known.flat_map(|value| value.split(',')).map(|one| one.trim().trim_start_matches("W/"));
        let mut response = if known.any(|one| one == etag || one == "*") {
            StatusCode::NOT_MODIFIED.into_response()
        } else if pack {
            let packed = self.pack(name, tag, &plain);
            ([(header::CONTENT_ENCODING, "gzip")], Body::from(packed)).into_response()
        } else {
            Body::from(plain).into_response()
        };
        let headers = response.headers_mut();
        let keep =
            if name.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
        let fixed = [
            (header::CONTENT_TYPE, kind.media),
            (header::CACHE_CONTROL, keep),
            (header::VARY, "accept-encoding"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
        ];
        for (header, value) in fixed {
            headers.insert(header, HeaderValue::from_static(value));
        }
        headers.insert(header::ETAG, etag.parse().ok()?);
        Some(response)
    }

    /// A file as it was built. Reads the disk where a folder was given.
    pub(crate) fn read(&self, name: &str) -> Option<Bytes> {
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return None;
        }
        let Some(folder) = &self.folder else {
            let file = Built::get(name)?;
            return Some(match file.data {
                std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
            });
        };
        // Names come from requests: nothing but what lies below the folder is read.
        let real = folder.join(name).canonicalize().ok()?;
        let inside = folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        if inside { std::fs::read(real).ok().map(Bytes::from) } else { None }
    }

    fn pack(&self, name: &str, tag: u128, plain: &[u8]) -> Bytes {
        let known = self.packed.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(packed) = known.filter(|packed| packed.tag == tag) {
            return packed.bytes.clone();
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::best());
        let written = encoder.write_all(plain).and_then(|()| encoder.finish());
        let bytes = Bytes::from(written.expect("writing to memory does not fail"));
        let packed = Arc::new(Packed { tag, bytes: bytes.clone() });
        self.packed.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), packed);
        bytes
    }
}

/// What a file is, by its name.
struct Kind {
    media: &'static str,
    /// Whether it gets smaller.
    packs: bool,
}

impl Kind {
    fn of(name: &str) -> Self {
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let (media, packs) = match ending {
            "html" => ("text/html; charset=utf-8", true),
            "js" | "mjs" => ("text/javascript; charset=utf-8", true),
            "css" => ("text/css; charset=utf-8", true),
            "json" | "map" => ("application/json", true),
            "webmanifest" => ("application/manifest+json", true),
            "txt" => ("text/plain; charset=utf-8", true),
            "svg" => ("image/svg+xml", true),
            "wasm" => ("application/wasm", true),
            "png" => ("image/png", false),
            "ico" => ("image/x-icon", false),
            "webp" => ("image/webp", false),
            "woff2" => ("font/woff2", false),
            _ => ("application/octet-stream", false),
        };
        Self { media, packs }
    }
}

fn accepts_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name == "*");
        // `gzip;q=0` says that it is not wanted.
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        named && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(headers: &[(&'static str, &str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    fn bundle() -> (tempfile::TempDir, Arc<Bundle>) {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("dist");
        std::fs::create_dir_all(page.join("assets")).unwrap();
        std::fs::write(page.join("index.html"), "<!doctype html>").unwrap();
        std::fs::write(page.join("assets/page-1a2b.js"), "let a = 1;\n".repeat(1000)).unwrap();
        std::fs::write(page.join("assets/font.woff2"), "font").unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        (dir, Arc::new(Bundle::new(Some(page))))
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        for (given, taken) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br, deflate", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&asking(&[("accept-encoding", given)])), taken, "{given:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_file_that_a_browser_has_is_not_sent_again_until_it_changes() {
        let (dir, bundle) = bundle();
        let first = bundle.make_answer("index.html", &HeaderMap::new()).unwrap();
        assert_eq!(first.headers()[header::CACHE_CONTROL], "no-cache");
        let etag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        for known in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}")] {
            let again = bundle.make_answer("index.html", &asking(&[("if-none-match", &known)])).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        std::fs::write(dir.path().join("dist/index.html"), "<!doctype html><p>new").unwrap();
        let changed = bundle.make_answer("index.html", &asking(&[("if-none-match", &etag)])).unwrap();
        assert_eq!(changed.status(), StatusCode::OK);
    }

    #[test]
    fn a_packed_file_is_packed_anew_when_it_changes() {
        let (dir, bundle) = bundle();
        let name = "assets/page-1a2b.js";
        let length = |bundle: &Bundle| {
            let answer = bundle.make_answer(name, &asking(&[("accept-encoding", "gzip")])).unwrap();
            assert_eq!(answer.headers()[header::CONTENT_ENCODING], "gzip");
            http_body::Body::size_hint(answer.body()).exact().unwrap()
        };
        let (first, again) = (length(&bundle), length(&bundle));
        assert!(first == again && first < 500, "{first} {again}");
        std::fs::write(dir.path().join("dist").join(name), "let b = 2; // other").unwrap();
        assert_ne!(length(&bundle), first);
    }

    #[test]
    fn nothing_beside_the_page_is_served() {
        let (_dir, bundle) = bundle();
        for name in [
            "../secret",
            "assets/../../secret",
            "assets/../index.html",
            "/etc/passwd",
            "assets",
            "",
            "none.js",
        ] {
            assert!(bundle.make_answer(name, &HeaderMap::new()).is_none(), "{name:?}");
        }
    }
}
