//! A reward that is a program of the user's.
//!
//! It gets `{"prompt", "completion", "messages", "data", "context"}` on its standard input. The last line that it
//! prints is the reward: a number, or `{"reward": 0.5}`. What it prints before is nobody's business.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Judged, Reward, RewardError, reply};
use crate::command::{Program, ProgramError};

#[derive(Clone, Debug)]
pub struct CommandReward {
    name: String,
    program: Program,
}

impl CommandReward {
    /// `name` is what errors call it.
    pub fn new(name: &str, program: Program) -> Self {
        Self { name: name.to_owned(), program }
    }

    async fn ask(&self, judged: Judged<'_>) -> Result<f64, RewardError> {
        let by = || self.name.clone();
        let output = self.program.run(&reply::question(&judged)).await.map_err(|error| match error {
            ProgramError::Timeout { secs } => RewardError::Timeout { by: by(), secs },
            error => RewardError::Failed { by: by(), message: error.to_string() },
        })?;
        reply::reward(&self.name, output.trim_end().lines().next_back().unwrap_or_default())
    }
}

impl Reward for CommandReward {
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        self.ask(judged).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Data;
    use crate::reward::tests::score;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn run(line: &str, timeout: Duration) -> Result<f64, String> {
        let reward = CommandReward::new("grader", Program::shell(line).with_timeout(timeout));
        let data = Data::parse(r#"{"answer": 7}"#).unwrap();
        score(&reward, &data, "seven").map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_line_is_the_reward_and_a_failure_says_why() {
        for (line, expect) in [
            ("echo thinking; echo 0.5", Ok(0.5)),
            ("echo '{\"reward\": 1}'", Ok(1.0)),
            ("grep -q '\"completion\":\"seven\"' && echo 1", Ok(1.0)),
            (
                "grep -q '\"data\":{\"answer\": 7},\"context\":{\"run\":\"r\",\"task_id\":7' && echo 1",
                Ok(1.0),
            ),
            ("exec <&-; echo 1", Ok(1.0)),
            ("sleep 600 & echo 1", Ok(1.0)),
            ("yes | head -c 3000000; echo; echo 2", Ok(2.0)),
            ("echo no", Err("grader returned no, but must return a number")),
            ("true", Err("grader returned nothing")),
            ("echo boom >&2; exit 3", Err("grader failed: it ended with exit status: 3: boom")),
            ("kill -9 $$", Err("it ended with signal: 9")),
        ] {
            match (run(line, Duration::from_secs(60)), expect) {
                (Ok(reward), Ok(expect)) => assert_eq!(reward, expect, "{line}"),
                (Err(error), Err(expect)) => assert!(error.contains(expect), "{line}: {error}"),
                (found, expect) => panic!("{line}: {found:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let reward = CommandReward::new("grader", Program::new(vec!["/no/such/grader".into()]));
        let error = score(&reward, &Data::parse("{}").unwrap(), "").unwrap_err().to_string();
        assert!(error.starts_with("grader failed: it cannot be started (No such file"), "{error}");
        assert!(error.ends_with(": /no/such/grader"), "{error}");
    }

    fn is_gone(pid: &str) -> bool {
        // A process that has ended and was not yet waited for counts as gone.
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    }

    #[test]
    fn a_program_out_of_time_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let line = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
        assert_eq!(run(&line, Duration::from_secs(3)), Err("grader did not answer within 3 s".to_owned()));
        let pid = std::fs::read_to_string(&pid_file).unwrap().trim().to_owned();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_gone(&pid) {
            assert!(Instant::now() < deadline, "process {pid} is still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn no_more_programs_run_at_once_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        // Each takes the only lock there is, and fails where another has it.
        let line = format!("mkdir {0}/lock && rmdir {0}/lock && echo 1", folder.path().display());
        let program = Program::shell(&line).with_concurrency(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let all = futures_util::future::join_all((0..8).map(|_| program.run(b"")));
        assert!(runtime.block_on(all).into_iter().all(|output| output.as_deref() == Ok("1\n")));
    }
}
