//! Rollout files on S3, or on anything that speaks its protocol.
//!
//! Keys, region and endpoint come from the environment, by the names that all tools for S3 know. A put is atomic
//! and durable by itself. Each process makes connections of its own, so that one may fork at any time; a thread
//! that finds the connection in use makes another instead of waiting.

use super::folder::{FolderError, Place};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{ClientConfigKey, Error, ObjectStore, ObjectStoreExt, RetryConfig};
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

#[derive(Debug)]
pub(super) struct S3 {
    url: String,
    prefix: Path,
    spare: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    process: u32,
    runtime: Runtime,
    store: AmazonS3,
}

/// A batch may be hundreds of megabytes.
const TIMEOUT: &str = "120 seconds";

/// Long enough for a server to restart, short enough to be told that it does not.
const RETRY_FOR: Duration = Duration::from_secs(30);

impl S3 {
    pub(super) fn new(url: &str) -> Result<Self, FolderError> {
        let failed = |why: String| FolderError::S3 { what: "open the folder", why, place: url.to_owned() };
        let (_, rest) = url.split_once("://").unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(failed("there is no bucket in the URL".to_owned()));
        }
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|error| failed(error.to_string()))?;
        let s3 = Self { url: url.trim_end_matches('/').to_owned(), prefix, spare: Mutex::default() };
        s3.leave(s3.connect()?);
        Ok(s3)
    }

    fn connect(&self) -> Result<Connection, FolderError> {
        // Fails where somebody has installed one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeout = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
        let mut builder = AmazonS3Builder::from_env().with_url(&self.url);
        if builder.get_config_value(&timeout).is_none() {
            builder = builder.with_config(timeout, TIMEOUT);
        }
        let retry = RetryConfig { retry_timeout: RETRY_FOR, ..RetryConfig::default() };
        let store = builder.with_retry(retry).build();
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Connection {
            process: std::process::id(),
            runtime: runtime.map_err(|error| self.failed("open the folder", error))?,
            store: store.map_err(|error| self.failed("open the folder", error))?,
        })
    }

    fn with<R>(
        &self,
        work: impl AsyncFnOnce(&AmazonS3) -> Result<R, Error>,
    ) -> Result<Result<R, Error>, FolderError> {
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.take());
        let connection = match spare {
            Some(connection) if connection.process == std::process::id() => connection,
            Some(foreign) => {
                // Its threads are in the process that made it; ending it here would wait for them for ever.
                std::mem::forget(foreign);
                self.connect()?
            }
            None => self.connect()?,
        };
        let result = connection.runtime.block_on(work(&connection.store));
        self.leave(connection);
        Ok(result)
    }

    fn leave(&self, connection: Connection) {
        if let Ok(mut spare) = self.spare.try_lock() {
            *spare = Some(connection);
        }
    }

    fn key(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    fn failed(&self, what: &'static str, error: impl ToString) -> FolderError {
        FolderError::S3 { what, why: error.to_string(), place: self.url.clone() }
    }

    fn failed_file(&self, what: &'static str, error: &Error, name: &str) -> FolderError {
        FolderError::S3 { what, why: error.to_string(), place: format!("{}/{name}", self.url) }
    }
}

impl Place for S3 {
    /// There are no folders to make; a bucket is made by whoever pays for it.
    fn prepare(&self) -> Result<(), FolderError> {
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, FolderError> {
        let found = self.with(async |store| store.list_with_delimiter(Some(&self.prefix)).await)?;
        let objects = found.map_err(|error| self.failed("list the folder", error))?.objects;
        Ok(objects.iter().filter_map(|object| object.location.filename()).map(str::to_owned).collect())
    }

    fn read(&self, name: &str) -> Result<Bytes, FolderError> {
        let read = self.with(async |store| store.get(&self.key(name)).await?.bytes().await)?;
        read.map_err(|error| match error {
            Error::NotFound { .. } => FolderError::Gone { name: format!("{}/{name}", self.url) },
            error => self.failed_file("read the file", &error, name),
        })
    }

    fn publish(&self, name: &str, bytes: Bytes) -> Result<(), FolderError> {
        let put = self.with(async |store| store.put(&self.key(name), bytes.into()).await)?;
        put.map(drop).map_err(|error| self.failed_file("write the file", &error, name))
    }

    fn delete(&self, name: &str) -> Result<(), FolderError> {
        match self.with(async |store| store.delete(&self.key(name)).await)? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed_file("delete the file", &error, name)),
        }
    }
}
