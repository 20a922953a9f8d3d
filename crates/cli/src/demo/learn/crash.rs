//! The crash in the middle of `--crash`: the first half as a process group of its own, which is killed with -9.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Arguments, Folder, tell};

/// Ends with the group, whatever becomes of us.
struct Group(Child);

impl Group {
    fn kill(&mut self, signal: Signal) {
        // It may have ended by itself.
        let _gone = kill_process_group(Pid::from_child(&self.0), signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill(Signal::KILL);
        let _reaped = self.0.wait();
    }
}

/// Runs the demo as a child until half of its steps are done, and kills it where it stands.
pub(super) fn half_way(arguments: &Arguments, folder: &Folder) -> Result<()> {
    let goal = arguments.steps / 2;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["demo", "--ends-with-parent", "--out"])
        .arg(folder.path())
        .args(arguments.flags())
        .args(["--listen", &arguments.listen.to_string()])
        .stdin(Stdio::null())
        // One group, so that whatever it starts is killed with it.
        .process_group(0);
    let mut group = Group(command.spawn().context("cannot start the first half")?);
    loop {
        let done = folder.curve()?.last().map_or(0, |report| report.step);
        if done >= goal.max(1) {
            break;
        }
        if let Some(status) = group.0.try_wait()? {
            bail!("the first half ended by itself before it could be killed ({status})");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    group.kill(Signal::KILL);
    drop(group);
    let done = folder.curve()?.last().map_or(0, |report| report.step);
    tell(&format!("\nkill -9 of the whole process group, after step {done}; starting again\n"))
}
