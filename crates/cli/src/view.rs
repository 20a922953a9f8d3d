//! `rollyard view`: a server for some files, and its page in a browser.

use anyhow::{Context, Result};
use clap::Args;
use rollyard_server::{App, RunError, Runs, Settings};
use rollyard_store::example;
use rollyard_store::log::LogError;
use rollyard_store::places::{Places, Roots};
use serde_json::Map;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::model;
use crate::say;
use crate::serve::{listen, stop_on_signal};

/// Look at rollouts in a browser
#[derive(Debug, Args)]
#[command(after_help = "\
A PATH is a file, a folder, a glob or s3://bucket/prefix. Only what is named can be read through the server, and it
listens to this machine only; Ctrl-C ends it.

Example:
    rollyard view runs/ s3://bucket/runs/exp-7/

Without a run of your own:
    rollyard view --example

From another machine, through ssh:
    rollyard view runs/ --listen 127.0.0.1:8890 --no-open")]
pub(crate) struct Arguments {
    /// Files, folders, globs, s3://bucket/prefix
    #[arg(value_name = "PATH", required_unless_present = "example")]
    places: Vec<String>,
    /// Look at a run that was made up for this, beside any others
    #[arg(long)]
    example: bool,
    /// Where to listen; port 0 is a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Where annotations, grades and saved views are kept [default: rollyard/view in the user's data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder of a model whose tokenizer says what text tokens are
    #[arg(long, value_name = "DIR")]
    tokenizer: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.listen.ip().is_loopback() {
        anyhow::bail!(
            "{} can be reached by others, who would need a token; use `rollyard serve --root DIR --token …` for that",
            arguments.listen
        );
    }
    let places = Places::new(Roots::Anywhere);
    let mut settings = Settings::default();
    if let Some(dir) = &arguments.tokenizer {
        settings.tokenizer = Some(Arc::new(model::load(dir)?));
    }
    let mut opened = Vec::new();
    if arguments.example {
        let dir = arguments.data.clone().unwrap_or_else(user_data).join("view/example");
        example::write(&dir)?;
        opened.push(admit(&dir.to_string_lossy(), &mut settings)?);
    }
    for place in &arguments.places {
        // A mistake in a path is told here and now, not in the browser.
        places.files(place)?;
        opened.push(admit(place, &mut settings)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments, settings, &opened))
}

/// Lets the server read a place, and gives its name as the server will know it.
fn admit(place: &str, settings: &mut Settings) -> Result<String> {
    if place.contains("://") && !place.starts_with("file://") {
        let folder = place.split(['*', '?', '[']).next().unwrap_or(place);
        let folder =
            if folder == place { place } else { folder.rsplit_once('/').map_or(place, |(folder, _)| folder) };
        settings.buckets.push(folder.to_owned());
        return Ok(place.to_owned());
    }
    let path = place.strip_prefix("file://").unwrap_or(place);
    let whole = std::path::absolute(path).with_context(|| format!("no such path: {place}"))?;
    let is_plain = |part: &Path| !part.to_string_lossy().contains(['*', '?', '[']) || part.exists();
    let folder = whole.ancestors().find(|part| is_plain(part)).unwrap_or(&whole);
    settings.roots.push(folder.to_owned());
    Ok(whole.to_string_lossy().into_owned())
}

async fn serve(arguments: &Arguments, settings: Settings, places: &[String]) -> Result<()> {
    let (runs, _temporary) = runs(arguments.data.as_deref())?;
    let runs = Arc::new(runs);
    let stopping = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on_signal(signals, stopping.clone()));
    let listener = listen(arguments.listen)?;
    let url = page(listener.local_addr()?, places);
    writeln!(io::stdout(), "viewing at {url}").and_then(|()| io::stdout().flush())?;
    if !arguments.no_open && io::stdout().is_terminal() {
        show(&url);
    }
    let served = rollyard_server::serve(listener, App::new(Arc::clone(&runs), settings, stopping)).await;
    tokio::task::spawn_blocking(move || runs.close()).await?;
    Ok(served?)
}

/// What the server keeps: in the user's folder, or in one that goes with it where another view has that.
fn runs(data: Option<&Path>) -> Result<(Runs, Option<tempfile::TempDir>)> {
    let open = |dir: &Path| Runs::open(dir, &Map::new(), |_, _, _| {});
    let given = data.map_or_else(user_data, Path::to_owned);
    match open(&given) {
        Err(RunError::Log(LogError::Locked { .. })) if data.is_none() => {
            let temporary = tempfile::tempdir()?;
            say(&format!(
                "another view has {}; what is annotated here is not kept (give --data DIR to keep it)",
                given.display()
            ));
            Ok((open(temporary.path())?, Some(temporary)))
        }
        opened => Ok((opened.with_context(|| format!("cannot open {}", given.display()))?, None)),
    }
}

/// `XDG_DATA_HOME`, else `~/.local/share`.
fn user_data() -> PathBuf {
    let share = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    base.or_else(share).unwrap_or_else(std::env::temp_dir).join("rollyard/view")
}

fn page(address: SocketAddr, places: &[String]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("place={}", escape(place))).collect();
    format!("http://{address}/?{}", places.join("&"))
}

/// For a query: everything but letters, digits and what is plain in a path.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Opens the page where the desktop knows how to; elsewhere the address that was printed has to do.
fn show(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        say("open it in a browser; there is no xdg-open here to do that");
    }
}
