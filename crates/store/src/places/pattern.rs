//! Globs over paths and keys, and which names can hold rollouts.
//!
//! A glob is cut into the folder that has no wildcard in it, which is listed, and the pattern that the rest of each
//! name has to match. `*` and `?` stay within one folder, `**` does not.

use super::error::PlaceError;
use globset::{GlobBuilder, GlobMatcher};

/// Files with other endings are not looked at unless they are named.
const ENDINGS: [&str; 4] = [".jsonl", ".ndjson", ".json", ".parquet"];

/// Whether a file of a folder is taken along.
pub(super) fn can_hold_rollouts(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !name.starts_with('.') && ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// What is being written, or was never meant to be seen.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name.ends_with(".tmp")
}

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The part before the first wildcard, up to and with its last slash.
    pub(super) base: String,
    /// How many levels below the base can match. Nothing if any can.
    pub(super) levels: Option<usize>,
    rest: GlobMatcher,
}

impl Pattern {
    /// Nothing if there is no wildcard in it.
    pub(super) fn parse(path: &str, place: &str) -> Result<Option<Self>, PlaceError> {
        let Some(wildcard) = path.find(['*', '?', '[', '{']) else { return Ok(None) };
        let cut = path.get(..wildcard).and_then(|head| head.rfind('/')).map_or(0, |slash| slash + 1);
        let (base, rest) = path.split_at_checked(cut).unwrap_or(("", path));
        let glob = GlobBuilder::new(rest).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| {
            PlaceError::not_a_place(format!("the glob cannot be read ({})", error.kind()), place)
        })?;
        let levels =
            if rest.contains("**") || rest.contains('{') { None } else { Some(rest.split('/').count()) };
        Ok(Some(Self { base: base.to_owned(), levels, rest: glob.compile_matcher() }))
    }

    /// Whether the name of a file, from the base on, is meant.
    pub(super) fn matches(&self, below_base: &str) -> bool {
        self.rest.is_match(below_base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_matches_what_a_shell_would() {
        let cases = [
            ("runs/*/step_*.jsonl", "runs/", "a/step_1.jsonl", true),
            ("runs/*/step_*.jsonl", "runs/", "a/b/step_1.jsonl", false),
            ("runs/**/step_*.jsonl", "runs/", "a/b/step_1.jsonl", true),
            ("runs/**/step_*.jsonl", "runs/", "step_1.jsonl", true),
            ("runs/**", "runs/", "a/b/c", true),
            ("*.jsonl", "", "a.jsonl", true),
            ("*.jsonl", "", "a/b.jsonl", false),
            ("/a/step_?.jsonl", "/a/", "step_1.jsonl", true),
            ("/a/step_?.jsonl", "/a/", "step_10.jsonl", false),
            ("/a/step_[0-3].jsonl", "/a/", "step_3.jsonl", true),
            ("/a/step_[0-3].jsonl", "/a/", "step_4.jsonl", false),
            ("/a/{x,y/z}.jsonl", "/a/", "y/z.jsonl", true),
        ];
        for (glob, base, name, meant) in cases {
            let pattern = Pattern::parse(glob, glob).unwrap().unwrap();
            assert_eq!((pattern.base.as_str(), pattern.matches(name)), (base, meant), "{glob} {name}");
        }
        assert!(Pattern::parse("/a/b.jsonl", "").unwrap().is_none());
        let error = Pattern::parse("/a/[b", "/a/[b").unwrap_err();
        assert!(error.to_string().starts_with("the glob cannot be read"), "{error}");
    }

    #[test]
    fn only_names_that_can_hold_rollouts_are_taken_from_a_folder() {
        for name in ["a.jsonl", "b.ndjson", "c.json", "d.parquet", "E.JSONL"] {
            assert!(can_hold_rollouts(name), "{name}");
        }
        for name in ["a.txt", ".a.jsonl", "a.jsonl.tmp", "jsonl", "a.jsonl.gz"] {
            assert!(!can_hold_rollouts(name), "{name}");
        }
    }
}
