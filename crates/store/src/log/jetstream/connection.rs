//! The way to the servers, and the streams that are there.

use async_nats::jetstream::context::{AccountErrorKind, DeleteStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode, context, object_store};
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::TryStreamExt;
use rollyard_core::ids::RunName;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};

use super::super::contract::BlobPlace;
use super::super::error::LogError;
use super::blobs::{BlobStore, RunBlobs};
use super::cache::Cache;
use super::claim::Claim;
use super::message::VERSION;
use super::names::{Names, stream_prefix};
use super::open::Opener;
use super::settings::Settings;
use super::told;
use crate::places::address::decode;

/// A server that has not answered by then is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// How long to look for the server that a stream is on.
const NEAR_WITHIN: Duration = Duration::from_millis(500);

/// A message is at least this large somewhere, or the log cannot be kept.
const MESSAGE_MIN: usize = 16 << 10;

/// Larger ones are cut even where the server would take them.
const MESSAGE_MAX: usize = 1 << 20;

/// Room for the headers of a message.
const HEADERS_LEN: usize = 1024;

/// Room that a bundle's table takes beside one payload.
const BUNDLE_ROOM: usize = 256;

/// How long a server remembers the ids of messages.
const IDS_FOR: Duration = Duration::from_secs(120);

/// What a stream of ours says about itself.
const VERSION_KEY: &str = "rollyard-log";
const RUN_KEY: &str = "rollyard-run";

/// Said of a stream that a copy fills, until it is whole.
const COPY_KEY: &str = "rollyard-copy";
const UNFINISHED: &str = "unfinished";

