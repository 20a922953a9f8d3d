//! Which run a request is about, by its method and path.

use axum::http::Method;

use crate::runs::DEFAULT_RUN;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// Every node answers it by itself.
    Local,
    Run(&'a str),
    /// It makes the run, if there is none.
    Make(&'a str),
    /// The body says which run it makes, in this field; the default run if it does not.
    MakeIn(&'static str),
    /// What all nodes have to say.
    Gather,
}

impl<'a> Route<'a> {
    pub(crate) fn of(method: &Method, path: &'a str) -> Self {
        let mut parts = path.split('/').skip(1);
        match [parts.next(), parts.next(), parts.next(), parts.next()] {
            [Some("buffer"), Some(_), None, _] | [Some("get_rollout_data"), None, ..] => {
                Self::Run(DEFAULT_RUN)
            }
            [Some("start_rollout"), None, ..] => Self::MakeIn("run"),
            [Some("runs"), Some(run), Some("start_rollout"), None] => Self::Make(run),
            [Some("runs"), Some(run), Some(_), _] => Self::Run(run),
            [Some("api"), Some("runs"), None, _] if method == Method::POST => Self::MakeIn("name"),
            [Some("api"), Some("runs" | "live"), None, _] if method == Method::GET => Self::Gather,
            [Some("api"), Some("runs"), Some(run), _] => Self::Run(run),
            _ => Self::Local,
        }
    }
}

/// How a request brings rollouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    One,
    /// One a line.
    Lines,
}

impl Writes {
    /// `None` if it writes none. Those that were written before are told from the others.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        match [parts.next(), parts.next(), parts.next(), parts.next()] {
            _ if method != Method::POST => None,
            [Some("write"), Some("buffer"), ..] => Some(Self::One),
            [Some("rollouts"), Some(_run), Some("runs"), Some("api")] => Some(Self::Lines),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_run_it_is_about() {
        for (method, path, expected) in [
            ("POST", "/buffer/write", Route::Run("default")),
            ("GET", "/buffer/stats", Route::Run("default")),
            ("POST", "/get_rollout_data", Route::Run("default")),
            ("POST", "/start_rollout", Route::MakeIn("run")),
            ("POST", "/runs/a/buffer/write", Route::Run("a")),
            ("POST", "/runs/a/get_rollout_data", Route::Run("a")),
            ("POST", "/runs/a/start_rollout", Route::Make("a")),
            ("POST", "/api/runs", Route::MakeIn("name")),
            ("GET", "/api/runs", Route::Gather),
            ("GET", "/api/live", Route::Gather),
            ("GET", "/api/runs/a", Route::Run("a")),
            ("POST", "/api/runs/a/leases/7/ack", Route::Run("a")),
            ("GET", "/api/nodes", Route::Local),
            ("GET", "/api/sessions/runs", Route::Local),
            ("GET", "/live", Route::Local),
            ("GET", "/metrics", Route::Local),
            ("POST", "/v1/chat/completions", Route::Local),
            ("GET", "/", Route::Local),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(Route::of(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_path_says_how_it_takes_rollouts() {
        for (path, expected) in [
            ("/buffer/write", Some(Writes::One)),
            ("/runs/a/buffer/write", Some(Writes::One)),
            ("/api/runs/a/rollouts", Some(Writes::Lines)),
            ("/get_rollout_data", None),
            ("/api/runs/a/rollouts/u1/drop", None),
            ("/api/runs/rollouts", None),
            ("/api/runs/a/lease", None),
        ] {
            assert_eq!(Writes::of(&Method::POST, path), expected, "{path}");
            assert_eq!(Writes::of(&Method::GET, path), None, "{path}");
        }
    }
}
