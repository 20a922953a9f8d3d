//! What streams, subjects and buckets are called.

use rollyard_core::ids::RunName;
use xxhash_rust::xxh3::xxh3_64;

use super::super::contract::SegmentNo;

/// The names of one run's stream.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) run: RunName,
    pub(super) stream: String,
    /// The bucket of its large payloads and snapshots.
    pub(super) bucket: String,
    subject: String,
}

/// What the names of all streams of a yard begin with.
pub(super) fn stream_prefix(yard: &str) -> String {
    format!("ry_{yard}_")
}

impl Names {
    pub(super) fn new(yard: &str, run: &RunName) -> Self {
        let token = token(run.as_str());
        let stream = format!("{}{token}", stream_prefix(yard));
        Self { run: run.clone(), bucket: stream.clone(), stream, subject: format!("ry.{yard}.{token}") }
    }

    pub(super) fn history(&self) -> String {
        format!("{}.h", self.subject)
    }

    pub(super) fn claims(&self) -> String {
        format!("{}.c", self.subject)
    }

    pub(super) fn payloads(&self, segment: SegmentNo) -> String {
        format!("{}.p.{}", self.subject, segment.0)
    }

    pub(super) fn all_payloads(&self) -> String {
        format!("{}.p.*", self.subject)
    }

    /// The segment that a subject holds payloads of.
    pub(super) fn segment(&self, subject: &str) -> Option<SegmentNo> {
        let number = subject.strip_prefix(&self.subject)?.strip_prefix(".p.")?;
        number.parse().ok().map(SegmentNo)
    }

    pub(super) fn subjects(&self) -> Vec<String> {
        vec![self.history(), self.claims(), self.all_payloads()]
    }
}

/// A run's name without dots, which mean something in names of subjects and are not allowed in those of streams.
fn token(run: &str) -> String {
    if !run.contains('.') {
        return run.to_owned();
    }
    // What stands in its stead may be a name too: the hash tells them apart.
    format!("{}-{:08x}", run.replace('.', "_"), xxh3_64(run.as_bytes()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(run: &str) -> Names {
        Names::new("rollyard", &RunName::try_from(run).unwrap())
    }

    #[test]
    fn runs_with_dots_have_streams_of_their_own() {
        let plain = names("qwen3_8b");
        assert_eq!(plain.stream, "ry_rollyard_qwen3_8b");
        assert_eq!(plain.history(), "ry.rollyard.qwen3_8b.h");
        let dotted = names("qwen3.8b");
        assert!(dotted.stream.starts_with("ry_rollyard_qwen3_8b-") && !dotted.stream.contains('.'));
    }

    #[test]
    fn a_segment_is_known_by_its_subject() {
        let names = names("default");
        assert_eq!(names.segment(&names.payloads(SegmentNo(17))), Some(SegmentNo(17)));
        assert_eq!(names.segment(&names.history()), None);
        assert_eq!(names.segment("ry.rollyard.default.p.x"), None);
    }
}
