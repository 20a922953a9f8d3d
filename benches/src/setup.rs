//! What every section needs to know: where the contestants are, where the disk is, how long to measure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::items::Sequence;
use crate::load::{self, Outcome, Plan, Shape, Until};
use crate::server::{Recipe, Server};

#[derive(Debug, Clone, Args)]
pub(crate) struct Setup {
    /// The release binary under test.
    #[arg(long, global = true, value_name = "PATH", default_value = "target/release/rollyard")]
    rollyard: PathBuf,
    /// A further flag for `rollyard serve`; may be repeated.
    #[arg(long, global = true, value_name = "FLAG", allow_hyphen_values = true)]
    serve_flag: Vec<String>,
    /// A Python that has `benches/baselines/requirements.txt` installed.
    #[arg(long, global = true, value_name = "PATH", default_value = ".venv/bin/python")]
    python: PathBuf,
    /// Where data is written; must be on the disk that is to be measured.
    #[arg(long, global = true, value_name = "DIR", default_value = "target/bench")]
    pub(crate) dir: PathBuf,
    /// Rounds per contestant; they take turns, and the median counts.
    #[arg(long, global = true, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Length of a round.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// Connections that write in every throughput measurement.
pub(crate) const CONNECTIONS: usize = 16;

impl Setup {
    pub(crate) fn round(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The same for one round of a second.
    pub(crate) fn quick(&self) -> Self {
        Self { rounds: 1, seconds: 1, ..self.clone() }
    }

    pub(crate) fn start_rollyard(&self) -> Result<Server> {
        self.start_rollyard_with(&[])
    }

    /// With further flags, beside those of every section.
    pub(crate) fn start_rollyard_with(&self, flags: &[String]) -> Result<Server> {
        ensure!(
            self.rollyard.is_file(),
            "build it with `cargo build --release` or name it with --rollyard: {}",
            self.rollyard.display()
        );
        let program = self.rollyard.canonicalize()?;
        let after = [&self.serve_flag, flags].concat();
        Server::start(&Recipe { program, before: vec!["serve".to_owned()], after }, &self.dir)
    }

    /// Python with the packages of the baselines.
    pub(crate) fn python(&self) -> Result<Command> {
        ensure!(
            self.python.exists(),
            "make it with `python3 -m venv .venv && .venv/bin/pip install -r benches/baselines/requirements.txt` \
             or name it with --python: {}",
            self.python.display()
        );
        Ok(Command::new(&self.python))
    }

    pub(crate) fn start_fastapi(&self, flags: &[&str]) -> Result<Server> {
        self.start_script("fastapi_buffer.py", flags)
    }

    /// A pass-through to an engine.
    pub(crate) fn start_proxy(&self, engine: &str) -> Result<Server> {
        self.start_script("fastapi_proxy.py", &["--engine", engine])
    }

    fn start_script(&self, name: &str, flags: &[&str]) -> Result<Server> {
        let script = repository().join("benches/baselines").join(name).display().to_string();
        let after = flags.iter().map(|&flag| flag.to_owned()).collect();
        Server::start(
            &Recipe { program: self.python()?.get_program().into(), before: vec![script], after },
            &self.dir,
        )
    }

    /// One round of writes, told on stderr as it is: the table only has medians.
    pub(crate) fn write_round(
        &self,
        name: &str,
        server: &Server,
        sequence: &mut Sequence,
        shape: Shape,
    ) -> Result<Outcome> {
        let server_cpu_before = server.cpu()?;
        let plan = Plan { connections: CONNECTIONS, shape, until: Until::Elapsed(self.round()) };
        let outcome = load::run(server.address(), sequence, plan, |_| ())?;
        let share = |cpu: Duration| 100.0 * cpu.as_secs_f64() / outcome.elapsed.as_secs_f64();
        eprintln!(
            "  {name}: {:.0} items/s, p50 {:.2?}, p99 {:.2?}, max {:.2?}, cpu client {:.0}% server {:.0}%",
            outcome.items_per_sec(),
            outcome.latency(0.5),
            outcome.latency(0.99),
            outcome.latency_max(),
            share(outcome.client_cpu),
            share(server.cpu()? - server_cpu_before),
        );
        Ok(outcome)
    }
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}
