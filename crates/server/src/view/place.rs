//! What a request names, as a place that this server may show.
//!
//! Folders and buckets are those named at start. `yard://RUN` is the archive of one of the server's own runs.

use axum::http::StatusCode;
use rollyard_core::ids::RunName;
use rollyard_store::archive::{ArchiveSettings, Format};
use rollyard_store::places::{Places, Roots};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ApiError;
use crate::settings::Settings;

/// What this server may show.
#[derive(Debug)]
pub(super) struct Reach {
    /// Folders and buckets, as they were named.
    pub(super) roots: Vec<String>,
    /// Where the example run is written to when somebody asks for it. It may be shown, but is no root to browse.
    pub(super) example: PathBuf,
    archive: Option<ArchiveSettings>,
}

impl Reach {
    pub(super) fn new(settings: &Settings, archive: Option<ArchiveSettings>, example: &Path) -> Self {
        let folders = settings.roots.iter().map(|root| root.display().to_string());
        let archived = archive.as_ref().map(|archive| archive.place.clone());
        let roots = folders.chain(settings.buckets.iter().cloned()).chain(archived).collect();
        // A server may be told its data folder from where it stands; links have to work from everywhere.
        let example = std::path::absolute(example).unwrap_or_else(|_| example.to_owned());
        Self { roots, example, archive }
    }

    pub(super) fn places(&self) -> Places {
        let example = self.example.display().to_string();
        Places::new(Roots::Only(self.roots.iter().cloned().chain([example]).collect()))
    }

    pub(super) fn has_archive(&self) -> bool {
        self.archive.is_some()
    }

    /// The same place for everybody who names it: absolute, and without the words that only this server knows.
    pub(super) fn resolve(&self, said: &str) -> Result<String, ApiError> {
        let said = said.trim();
        if let Some(run) = said.strip_prefix("yard://") {
            return self.archive_of(&RunName::try_from(run.trim_end_matches('/'))?);
        }
        if said.is_empty() || said.contains("://") || said.contains('\0') {
            return Ok(said.to_owned());
        }
        let absolute = std::path::absolute(said).map(|path| path.display().to_string());
        Ok(absolute.unwrap_or_else(|_| said.to_owned()))
    }

    fn archive_of(&self, run: &RunName) -> Result<String, ApiError> {
        let Some(archive) = &self.archive else {
            let message = format!(
                "run {:?} cannot be viewed, because its rollouts are not archived; start the server with --archive DIR",
                run.as_str()
            );
            return Err(ApiError::new(StatusCode::CONFLICT, "no_archive", message));
        };
        let root = archive.place.trim_end_matches('/');
        // Where there are both, JSONL has the same rollouts sooner.
        if archive.formats.contains(&Format::Jsonl) {
            self.resolve(&format!("{root}/{run}"))
        } else {
            self.resolve(&format!("{root}/rollouts/run={run}"))
        }
    }
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
        let archive = ArchiveSettings::new("/arch/");
        let parquet = ArchiveSettings { formats: vec![Format::Parquet], ..archive.clone() };
        let reach = |archive| Reach::new(&Settings::default(), archive, Path::new("/data/example"));
        let archived = reach(Some(archive));
        assert_eq!(archived.resolve("yard://exp-1").unwrap(), "/arch/exp-1");
        assert_eq!(reach(Some(parquet)).resolve("yard://exp-1").unwrap(), "/arch/rollouts/run=exp-1");
        for (reach, said, code) in [
            (&reach(None), "yard://exp-1", "no_archive"),
            (&archived, "yard://../etc", "bad_run_name"),
            (&archived, "yard://", "bad_run_name"),
        ] {
            assert_eq!(reach.resolve(said).unwrap_err().code, code, "{said}");
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
