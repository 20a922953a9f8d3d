//! A program that is not ours, and ends when we do.
//!
//! A test may be killed at any moment, and then nobody is left to stop what it started. So a shell stands between:
//! it holds one end of a pipe, and kills the program when the other end closes, by whatever cause.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const STOPPED_WITHIN: Duration = Duration::from_secs(5);

/// `$0` is the log, the rest is the command. The trap lets an interrupt from the terminal end the wait, too.
/// The shell has not waited for the program until then, so its number is not given to another.
const GUARD: &str = r#"
trap : INT TERM HUP
"$@" </dev/null >>"$0" 2>&1 &
echo $!
exec 2>/dev/null
read -r signal
kill -s "${signal:-KILL}" $!
wait $!
"#;

#[derive(Debug)]
pub(crate) struct Process {
    guard: Child,
    pipe: Option<ChildStdin>,
    pid: Pid,
}

impl Process {
    /// Runs a command, whose output is added to a file.
    pub(crate) fn start(program: &Path, arguments: &[&OsStr], log: &Path) -> Self {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD])
            .arg(log)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be run");
        let mut line = String::new();
        let stdout = guard.stdout.take().expect("it was asked for");
        BufReader::new(stdout).read_line(&mut line).expect("the shell tells a number");
        let pid = line.trim_end().parse().ok().and_then(Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("cannot run {}: {line:?}", program.display()));
        let pipe = guard.stdin.take();
        Self { guard, pipe, pid }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.pipe.is_some()
    }

    /// Ends it without notice, as a power cut would.
    pub(crate) fn kill(&mut self) {
        drop(self.pipe.take());
        let _ = self.guard.wait();
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            self.signal(Signal::CONT);
            let _ = pipe.write_all(b"TERM\n");
        }
        let _ = self.guard.wait();
    }

    /// Returns when every thread of it stands still: the signal is only on its way when it was sent.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let deadline = Instant::now() + STOPPED_WITHIN;
        while !self.stands_still() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// True too where the system does not say.
    fn stands_still(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else { return true };
        let states = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("stat")));
        // `7 (name) T …`, and a name may hold anything.
        states.flatten().all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
