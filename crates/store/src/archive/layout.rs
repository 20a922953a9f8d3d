//! Where in an archive a file lies, and what it is called.
//!
//! JSONL lies by run and day, for people and their viewers; Parquet in partitions that engines know:
//!
//! ```text
//! ROOT/RUN/2026-01-16/WORKER-TAG-000000000042.jsonl       ROOT/rollouts/run=RUN/date=2026-01-16/WORKER-TAG-….parquet
//! ROOT/RUN/fates/2026-01-16/WORKER-TAG-000000000044.jsonl  ROOT/fates/run=RUN/date=2026-01-16/WORKER-TAG-….parquet
//! ```
//!
//! The number is that of the first record of the run's log that is told of in the file, and the day is the one it was
//! admitted on. Both follow from the log, so a file that is written again after a crash has the name it had. The tag is
//! drawn when an archive begins: a run of the same name in another data folder does not touch its files.

use rollyard_core::ids::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Jsonl,
    Parquet,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Rollouts,
    Fates,
}

impl Stream {
    pub(super) const ALL: [Self; 2] = [Self::Rollouts, Self::Fates];
}

/// Days since 1970, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day(u64);

impl Day {
    pub(super) fn of(time: Time) -> Self {
        Self(time.0 / 86_400_000)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }

    fn date(self) -> String {
        let iso = super::line::iso(Time(self.0.saturating_mul(86_400_000)));
        iso.split_once('T').map_or_else(|| iso.clone(), |(date, _)| date.to_owned())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) root: String,
    pub(super) run: String,
    pub(super) worker: String,
    /// Of the cursor.
    pub(super) tag: String,
}

/// Which file: of what, of which day, beginning where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) stream: Stream,
    pub(super) day: Day,
    pub(super) first_seq: u64,
}

impl Layout {
    pub(super) fn url(&self, format: Format, part: Part) -> String {
        let Self { root, run, .. } = self;
        let (date, name) =
            (part.day.date(), format!("{}-{}-{:012}", in_name(&self.worker), self.tag, part.first_seq));
        match (format, part.stream) {
            (Format::Jsonl, Stream::Rollouts) => format!("{root}/{run}/{date}/{name}.jsonl"),
            (Format::Jsonl, Stream::Fates) => format!("{root}/{run}/fates/{date}/{name}.jsonl"),
            (Format::Parquet, Stream::Rollouts) => {
                format!("{root}/rollouts/run={run}/date={date}/{name}.parquet")
            }
            (Format::Parquet, Stream::Fates) => format!("{root}/fates/run={run}/date={date}/{name}.parquet"),
        }
    }
}

/// A worker's name may come from anywhere; a file's must not lead elsewhere.
fn in_name(worker: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = worker.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect();
    // A name that begins with a dot or an underscore is hidden from Spark and from `ls`.
    let name = name.trim_start_matches(['.', '_']);
    if name.is_empty() { "worker".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_by_run_and_day() {
        let layout = Layout {
            root: "s3://b/p".into(),
            run: "grpo".into(),
            worker: "../gpu 1".into(),
            tag: "7f".into(),
        };
        let day = Day::of(Time(1_768_563_190_744));
        let url = |format, stream| layout.url(format, Part { stream, day, first_seq: 42 });
        for (format, stream, expected) in [
            (Format::Jsonl, Stream::Rollouts, "s3://b/p/grpo/2026-01-16/gpu_1-7f-000000000042.jsonl"),
            (Format::Jsonl, Stream::Fates, "s3://b/p/grpo/fates/2026-01-16/gpu_1-7f-000000000042.jsonl"),
            (
                Format::Parquet,
                Stream::Rollouts,
                "s3://b/p/rollouts/run=grpo/date=2026-01-16/gpu_1-7f-000000000042.parquet",
            ),
            (
                Format::Parquet,
                Stream::Fates,
                "s3://b/p/fates/run=grpo/date=2026-01-16/gpu_1-7f-000000000042.parquet",
            ),
        ] {
            assert_eq!(url(format, stream), expected);
        }
    }
}
