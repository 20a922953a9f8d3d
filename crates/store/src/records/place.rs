//! What a file's name says about the rows in it.
//!
//! verl writes `<step>.jsonl`, slime `rollouts_<n>.json` and `eval_<n>.json`, and a dump lies in a folder that is
//! named by the version: `…/[rollout|eval-rollout]/<version>/<task>.jsonl`.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    in_name: Option<i64>,
    in_folder: Option<i64>,
    pub is_eval: bool,
}

impl Place {
    pub fn of(url: &str) -> Self {
        let mut parts = url.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        let folder = parts.next().unwrap_or_default();
        let above = parts.next().unwrap_or_default();
        let digits = stem.len() - stem.bytes().rev().take_while(u8::is_ascii_digit).count();
        Self {
            in_name: stem.get(digits..).and_then(|digits| digits.parse().ok()),
            in_folder: folder.parse().ok(),
            is_eval: above == "eval-rollout" || stem.starts_with("eval_"),
        }
    }

    /// For rows that do not say their own step.
    pub fn step(&self, is_dump: bool) -> Option<i64> {
        if is_dump { self.in_folder } else { self.in_name }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn the_name_of_a_file_tells_the_step() {
        for (url, step, dump_step, is_eval) in [
            ("/a/120.jsonl", Some(120), None, false),
            ("s3://b/slime/rollouts_7.json", Some(7), None, false),
            ("/a/eval_7.json", Some(7), None, true),
            ("/x/trial/eval-rollout/12/99.jsonl", Some(99), Some(12), true),
            ("train.jsonl", None, None, false),
            ("", None, None, false),
        ] {
            let place = Place::of(url);
            assert_eq!(
                (place.step(false), place.step(true), place.is_eval),
                (step, dump_step, is_eval),
                "{url}"
            );
        }
    }
}
