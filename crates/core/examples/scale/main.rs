//! `scale`: what 10,000 GPUs ask of a yard, reckoned, and then done by the real ledger in virtual time.
//!
//! docs/concepts/scale.md explains the model and what follows from it. A promise that is broken on the way ends the
//! program with a panic; a rate that is not what the arithmetic says is printed as `missed`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench talks: tables on stdout, progress on stderr"
)]

mod simulation;

use rollyard_core::wire::item;
use simulation::fleet::{AGENTS, Fleet, Mishaps, SHAPES, Shape};
use simulation::table::{Row, markdown};
use simulation::{Plan, Progress, payload, simulate};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const HELP: &str = "\
What a fleet of GPUs asks of a yard: by arithmetic, and done by the real ledger in virtual time.

Usage: scale [--gpus N] [--agents N] [--runs N] [--rollouts agents|answers] [--seconds N] [--seed N]

  --gpus N       GPUs that generate and train [10000]
  --agents N     rollouts under way at once [100000]
  --runs N       training runs that share them, each with one owner [32]
  --rollouts R   `agents`: 20 turns with tools; `answers`: one short answer, the most rollouts there can be [agents]
  --seconds N    virtual seconds that count, after a warm-up [600]
  --seed N       what chance is drawn from [1]

Example: cargo run --release -p rollyard-core --example scale -- --gpus 10000 --agents 100000 --runs 32 --seconds 60";

/// Trainers also wait for readers that are replaced and repeat steps that were lost.
const TRAINING_SHARE_MAX: f64 = 0.8;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let plan = match parse(&args) {
        Ok(plan) => plan,
        Err(wrong) => {
            eprintln!("{wrong}; --help shows what there is");
            return ExitCode::from(2);
        }
    };
    let resting = resident_bytes();
    let mut grown = None;
    let outcome = simulate(
        &plan,
        || STARTED.elapsed(),
        |progress| {
            show(progress);
            if progress.second == progress.of {
                grown = resident_bytes().zip(resting).map(|(now, before)| now - before);
            }
        },
    );

    println!("{}\n", outcome.heading());
    println!("{}", markdown(&outcome.rates()));
    println!("{}", markdown(&outcome.mishaps()));
    let mut costs = outcome.costs();
    costs.extend(grown.map(|bytes| {
        let runs = f64::from(plan.fleet.runs);
        Row::value("memory of a run in the end, the witness included", bytes / 1e6 / runs, "MB")
    }));
    costs.push(Row::value(
        "JSON of a rollout checked and hashed, by one core",
        check_speed(&plan.fleet.shape),
        "MB/s",
    ));
    println!("{}", markdown(&costs));
    println!("Seed {}, history {:016x}: the same seed gives the same.", plan.seed, outcome.history_digest);
    ExitCode::SUCCESS
}

fn parse(args: &[String]) -> Result<Plan, String> {
    let fleet = Fleet { gpus: 10_000, agents: 100_000, runs: 32, shape: AGENTS, mishaps: Mishaps::MANY };
    let mut plan = Plan { fleet, seconds: 600, seed: 1 };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} {value:?} is not a whole number"));
        let count = || match number().map(u32::try_from)? {
            Ok(count @ 1..) => Ok(count),
            _ => Err(format!("{name} {value} must be from 1 to {}", u32::MAX)),
        };
        match name.as_str() {
            "--gpus" => plan.fleet.gpus = count()?,
            "--agents" => plan.fleet.agents = count()?,
            "--runs" => plan.fleet.runs = count()?,
            "--seconds" => plan.seconds = u64::from(count()?),
            "--seed" => plan.seed = number()?,
            "--rollouts" => {
                let known = SHAPES.into_iter().find(|shape| shape.name == value);
                plan.fleet.shape =
                    known.ok_or_else(|| format!("--rollouts {value:?} is neither agents nor answers"))?;
            }
            _ => return Err(format!("{name} is unknown")),
        }
    }
    if plan.fleet.agents < plan.fleet.runs {
        return Err(format!("--agents {} must be at least --runs {}", plan.fleet.agents, plan.fleet.runs));
    }
    let load = plan.fleet.load();
    if load.training_secs > load.step_secs * TRAINING_SHARE_MAX {
        return Err(format!(
            "--gpus {} would train {:.1} s for every {:.1} s that --agents {} generate, and fall behind; \
             have fewer agents or more GPUs",
            plan.fleet.gpus, load.training_secs, load.step_secs, plan.fleet.agents
        ));
    }
    Ok(plan)
}

fn show(progress: Progress) {
    let Progress { second, of, held } = progress;
    if std::io::stderr().is_terminal() && (second % 10 == 0 || second == of) {
        let end = if second == of { "\n" } else { "" };
        eprint!("\rvirtual second {second} of {of}, {held} rollouts held{end}");
    }
}

/// Megabytes a second of what is done to a rollout before the ledger hears of it.
fn check_speed(shape: &Shape) -> f64 {
    let body = payload::write(shape);
    let mut took: Vec<Duration> = (0..31)
        .map(|_| {
            let begun = Instant::now();
            let checked = item::decode(std::hint::black_box(&body));
            std::hint::black_box((checked.is_ok(), xxh3_64(&body)));
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap_or(Duration::MAX);
    body.len() as f64 / 1e6 / median.as_secs_f64()
}

/// `None` where the system does not say.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}
