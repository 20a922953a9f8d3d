//! What a request names, as a place that this server may show.
//!
//! Folders and buckets are those named at start. `yard://RUN` is the archive of one of the server's own runs.

use axum::http::StatusCode;
use rollyard_core::ids::RunName;
use rollyard_store::places::{Places, Roots};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ApiError;
use crate::settings::Settings;

/// Everything this server may show, as it was named.
pub(super) fn roots(settings: &Settings) -> Vec<String> {
    let folders = settings.roots.iter().map(|root| root.display().to_string());
    folders.chain(settings.buckets.iter().cloned()).chain(archive_root(settings)).collect()
}

/// Where the runs of this server are archived.
pub(super) fn archive_root(settings: &Settings) -> Option<String> {
    settings.archive_root.clone()
}

pub(super) fn places(settings: &Settings) -> Places {
    Places::new(Roots::Only(roots(settings)))
}

/// The same place for everybody who names it: absolute, and without the words that only this server knows.
pub(super) fn resolve(settings: &Settings, said: &str) -> Result<String, ApiError> {
    let said = said.trim();
    if let Some(run) = said.strip_prefix("yard://") {
        let run = RunName::try_from(run.trim_end_matches('/'))?;
        let Some(root) = archive_root(settings) else {
            let message = format!(
                "run {:?} cannot be viewed, because its rollouts are not archived; start the server with --archive DIR",
                run.as_str()
            );
            return Err(ApiError::new(StatusCode::CONFLICT, "no_archive", message));
        };
        return resolve(settings, &format!("{}/{run}", root.trim_end_matches('/')));
    }
    if said.is_empty() || said.contains("://") || said.contains('\0') {
        return Ok(said.to_owned());
    }
    let absolute = std::path::absolute(said).map(|path| path.display().to_string());
    Ok(absolute.unwrap_or_else(|_| said.to_owned()))
}

/// Names a view by its places, so that the same places are the same view on every day.
pub(super) fn key(places: &[String]) -> String {
    format!("{:016x}", xxh3_64(places.join("\n").as_bytes()))
}

/// Whether a part of a URL can be the key of a view.
pub(crate) fn is_key(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_looked_for_in_the_archive_only() {
        let archived = Settings { archive_root: Some("/arch/".to_owned()), ..Settings::default() };
        assert_eq!(resolve(&archived, "yard://exp-1").unwrap(), "/arch/exp-1");
        for (settings, said, code) in [
            (&Settings::default(), "yard://exp-1", "no_archive"),
            (&archived, "yard://../etc", "bad_run_name"),
            (&archived, "yard://", "bad_run_name"),
        ] {
            assert_eq!(resolve(settings, said).unwrap_err().code, code, "{said}");
        }
    }

    #[test]
    fn a_key_is_the_same_for_the_same_places() {
        let key_of = |places: &[&str]| key(&places.iter().map(|&place| place.to_owned()).collect::<Vec<_>>());
        assert_eq!(key_of(&["/a", "/b"]), key_of(&["/a", "/b"]));
        assert_ne!(key_of(&["/a", "/b"]), key_of(&["/a/b"]));
        assert!(is_key(&key_of(&["/a"])));
        assert!(!is_key("browse") && !is_key("0123456789ABCDEF"));
    }
}
