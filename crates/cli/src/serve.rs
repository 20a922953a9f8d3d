//! `rollyard serve`: opens the runs, listens, and closes them again.

mod arguments;
mod cluster;
mod gateway;
mod recovery;

pub(crate) use arguments::Arguments;

use anyhow::{Result, anyhow};
use rollyard_server::{App, RunError, Runs};
use rollyard_store::log::LogError;
use rollyard_store::yard::YardError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::model;
use crate::say;
use crate::settings::{self, Serving, Sources};

/// Connections that may wait to be accepted; a burst of agents all connect at once.
const BACKLOG: u32 = 4096;
/// Ports behind the one that is asked for, where any will do.
const PORTS_TRIED: u16 = 100;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Somebody else's variable may be no text at all; ours get refused by name if they make no sense.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let sources = Sources::read(arguments.flags.clone(), arguments.config.as_deref(), variables)?;
    let serving = Serving::resolve(&sources)?;
    if arguments.show_config {
        return Ok(io::stdout().write_all(settings::show(&serving.resolved).as_bytes())?);
    }
    if arguments.ends_with_parent {
        end_with_parent()?;
    }
    tracing_subscriber::fmt()
        .with_max_level(serving.log_level)
        .with_writer(io::stderr)
        .with_ansi(false)
        .init();
    for stray in &sources.strays {
        tracing::warn!("the variable {stray} is not a setting; `rollyard serve --show-config` lists them");
    }
    if let Err(error) = raise_descriptor_limit() {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(serving))
}

async fn serve(mut serving: Serving) -> Result<()> {
    // A port that is taken should not be found out after minutes of recovery.
    let listener = listen(serving.listen)?;
    if let Some(dir) = &serving.tokenizer {
        serving.server.tokenizer = Some(Arc::new(model::load(dir)?));
    }
    let (runs, listener) = match serving.cluster.clone() {
        None => {
            // Whoever connects meanwhile is refused, and not left waiting.
            drop(listener);
            (open(&serving).await?, None)
        }
        Some(cluster) => {
            // The others hear of the port, which may be any: it is kept.
            let cluster = cluster::join(&serving, &cluster, listener.local_addr()?).await?;
            let opened = Runs::open_clustered(&serving.data, &serving.knobs, cluster);
            (opened.map_err(|error| explain(error, &serving))?, Some(listener))
        }
    };
    let runs = Arc::new(runs);

    let stopping = CancellationToken::new();
    let gateway = gateway::settings(&serving).await?;
    let mut app = App::new(Arc::clone(&runs), serving.server, stopping.clone());
    if let Some(gateway) = gateway {
        app.open_gateway(gateway)?;
    }

    // Until here a signal ends the process as usual: there is nothing to finish.
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on_signal(signals, stopping));
    let listener = listener.map_or_else(|| listen(serving.listen), Ok)?;
    let address = listener.local_addr()?;
    let mut out = io::stdout();
    if let Err(error) = writeln!(out, "listening on http://{address}").and_then(|()| out.flush()) {
        tracing::warn!("listening on http://{address}, but nobody reads it on stdout: {error}");
    }
    if serving.cluster.is_some() && !serving.knobs.is_empty() {
        tokio::spawn(cluster::configure_default(Arc::clone(&runs), serving.knobs.clone()));
    }
    let served = rollyard_server::serve(listener, app).await;
    tokio::task::spawn_blocking(move || runs.close()).await?;
    tracing::info!("stopped");
    Ok(served?)
}

/// Opens the runs of the data folder.
async fn open(serving: &Serving) -> Result<Runs> {
    let (data, knobs, archive) = (serving.data.clone(), serving.knobs.clone(), serving.archive.clone());
    let (runs, took) = tokio::task::spawn_blocking(move || recovery::open(&data, &knobs, archive))
        .await?
        .map_err(|error| explain(error, serving))?;
    recovery::report(&runs, &took).await?;
    runs.configure_default(&serving.knobs).await?;
    Ok(runs)
}

pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener> {
    bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {address}: another program does already; stop it, or choose another port with --listen"
        ),
        io::ErrorKind::PermissionDenied => {
            anyhow!("cannot listen on {address}: not allowed; choose a port above 1023 with --listen")
        }
        io::ErrorKind::AddrNotAvailable => {
            anyhow!("cannot listen on {address}: this machine has no such address; choose another with --listen")
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}

/// On this port or, where others have it, the next one that is free; says so if it is another.
pub(crate) fn listen_from(address: SocketAddr) -> Result<TcpListener> {
    // What is asked for is tried last once more, so that the error is about that.
    let ports = address.port()..=address.port().saturating_add(PORTS_TRIED);
    for port in ports {
        let candidate = SocketAddr::new(address.ip(), port);
        match bind(candidate) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Ok(listener) => {
                if candidate != address {
                    say(&format!("port {} is taken, so this is port {port}", address.port()));
                }
                return Ok(listener);
            }
            Err(_) => break,
        }
    }
    listen(address)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Adds what to do next to an error of opening the data.
fn explain(error: RunError, serving: &Serving) -> anyhow::Error {
    let data = serving.data.display();
    let log = match &error {
        RunError::Log(log) | RunError::Yard { cause: YardError::Log(log), .. } => Some(log),
        _ => None,
    };
    let next_step = match (log, &error) {
        (Some(LogError::Locked { .. }), _) => {
            "stop that process, or give this server a folder of its own with --data DIR"
        }
        (Some(LogError::NotWritable { .. }), _) | (_, RunError::Folder { .. }) => {
            "choose a folder that can be written with --data DIR"
        }
        (Some(LogError::NoSpace { .. }), _) => "make room, then start again; nothing is lost",
        (Some(LogError::Corrupt { .. }), _) => {
            "put the folder back from a copy, or move the run's folder away to begin it anew"
        }
        (Some(LogError::Version { .. }), _) => "use the version of rollyard that wrote it, or a newer one",
        _ => return anyhow!(error).context(format!("cannot open {data}")),
    };
    anyhow!("cannot open {data}: {error}; {next_step}")
}

/// The first signal asks to finish, the second does not ask.
pub(crate) async fn stop_on_signal(
    (mut interrupt, mut terminate): (Signal, Signal),
    stopping: CancellationToken,
) {
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
        }
    };
    next().await;
    tracing::info!("stopping; once more to stop at once");
    stopping.cancel();
    std::process::exit(next().await);
}

/// Asks the kernel to end this process when the one that started it is gone.
#[cfg(target_os = "linux")]
pub(crate) fn end_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have gone before we asked; then the first process of the system has adopted us.
    if getppid().is_none_or(|parent| parent.is_init()) {
        std::process::exit(1);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// Every connection is a descriptor, and the usual limit is 1,024.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_leads_to_the_next_free_one() {
        let taken = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = taken.local_addr().unwrap();
        assert!(listen(address).unwrap_err().to_string().contains("another program does already"));
        let listener = listen_from(address).unwrap();
        let found = listener.local_addr().unwrap();
        assert!(found.ip() == address.ip() && found.port() > address.port(), "{found} for {address}");
        let free = found.port();
        drop(listener);
        assert_eq!(listen_from((address.ip(), free).into()).unwrap().local_addr().unwrap().port(), free);
    }

    #[tokio::test]
    async fn no_port_helps_where_the_address_is_wrong() {
        let error = listen_from("192.0.2.1:8889".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("this machine has no such address"), "{error}");
    }
}
