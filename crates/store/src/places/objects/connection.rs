//! Connections to object stores: one for each bucket and process.
//!
//! A process may fork at any time, and a child has none of its parent's threads. So connections know whose they are;
//! a child leaves its parent's alone and makes its own. No lock is waited for, since whoever held it may not exist
//! here: a thread that cannot have it makes a connection that only it uses.

use super::super::address::{ObjectAddress, StoreKind};
use super::super::credentials::provider::{Call, Renewed};
use super::super::credentials::{self, Found, How, INSTANCE_METADATA, Surroundings};
use super::super::error::PlaceError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig, StaticCredentialProvider};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A part or a batch may be hundreds of megabytes.
const TIMEOUT: &str = "120 seconds";

/// A machine that has a role answers at once.
const INSTANCE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Connections {
    around: Surroundings,
    /// By the URL of the bucket.
    held: Mutex<HashMap<String, Arc<Connection>>>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    process: u32,
    pub(super) runtime: &'static Runtime,
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Makes addresses by which others may write for a while.
    pub(crate) signer: Option<Arc<dyn Signer>>,
    /// In words that follow "the credentials of".
    pub(super) source: String,
}

impl Connections {
    pub(crate) fn new(around: Surroundings) -> Self {
        Self { around, held: Mutex::default() }
    }

    pub(crate) fn get(&self, address: &ObjectAddress) -> Result<Arc<Connection>, PlaceError> {
        let url = address.bucket_url();
        if let Some(mut held) = try_hard(&self.held) {
            if held.values().any(|connection| !connection.is_ours()) {
                // Their threads are in the process that made them; ending them here would wait for ever.
                std::mem::forget(std::mem::take(&mut *held));
            }
            if let Some(connection) = held.get(&url) {
                return Ok(Arc::clone(connection));
            }
        }
        let made = Arc::new(connect(address, &self.around)?);
        if let Some(mut held) = try_hard(&self.held) {
            held.insert(url, Arc::clone(&made));
        }
        Ok(made)
    }
}

impl Connection {
    /// Waits for an answer. Not from inside an async runtime.
    pub(crate) fn run<R>(&self, work: impl Future<Output = R>) -> R {
        self.runtime.block_on(work)
    }

    pub(super) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

fn connect(address: &ObjectAddress, around: &Surroundings) -> Result<Connection, PlaceError> {
    // Fails where somebody has installed one before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = runtime().map_err(|error| PlaceError::Io {
        what: "start threads for connections",
        why: error.to_string(),
        place: address.url(),
    })?;
    let retry = RetryConfig { retry_timeout: around.retry_for, ..RetryConfig::default() };
    let cannot_build = |error: object_store::Error| PlaceError::Denied {
        why: format!("the settings for the store cannot be used ({error})"),
        place: address.url(),
    };
    let (store, signer, source): (Arc<dyn ObjectStore>, Option<Arc<dyn Signer>>, _) = match address.kind {
        StoreKind::S3 => {
            let (builder, source) = s3(address, around, runtime)?;
            let built = Arc::new(builder.with_retry(retry).build().map_err(cannot_build)?);
            (built.clone(), Some(built), source)
        }
        StoreKind::Google => {
            let builder = around.settings().into_iter().fold(
                GoogleCloudStorageBuilder::new(),
                |builder, set| match set.0.to_ascii_lowercase().parse() {
                    Ok(key) if set.0.starts_with("GOOGLE_") => builder.with_config(key, set.1),
                    _ => builder,
                },
            );
            let built =
                builder.with_url(address.bucket_url()).with_retry(retry).build().map_err(cannot_build)?;
            let source = "GOOGLE_… variables, application default credentials or the machine";
            let built = Arc::new(built);
            (built.clone(), Some(built), source.to_owned())
        }
        StoreKind::Azure => {
            let builder = around.settings().into_iter().fold(MicrosoftAzureBuilder::new(), |builder, set| {
                match set.0.to_ascii_lowercase().parse() {
                    Ok(key) if set.0.starts_with("AZURE_") => builder.with_config(key, set.1),
                    _ => builder,
                }
            });
            let built =
                builder.with_url(address.bucket_url()).with_retry(retry).build().map_err(cannot_build)?;
            let built = Arc::new(built);
            (built.clone(), Some(built), "AZURE_… variables or the machine".to_owned())
        }
    };
    Ok(Connection { process: std::process::id(), runtime, store, signer, source })
}

