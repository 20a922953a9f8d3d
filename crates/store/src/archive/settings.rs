//! What an archive is told: where to, in which formats, how large its files grow.

use std::path::Path;
use std::time::Duration;

use super::layout::Format;

#[derive(Clone, Debug, PartialEq)]
pub struct ArchiveSettings {
    /// A folder, or `s3://bucket/prefix` and its like.
    pub place: String,
    pub formats: Vec<Format>,
    /// Keep token ids, log-probabilities and what else there is one of for each token.
    pub with_tokens: bool,
    /// When a file is large enough; 256 MB for JSONL on a disk and 64 MB for objects if left out.
    pub roll_bytes: Option<u64>,
    /// When a file is old enough; an hour for JSONL on a disk and five minutes for objects if left out.
    pub roll_after: Option<Duration>,
    /// Part of the files' names: two servers that archive to one place must have different ones.
    pub worker: String,
}

/// When a file is finished and the next one begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) after: Duration,
}

impl ArchiveSettings {
    pub fn new(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            formats: vec![Format::Jsonl],
            with_tokens: false,
            roll_bytes: None,
            roll_after: None,
            worker: host_name(),
        }
    }

    /// Without a scheme, or with that of files.
    pub(super) fn is_local(&self) -> bool {
        !self.place.contains("://") || self.place.starts_with("file://")
    }

    /// The place without a slash at its end; a path is made absolute, because folders may be changed.
    pub(super) fn root(&self) -> String {
        let place = self.place.strip_prefix("file://").unwrap_or(&self.place);
        if !self.is_local() {
            return place.trim_end_matches('/').to_owned();
        }
        let path = std::path::absolute(Path::new(place)).map(|path| path.display().to_string());
        let path = path.unwrap_or_else(|_| place.to_owned());
        if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path }
    }

    /// Whether files of this format grow in place, line by line.
    pub(super) fn grows(&self, format: Format) -> bool {
        format == Format::Jsonl && self.is_local()
    }

    pub(super) fn limits(&self, format: Format) -> Limits {
        let (bytes, secs) = if self.grows(format) { (256 << 20, 3600) } else { (64 << 20, 300) };
        Limits {
            bytes: self.roll_bytes.unwrap_or(bytes).max(1),
            after: self.roll_after.unwrap_or(Duration::from_secs(secs)),
        }
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
