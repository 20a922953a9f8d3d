//! Payloads that are too large for a stream, by name.

use ::object_store::ObjectStoreExt;
use ::object_store::path::Path;
use ::object_store::signer::Signer;
use async_nats::jetstream::object_store::{GetErrorKind, InfoErrorKind, ObjectInfo, ObjectMetadata};
use async_nats::jetstream::{object_store, stream};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use reqwest::Method;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;

use super::super::contract::BlobPlace;
use super::super::error::LogError;
use super::connection::{Connection, again};
use super::told;
use crate::places::Surroundings;
use crate::places::address::Address;
use crate::places::objects::connection::Connections;

/// Keeps blobs: the object store of JetStream, or a bucket elsewhere. Clones share it.
#[derive(Clone, Debug)]
pub struct BlobStore {
    kept: Kept,
    /// For messages.
    name: String,
}

#[derive(Clone)]
enum Kept {
    JetStream(Arc<Objects>),
    Bucket { store: Arc<dyn ::object_store::ObjectStore>, signer: Option<Arc<dyn Signer>>, prefix: Path },
}

/// JetStream's object store, and the stream that it is.
struct Objects {
    bucket: object_store::ObjectStore,
    stream: stream::Stream,
    chunk: usize,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::JetStream(_) => "JetStream",
            Self::Bucket { .. } => "Bucket",
        })
    }
}

impl BlobStore {
    pub(super) fn jetstream(
        name: String,
        bucket: object_store::ObjectStore,
        stream: stream::Stream,
        chunk: usize,
    ) -> Self {
        Self { kept: Kept::JetStream(Arc::new(Objects { bucket, stream, chunk })), name }
    }