fn s3(
    address: &ObjectAddress,
    around: &Surroundings,
    runtime: &Runtime,
) -> Result<(AmazonS3Builder, String), PlaceError> {
    use AmazonS3ConfigKey as Key;
    let found = credentials::find(around);
    let mut builder = AmazonS3Builder::new();
    for (name, value) in around.settings() {
        // Which keys are used was decided above; beside them nothing may be left of others.
        match name.to_ascii_lowercase().parse() {
            Ok(Key::AccessKeyId | Key::SecretAccessKey | Key::Token | Key::Endpoint | Key::S3Endpoint) => {}
            Ok(key) if name.starts_with("AWS_") && !value.is_empty() => {
                builder = builder.with_config(key, value)
            }
            _ => {}
        }
    }
    let timeout = Key::Client(ClientConfigKey::Timeout);
    if builder.get_config_value(&timeout).is_none() {
        builder = builder.with_config(timeout, TIMEOUT);
    }
    if let Some(region) = &found.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &found.endpoint {
        let is_plain = endpoint.starts_with("http://");
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        builder = if is_plain { builder.with_allow_http(true) } else { builder };
    }
    let source = match found.how {
        // Nobody chose it: should it fail, the others are of interest.
        How::Instance => format!("{} (tried before: {})", found.source, found.tried.join(", ")),
        _ => found.source.clone(),
    };
    builder =
        sign(builder, found, runtime).map_err(|why| PlaceError::Denied { why, place: address.url() })?;
    Ok((builder.with_bucket_name(&address.bucket), source))
}

/// Puts in the credentials, or says where they were looked for.
fn sign(builder: AmazonS3Builder, found: Found, runtime: &Runtime) -> Result<AmazonS3Builder, String> {
    let nothing = |last: &str| {
        let tried = found.tried.join(", ");
        format!(
            "there are no credentials for S3; tried {tried}{last}; for a public bucket set AWS_SKIP_SIGNATURE=true"
        )
    };
    let call = match found.how {
        How::Keys(keys) => {
            return Ok(builder.with_credentials(Arc::new(StaticCredentialProvider::new(keys))));
        }
        How::Unsigned => return Ok(builder.with_skip_signature(true)),
        How::Role => return Ok(builder),
        How::Nothing => return Err(nothing("")),
        How::Instance => {
            let named = builder.get_config_value(&AmazonS3ConfigKey::MetadataEndpoint).is_some();
            let metadata: Result<SocketAddr, _> = INSTANCE_METADATA.parse();
            let answers = metadata.is_ok_and(|at| TcpStream::connect_timeout(&at, INSTANCE_TIMEOUT).is_ok());
            let last = format!(", the machine's role (nobody answers at {INSTANCE_METADATA})");
            return if named || answers { Ok(builder) } else { Err(nothing(&last)) };
        }
        How::Process(call) => Call::Process(call),
        How::Sso(call) => Call::Sso(call),
    };
    let renewed = Arc::new(Renewed::new(call));
    // Told now, in our words, rather than with the first request.
    runtime.block_on(renewed.get())?;
    Ok(builder.with_credentials(renewed))
}

/// The threads that connections live on, made once in a process and never ended.
fn runtime() -> std::io::Result<&'static Runtime> {
    static OF_PROCESS: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let mut held = try_hard(&OF_PROCESS);
    if let Some(Some((process, runtime))) = held.as_deref()
        && *process == std::process::id()
    {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("places").enable_all().build()?;
    let made: &'static Runtime = Box::leak(Box::new(made));
    if let Some(held) = held.as_deref_mut() {
        *held = Some((std::process::id(), made));
    }
    Ok(made)
}

/// A lock that is held for an instant only, unless its holder did not survive a fork.
fn try_hard<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    (0..100).find_map(|_| {
        let held = lock.try_lock().ok();
        if held.is_none() {
            std::thread::yield_now();
        }
        held
    })
}
