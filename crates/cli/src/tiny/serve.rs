//! `rollyard tiny serve`: the small model behind the calls of SGLang and OpenAI.

use anyhow::{Context, Result, bail};
use clap::Args;
use rollyard_core::tokens::Tokenizer;
use rollyard_tiny::engine::{EngineSettings, Model, TinyEngine};
#[cfg(feature = "gguf")]
use rollyard_tiny::gguf::Gguf;
use rollyard_tiny::model::{Policy, Shape, Weights};
use rollyard_tiny::serve::{MODEL_NAME, ServeSettings, serve};
use rollyard_tiny::tokenizer;
use rollyard_tiny::train::Checkpoint;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::say;
use crate::serve::{listen_from, raise_descriptor_limit, stop_on_signal};

/// Answer the calls of SGLang and OpenAI with the small model
#[derive(Debug, Args)]
#[command(after_help = "\
When it is ready it prints `listening on http://ADDR:PORT`. If the port is taken, it takes the next one that is free.
Ctrl-C lets answers under way finish.

Example:
    rollyard tiny serve --listen 127.0.0.1:30000 --seed 7

With weights that were trained, and others to come from the same folder:
    rollyard tiny serve --checkpoint run/checkpoint.safetensors

A real small model, if the program was built with `--features gguf`:
    rollyard tiny serve --gguf SmolLM2-135M-Instruct.Q4_1.gguf")]
pub(crate) struct Arguments {
    /// Weights to begin with [default: random ones]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// A Llama in a GGUF file instead of the small model; its weights cannot change
    #[arg(long, value_name = "FILE", conflicts_with = "checkpoint")]
    gguf: Option<PathBuf>,
    /// Where to listen; port 0 is a free one, and any but loopback needs a key
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:30000")]
    listen: SocketAddr,
    /// What requests have to call the model, if they call it anything [default: rollyard-tiny, or the GGUF file's name]
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Of the random weights, and of requests that name no seed [default: weights of seed 0, requests that differ]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The version of the weights to begin with
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    weight_version: i32,
    /// Texts that are sampled at once; others wait
    #[arg(long, value_name = "N", default_value_t = EngineSettings::default().texts_max, value_parser = at_least_one)]
    texts_max: usize,
    /// Folder that /update_weights_from_disk may load from; may be repeated [default: that of --checkpoint, else this one]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Key that every request has to send as a bearer token
    #[arg(long, value_name = "KEY", env = "ROLLYARD_ENGINE_KEY", hide_env_values = true)]
    api_key: Option<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "not a whole number from 1 on".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let api_key = arguments.api_key.clone().filter(|key| !key.is_empty());
    if !arguments.listen.ip().is_loopback() && api_key.is_none() {
        bail!(
            "listening on {} lets other machines in, so it needs a key: give --api-key KEY, or listen on 127.0.0.1",
            arguments.listen
        );
    }
    let Chosen { model, tokenizer, name, about } = model(arguments)?;
    say(&about);
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(io::stderr)
        .with_ansi(false)
        .init();
    if let Err(error) = raise_descriptor_limit() {
        say(&format!("the limit of open files stays as it is: {error}"));
    }
    let settings =
        EngineSettings { texts_max: arguments.texts_max, seed: arguments.seed, ..EngineSettings::default() };
    let engine = TinyEngine::over(model, arguments.weight_version, tokenizer, settings)?;
    let settings = ServeSettings {
        model_name: arguments.model_name.clone().unwrap_or(name),
        api_key,
        roots: roots(arguments)?,
        ..ServeSettings::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(listen_and_serve(arguments.listen, engine, settings))
}

/// What is served.
struct Chosen {
    model: Model,
    tokenizer: Arc<Tokenizer>,
    /// What it is called unless told otherwise.
    name: String,
    /// A line for whoever started it.
    about: String,
}

fn model(arguments: &Arguments) -> Result<Chosen> {
    if let Some(path) = &arguments.gguf {
        return of_others(path);
    }
    let tokenizer = Arc::new(tokenizer::tokenizer()?);
    let (weights, about) = match &arguments.checkpoint {
        Some(path) => {
            let Checkpoint { weights, .. } = Checkpoint::load(path, None)?;
            let (has, wants) = (weights.shape().vocabulary, tokenizer::vocabulary_len());
            if has != wants {
                bail!("the checkpoint knows {has} tokens, but the tokenizer {wants}: {}", path.display());
            }
            (weights, format!("serving the weights of {}", path.display()))
        }
        None => {
            let seed = arguments.seed.unwrap_or_default();
            let weights = Weights::random(Shape::demo(tokenizer::vocabulary_len()), seed);
            let about = format!(
                "serving random weights (seed {seed}), which know nothing; give trained ones with --checkpoint FILE"
            );
            (weights, about)
        }
    };
    let name = MODEL_NAME.to_owned();
    Ok(Chosen { model: Model::Policy(Policy::new(Arc::new(weights))), tokenizer, name, about })
}

#[cfg(feature = "gguf")]
fn of_others(path: &Path) -> Result<Chosen> {
    let Gguf { decoder, tokenizer, name: own_name } = Gguf::open(path)?;
    let about = format!("serving {own_name} with a context of {} tokens", decoder.context());
    let name = path.file_stem().map_or(own_name, |stem| stem.to_string_lossy().into_owned());
    Ok(Chosen { model: Model::Fixed(decoder), tokenizer, name, about })
}

#[cfg(not(feature = "gguf"))]
fn of_others(path: &Path) -> Result<Chosen> {
    bail!(
        "this program was built without GGUF; build it with `cargo build --release -p rollyard --features gguf`: {}",
        path.display()
    )
}

/// Where new weights may come from.
fn roots(arguments: &Arguments) -> Result<Vec<PathBuf>> {
    if !arguments.roots.is_empty() {
        return Ok(arguments.roots.clone());
    }
    let beside = arguments.checkpoint.as_deref().map(std::path::absolute).transpose()?;
    match beside.as_deref().and_then(Path::parent) {
        Some(folder) => Ok(vec![folder.to_owned()]),
        None => Ok(vec![std::env::current_dir().context("there is no current folder; give --root DIR")?]),
    }
}

async fn listen_and_serve(address: SocketAddr, engine: TinyEngine, settings: ServeSettings) -> Result<()> {
    let stopping = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(stop_on_signal(signals, stopping.clone()));
    let listener = listen_from(address)?;
    let address = listener.local_addr()?;
    writeln!(io::stdout(), "listening on http://{address}").and_then(|()| io::stdout().flush())?;
    Ok(serve(listener, engine, settings, stopping).await?)
}