/// A connection to the servers. Clones share it. Calls block, and none may be made from inside an async runtime.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    client: Client,
    jetstream: Context,
    /// Of all runs, so that many do not take more memory than one.
    cache: Mutex<Cache>,
    /// Clients of other servers, by the name of the server.
    near: Mutex<HashMap<String, Client>>,
    /// Taken when this goes: a runtime must not be waited for where it may be dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Connection {
    /// Connects, and makes sure that JetStream is there. Servers that are not up yet are waited for.
    pub fn open(settings: Settings) -> Result<Self, LogError> {
        settings.check()?;
        let unusable = |cause: String| LogError::Server { servers: settings.servers_told(), cause };
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("nats").enable_all().build();
        let runtime = runtime.map_err(|error| unusable(format!("no threads for it: {error}")))?;
        let handle = runtime.handle().clone();
        let client = handle.block_on(connect_any(&settings)).map_err(unusable)?;
        let version = client.server_info().version;
        if !client.is_server_compatible(2, 12, 0) {
            // Older ones do not know the conditions by which an owner is fenced.
            return Err(unusable(format!("version {version} is too old, and at least 2.12 is needed")));
        }
        if client.max_payload() < MESSAGE_MIN + HEADERS_LEN {
            return Err(unusable(format!(
                "max_payload is {} bytes there, and at least {} are needed",
                client.max_payload(),
                MESSAGE_MIN + HEADERS_LEN
            )));
        }
        // It starts a task that counts what is not acknowledged yet.
        let _inside = handle.enter();
        let jetstream = context::ContextBuilder::new().timeout(ANSWER_WITHIN).build(client.clone());
        handle.block_on(check_jetstream(&jetstream, settings.patience)).map_err(unusable)?;
        let (cache, near) = (Mutex::new(Cache::new(settings.cache_bytes)), Mutex::default());
        let inner = Inner { settings, client, jetstream, cache, near, runtime: Some(runtime), handle };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub fn yard(&self) -> &str {
        &self.inner.settings.yard
    }

    /// Every run that has a stream, save those that are being copied.
    pub fn runs(&self) -> Result<Vec<RunName>, LogError> {
        let prefix = stream_prefix(self.yard());
        let listed = self.run(async {
            let infos = self.inner.jetstream.streams();
            infos.try_collect::<Vec<_>>().await.map_err(|error| told::failed("list the streams", "*", error))
        })?;
        let is_ours = |config: &Config| config.name.starts_with(&prefix) && !is_unfinished(config);
        let of_ours = listed.iter().filter(|info| is_ours(&info.config));
        let named = of_ours.filter_map(|info| info.config.metadata.get(RUN_KEY));
        let mut runs: Vec<RunName> = named.filter_map(|run| RunName::try_from(run.as_str()).ok()).collect();
        runs.sort();
        Ok(runs)
    }

    /// Makes the stream of a run; false if there is one.
    pub fn create(&self, run: &RunName) -> Result<bool, LogError> {
        let names = self.names(run);
        self.run(async {
            match self.find(&names).await {
                Ok(Some(_)) => Ok(false),
                Ok(None) => self.make(&names, None).await.map(|_| true),
                Err(error) => Err(error),
            }
        })
    }

    /// Who owns a run; nobody yet if it has no stream.
    pub fn last_claim(&self, run: &RunName) -> Result<Option<Claim>, LogError> {
        let names = self.names(run);
        self.run(async {
            let Some(stream) = self.find(&names).await? else { return Ok(None) };
            Ok(last_claim(&stream, &names).await?.map(|(claim, _)| claim))
        })
    }

    /// Where the large payloads of a run are kept; `None` if there is no such run.
    pub fn blobs_of(&self, run: &RunName) -> Result<Option<Arc<dyn BlobPlace>>, LogError> {
        let names = self.names(run);
        self.run(async {
            let Some(stream) = self.find(&names).await? else { return Ok(None) };
            let blobs = self.blobs(&names, &stream, self.bucket(&names).await?)?;
            Ok(Some(Arc::new(RunBlobs::new(self.clone(), blobs)) as Arc<dyn BlobPlace>))
        })
    }

    /// What is larger goes to a blob.
    pub(super) fn inline_max(&self) -> usize {
        self.inner.settings.inline_max.min(self.message_max() - BUNDLE_ROOM)
    }

    /// What claims and opens a run for the node of that name, which answers at `url`.
    pub fn opener(&self, run: &RunName, node: &str, url: &str) -> Opener {
        Opener::new(self.clone(), self.names(run), node.to_owned(), url.to_owned())
    }

    pub(super) fn names(&self, run: &RunName) -> Names {
        Names::new(self.yard(), run)
    }

    /// A client of the server that a stream is on: whoever appends there saves the way from one server to the next.
    pub(super) async fn client_near(&self, stream: &Stream) -> Client {
        let shared = self.inner.client.clone();
        let leader = stream.cached_info().cluster.as_ref().and_then(|cluster| cluster.leader.clone());
        let Some(leader) = leader.filter(|leader| *leader != shared.server_info().server_name) else {
            return shared;
        };
        if let Some(client) = self.near().get(&leader) {
            return client.clone();
        }
        // A run that is being taken over does not wait for a server that is away.
        let found = tokio::time::timeout(NEAR_WITHIN, self.connect_to(&leader)).await;
        found.ok().flatten().unwrap_or(shared)
    }

    async fn connect_to(&self, server: &str) -> Option<Client> {
        let told = self.inner.settings.servers_told();
        let addresses: Vec<&str> = told.split(',').collect();
        let settings = Settings { patience: Duration::ZERO, ..self.inner.settings.clone() };
        for n in 0..addresses.len() {
            // The others stand behind it, for when it goes away.
            let mut order = addresses.clone();
            order.rotate_left(n);
            if let Ok(client) = connect(&settings, &order, ConnectOptions::retain_servers_order).await
                && client.server_info().server_name == server
            {
                self.near().insert(server.to_owned(), client.clone());
                return Some(client);
            }
        }
        None
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.inner.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn near(&self) -> MutexGuard<'_, HashMap<String, Client>> {
        self.inner.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks another server from now on: this one may be cut off from the others, and answer nothing of use.
    pub(super) async fn turn_away(&self) {
        if let Err(error) = self.inner.client.force_reconnect().await {
            tracing::debug!("NATS: {error}");
        }
    }

    /// Waits for an answer.
    pub(super) fn run<R>(&self, work: impl Future<Output = R>) -> R {
        self.inner.handle.block_on(work)
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    /// How large a message may be, headers apart.
    pub(super) fn message_max(&self) -> usize {
        (self.inner.client.max_payload() - HEADERS_LEN).min(MESSAGE_MAX)
    }

    pub(super) async fn find_or_make(&self, names: &Names) -> Result<Stream, LogError> {
        match self.find(names).await? {
            Some(stream) => Ok(stream),
            None => self.make(names, None).await,
        }
    }

    pub(super) async fn find(&self, names: &Names) -> Result<Option<Stream>, LogError> {
        let stream = self.find_any(names).await?;
        if stream.as_ref().is_some_and(|stream| is_unfinished(&stream.cached_info().config)) {
            return Err(LogError::Unfinished { run: names.run.to_string(), stream: names.stream.clone() });
        }
        Ok(stream)
    }

    /// Even one that is not whole yet.
    pub(super) async fn find_any(&self, names: &Names) -> Result<Option<Stream>, LogError> {
        let stream = again(self.inner.settings.patience, async || {
            match self.inner.jetstream.get_stream(&names.stream).await {
                Ok(stream) => Ok(Some(stream)),
                Err(error) => match error.kind() {
                    GetStreamErrorKind::JetStream(cause)
                        if cause.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                    {
                        Ok(None)
                    }
                    _ => Err(told::failed("look for it", &names.stream, error)),
                },
            }
        })
        .await?;
        if let Some(stream) = &stream {
            check_ours(stream, names)?;
        }
        Ok(stream)
    }

    /// Makes a stream that nobody takes for a run until [`Connection::mark_whole`].
    pub(super) async fn make_unfinished(&self, names: &Names) -> Result<Stream, LogError> {
        self.make(names, Some((COPY_KEY.to_owned(), UNFINISHED.to_owned()))).await
    }

    pub(super) async fn mark_whole(&self, names: &Names, stream: &Stream) -> Result<(), LogError> {
        let doing = "mark the copy as whole";
        again(self.inner.settings.patience, async || {
            let info = stream.get_info().await;
            let mut config = info.map_err(|error| told::failed(doing, &names.stream, error))?.config;
            config.metadata.remove(COPY_KEY);
            let updated = self.inner.jetstream.update_stream(&config).await;
            updated.map(drop).map_err(|error| told::failed(doing, &names.stream, error))
        })
        .await
    }

    /// Removes a stream and its bucket, if they are there.
    pub(super) async fn remove(&self, names: &Names) -> Result<(), LogError> {
        let doing = "remove it";
        // The bucket goes first: as long as the stream is there, somebody knows of both.
        for stream in [format!("OBJ_{}", names.bucket), names.stream.clone()] {
            again(self.inner.settings.patience, async || {
                match self.inner.jetstream.delete_stream(&stream).await {
                    Ok(_) => Ok(()),
                    Err(error) => match error.kind() {
                        DeleteStreamErrorKind::JetStream(cause)
                            if cause.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                        {
                            Ok(())
                        }
                        _ => Err(told::failed(doing, &stream, error)),
                    },
                }
            })
            .await?;
        }
        Ok(())
    }

    async fn make(&self, names: &Names, more: Option<(String, String)>) -> Result<Stream, LogError> {
        let Settings { replicas, max_bytes, patience, .. } = self.inner.settings;
        let mut metadata = HashMap::from([
            (VERSION_KEY.to_owned(), VERSION.to_string()),
            (RUN_KEY.to_owned(), names.run.to_string()),
        ]);
        metadata.extend(more);
        let config = Config {
            name: names.stream.clone(),
            description: Some(format!("rollyard: the log of run {}", names.run)),
            subjects: names.subjects(),
            // A log that drops its beginning by itself is none.
            discard: DiscardPolicy::New,
            max_bytes: max_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            num_replicas: replicas,
            duplicate_window: IDS_FOR,
            deny_delete: true,
            allow_direct: true,
            metadata,
            ..Config::default()
        };
        let doing = "make it";
        let stream = again(patience, async || {
            self.inner.jetstream.create_stream(config.clone()).await.map_err(|error| {
                use async_nats::jetstream::context::CreateStreamErrorKind::JetStream;
                match error.kind() {
                    JetStream(cause) => told::refused(doing, &names.stream, &cause),
                    _ => told::failed(doing, &names.stream, error),
                }
            })
        })
        .await?;
        check_ours(&stream, names)?;
        Ok(stream)
    }

    /// The bucket of a run's snapshots, and of its large payloads where nothing else was chosen.
    pub(super) async fn bucket(&self, names: &Names) -> Result<BlobStore, LogError> {
        let config = object_store::Config {
            bucket: names.bucket.clone(),
            description: Some(format!("rollyard: large payloads and snapshots of run {}", names.run)),
            num_replicas: self.inner.settings.replicas,
            ..object_store::Config::default()
        };
        let chunk = self.message_max().min(128 << 10);
        let (jetstream, doing) = (&self.inner.jetstream, "open the object store");
        again(self.inner.settings.patience, async || {
            let bucket = match jetstream.get_object_store(&names.bucket).await {
                Ok(bucket) => bucket,
                Err(_) => jetstream
                    .create_object_store(config.clone())
                    .await
                    .map_err(|error| told::failed(doing, &names.bucket, error))?,
            };
            let stream = jetstream.get_stream(format!("OBJ_{}", names.bucket)).await;
            let stream = stream.map_err(|error| told::failed(doing, &names.bucket, error))?;
            Ok(BlobStore::jetstream(names.bucket.clone(), bucket, stream, chunk))
        })
        .await
    }
}

async fn connect_any(settings: &Settings) -> Result<Client, String> {
    let told = settings.servers_told();
    // In any order: nodes that all ask one server all stand still when that is cut off from the others.
    connect(settings, &told.split(',').collect::<Vec<_>>(), |options| options).await
}

async fn connect(
    settings: &Settings,
    addresses: &[&str],
    order: fn(ConnectOptions) -> ConnectOptions,
) -> Result<Client, String> {
    let mut options = order(ConnectOptions::new())
        .name("rollyard")
        .connection_timeout(ANSWER_WITHIN)
        .request_timeout(Some(ANSWER_WITHIN))
        // What is cut off without a word is noticed by this.
        .ping_interval(Duration::from_secs(2))
        .reconnect_delay_callback(|tries| if tries <= 1 { Duration::ZERO } else { PAUSE })
        .event_callback(|event| async move {
            match event {
                Event::Connected => tracing::info!("connected to NATS"),
                Event::Disconnected => tracing::warn!("the connection to NATS is gone; trying again"),
                event => tracing::debug!("NATS: {event}"),
            }
        });
    if let Some(path) = &settings.credentials {
        let text = tokio::task::block_in_place(|| std::fs::read_to_string(path));
        let text =
            text.map_err(|error| format!("cannot read the credentials: {error}: {}", path.display()))?;
        let parsed = options.credentials(&text);
        options = parsed.map_err(|error| format!("these are no credentials: {error}: {}", path.display()))?;
    }
    // The client takes no login from an address.
    match login(&settings.servers) {
        Some((user, Some(password))) => options = options.user_and_password(user, password),
        Some((token, None)) => options = options.token(token),
        None => {}
    }
    let addresses: Result<Vec<ServerAddr>, _> = addresses.iter().map(|address| address.parse()).collect();
    let addresses = addresses.map_err(|error| format!("{error}; write nats://host:4222"))?;
    let until = Instant::now() + settings.patience;
    loop {
        match options.clone().connect(addresses.clone()).await {
            Ok(client) => return Ok(client),
            Err(error) => {
                let (cause, may_pass) = told::unconnected(&error);
                if !may_pass || Instant::now() >= until {
                    return Err(cause);
                }
                tracing::debug!("NATS: {cause}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The user and password of the first address that has them; a token has no password.
fn login(servers: &str) -> Option<(String, Option<String>)> {
    let login = servers.split(',').find_map(|server| {
        let address = server.trim().split_once("://").map_or(server.trim(), |(_, address)| address);
        address.rsplit_once('@').map(|(login, _)| login)
    })?;
    let decode = |text: &str| decode(text).unwrap_or_else(|| text.to_owned());
    match login.split_once(':') {
        Some((user, password)) => Some((decode(user), Some(decode(password)))),
        None => Some((decode(login), None)),
    }
}

async fn check_jetstream(jetstream: &Context, patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    loop {
        let Err(error) = jetstream.query_account().await else { return Ok(()) };
        let off = match error.kind() {
            AccountErrorKind::JetStream(cause) => {
                let codes = [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];
                codes.contains(&cause.error_code())
            }
            AccountErrorKind::JetStreamUnavailable => true,
            AccountErrorKind::TimedOut | AccountErrorKind::Other => false,
        };
        if off {
            let what = "JetStream is off there; start nats-server with -js, or put a jetstream block into its configuration";
            return Err(what.to_owned());
        }
        if Instant::now() >= until {
            return Err(format!("JetStream does not answer: {error}"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Does it again while the servers cannot, as long as patience lasts.
pub(super) async fn again<T>(
    patience: Duration,
    work: impl AsyncFn() -> Result<T, LogError>,
) -> Result<T, LogError> {
    let until = Instant::now() + patience;
    loop {
        match work().await {
            Err(LogError::Stream { .. }) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            outcome => return outcome,
        }
    }
}

pub(super) fn is_unfinished(config: &Config) -> bool {
    config.metadata.get(COPY_KEY).is_some_and(|state| state == UNFINISHED)
}

fn check_ours(stream: &Stream, names: &Names) -> Result<(), LogError> {
    let config = &stream.cached_info().config;
    let path = PathBuf::from(format!("stream {}", names.stream));
    let version = config.metadata.get(VERSION_KEY).map(|version| version.parse::<u32>().unwrap_or(0));
    match version {
        Some(found) if found == u32::from(VERSION) => {}
        Some(found) => return Err(LogError::Version { found, known: VERSION.into(), path }),
        None => {
            let cause = "the stream was not made by rollyard; choose another name with --log-yard".to_owned();
            return Err(LogError::Server { servers: names.stream.clone(), cause });
        }
    }
    if config.metadata.get(RUN_KEY).map(String::as_str) != Some(names.run.as_str()) {
        let cause =
            format!("the stream of run {} belongs to another run; name the run differently", names.run);
        return Err(LogError::Server { servers: names.stream.clone(), cause });
    }
    Ok(())
}

/// The newest claim, and the sequence of its message.
pub(super) async fn last_claim(stream: &Stream, names: &Names) -> Result<Option<(Claim, u64)>, LogError> {
    let Some(message) = last_message(stream, names, &names.claims()).await? else { return Ok(None) };
    let claim = serde_json::from_slice(&message.payload);
    let damaged = super::message::BadMessage::Damaged("a claim is not the JSON it was");
    let claim = claim.map_err(|_| told::bad(&names.stream, message.sequence, damaged))?;
    Ok(Some((claim, message.sequence)))
}

/// The newest message of a subject, as the stream's leader has it.
pub(super) async fn last_message(
    stream: &Stream,
    names: &Names,
    subject: &str,
) -> Result<Option<async_nats::jetstream::message::StreamMessage>, LogError> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(told::failed("read its last message", &names.stream, error)),
    }
}
