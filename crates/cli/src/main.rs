//! The program `rollyard`: one file per command.
//!
//! [`serve`] runs the server. What it is told comes from flags, the environment and a file, and is put
//! together once, in [`settings`]. [`stats`] watches a server, [`ledger`] looks
//! into its log, [`query`] and [`grep`] ask files of rollouts, [`convert`] and [`view`] show
//! them in another form, [`assign_ids`] prepares data for it, [`tokens`] shows what a trainer sees of it. [`engine`] asks
//! inference engines what they can do, [`tiny`] is one, [`run`] makes rollouts with them, and [`demo`] shows all
//! of it at work.

mod serve;
mod settings;

mod assign_ids;
mod convert;
mod demo;
mod engine;
mod grep;
mod ledger;
mod query;
mod run;
mod stats;
mod tiny;
mod tokens;
mod view;

mod catalog;
mod client;
mod lines;
mod model;
mod terminal;

use clap::{Parser, Subcommand};
use std::io;
use std::process::ExitCode;

use settings::SettingsError;

// Requests allocate on one thread and free on another, which the system's allocator does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The yard between inference engines and a trainer: rollouts in, groups out, exactly once.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Run(Box<run::Arguments>),
    Stats(stats::Arguments),
    Ledger(ledger::Arguments),
    Query(query::Arguments),
    Grep(grep::Arguments),
    Convert(convert::Arguments),
    View(view::Arguments),
    AssignIds(assign_ids::Arguments),
    Tokens(tokens::Arguments),
    Engine(engine::Arguments),
    Tiny(tiny::Arguments),
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Ledger(arguments) => ledger::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Grep(arguments) => grep::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::AssignIds(arguments) => assign_ids::run(&arguments),
        Command::Tokens(arguments) => tokens::run(&arguments),
        Command::Engine(arguments) => engine::run(&arguments),
        Command::Tiny(arguments) => tiny::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough, as in `rollyard ledger events | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("rollyard: {error:#}"));
            ExitCode::from(if error.is::<SettingsError>() { 2 } else { 1 })
        }
    }
}

/// Tells the user something that is not the output. Where nobody listens, there is nobody to tell.
fn say(line: &str) {
    use io::Write;
    let _nobody_listens = writeln!(io::stderr(), "{line}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