    /// Below `url`, in a folder of the run's stream.
    pub(super) fn bucket(url: &str, stream: &str) -> Result<Self, LogError> {
        let unusable = |cause: String| LogError::Server { servers: url.to_owned(), cause };
        let address = match Address::parse(url) {
            Ok(Address::Object(address)) => address,
            Ok(Address::Disk(_)) => {
                return Err(unusable("blobs go to a bucket: write s3://bucket/prefix".to_owned()));
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        let connection = Connections::new(Surroundings::of_process()).get(&address);
        let connection = connection.map_err(|error| unusable(error.to_string()))?;
        let prefix = Path::from(format!("{}/{stream}", address.key.trim_end_matches('/')));
        let (store, signer) = (Arc::clone(&connection.store), connection.signer.clone());
        Ok(Self { kept: Kept::Bucket { store, signer, prefix }, name: url.to_owned() })
    }

    pub(super) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), LogError> {
        self.put_with(name, bytes, HashMap::new()).await
    }

    pub(super) async fn put_with(
        &self,
        name: &str,
        bytes: Bytes,
        metadata: HashMap<String, String>,
    ) -> Result<(), LogError> {
        let doing = "put a blob";
        match &self.kept {
            Kept::JetStream(objects) => {
                let meta = ObjectMetadata {
                    name: name.to_owned(),
                    chunk_size: Some(objects.chunk),
                    metadata,
                    ..ObjectMetadata::default()
                };
                // Read in pieces of the chunk's size: a slice gives as much as there is room for.
                let put = objects.bucket.put(meta, &mut &bytes[..]).await;
                put.map(drop).map_err(|error| told::failed(doing, &self.name, error))
            }
            Kept::Bucket { store, prefix, .. } => {
                let put = store.put(&key(prefix, name), bytes.into()).await;
                put.map(drop).map_err(|error| told::failed(doing, &self.name, error))
            }
        }
    }

    /// The bytes of a blob, if there is one.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        let doing = "get a blob";
        match &self.kept {
            Kept::JetStream(objects) => {
                let mut object = match objects.bucket.get(name).await {
                    Ok(object) => object,
                    Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(told::failed(doing, &self.name, error)),
                };
                let mut bytes = Vec::with_capacity(object.info().size);
                let read = object.read_to_end(&mut bytes).await;
                read.map_err(|error| told::failed(doing, &self.name, error))?;
                Ok(Some(bytes.into()))
            }
            Kept::Bucket { store, prefix, .. } => {
                let got = async { store.get(&key(prefix, name)).await?.bytes().await };
                match got.await {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(::object_store::Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(told::failed(doing, &self.name, error)),
                }
            }
        }
    }

    /// The length of a blob, if there is one.
    pub(super) async fn len(&self, name: &str) -> Result<Option<u64>, LogError> {
        match &self.kept {
            Kept::JetStream(_) => Ok(self.info(name).await?.map(|info| info.size as u64)),
            Kept::Bucket { store, prefix, .. } => match store.head(&key(prefix, name)).await {
                Ok(meta) => Ok(Some(meta.size)),
                Err(::object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(told::failed("look for a blob", &self.name, error)),
            },
        }
    }

    /// An address to which whoever has it may put a blob for so long; `None` if there is no such thing here.
    async fn signed_url(&self, name: &str, valid_for: Duration) -> Result<Option<String>, LogError> {
        let Kept::Bucket { prefix, signer: Some(signer), .. } = &self.kept else { return Ok(None) };
        let signed = signer.signed_url(Method::PUT, &key(prefix, name), valid_for).await;
        signed.map(|url| Some(url.into())).map_err(|error| told::failed("sign an address", &self.name, error))
    }

    /// What is known of a blob of JetStream's, if there is one.
    pub(super) async fn info(&self, name: &str) -> Result<Option<ObjectInfo>, LogError> {
        let Kept::JetStream(objects) = &self.kept else { return Ok(None) };
        match objects.bucket.info(name).await {
            Ok(info) => Ok((!info.deleted).then_some(info)),
            Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(told::failed("look for a blob", &self.name, error)),
        }
    }

    /// Leaves nothing of it, not even the mark that JetStream's own deletion leaves.
    pub(super) async fn delete(&self, name: &str) -> Result<(), LogError> {
        let failed = |error: &dyn std::fmt::Display| told::failed("delete a blob", &self.name, error);
        match &self.kept {
            Kept::JetStream(objects) => {
                let Some(info) = self.info(name).await? else { return Ok(()) };
                for subject in [
                    format!("$O.{}.C.{}", self.name, info.nuid),
                    format!("$O.{}.M.{}", self.name, URL_SAFE.encode(name)),
                ] {
                    objects.stream.purge().filter(subject).await.map_err(|error| failed(&error))?;
                }
                Ok(())
            }
            Kept::Bucket { store, prefix, .. } => match store.delete(&key(prefix, name)).await {
                Ok(()) | Err(::object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(failed(&error)),
            },
        }
    }
}

/// The blobs of a run, for whoever makes large payloads.
#[derive(Debug)]
pub(super) struct RunBlobs {
    connection: Connection,
    blobs: BlobStore,
}

impl RunBlobs {
    pub(super) fn new(connection: Connection, blobs: BlobStore) -> Self {
        Self { connection, blobs }
    }

    fn again<T>(&self, work: impl AsyncFn() -> Result<T, LogError>) -> Result<T, LogError> {
        self.connection.run(again(self.connection.settings().patience, work))
    }
}

impl BlobPlace for RunBlobs {
    fn inline_max(&self) -> usize {
        self.connection.inline_max()
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), LogError> {
        self.again(async || self.blobs.put(name, bytes.clone()).await)
    }

    fn len(&self, name: &str) -> Result<Option<u64>, LogError> {
        self.again(async || self.blobs.len(name).await)
    }

    fn signed_url(&self, name: &str, valid_for: Duration) -> Result<Option<String>, LogError> {
        self.again(async || self.blobs.signed_url(name, valid_for).await)
    }
}

fn key(prefix: &Path, name: &str) -> Path {
    prefix.clone().join(name)
}
