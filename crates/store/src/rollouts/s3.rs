//! Rollout files on S3, or on anything that speaks its protocol.
//!
//! Keys, region and endpoint are found as for every place ([`crate::places`]), and connections are made as there:
//! each process has its own, so that one may fork at any time. A put is atomic and durable by itself.

use super::folder::{FolderError, Place};
use crate::places::Surroundings;
use crate::places::address::{Address, ObjectAddress};
use crate::places::objects::connection::{Connection, Connections};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct S3 {
    url: String,
    address: ObjectAddress,
    prefix: Path,
    connections: Connections,
}

impl S3 {
    pub(super) fn new(url: &str) -> Result<Self, FolderError> {
        let failed = |why: String| FolderError::S3 { what: "open the folder", why, place: url.to_owned() };
        let Ok(Address::Object(address)) = Address::parse(url) else {
            return Err(failed("there is no bucket in the URL".to_owned()));
        };
        let prefix = Path::parse(address.key.trim_matches('/')).map_err(|error| failed(error.to_string()))?;
        let connections = Connections::new(Surroundings::of_process());
        let s3 = Self { url: url.trim_end_matches('/').to_owned(), address, prefix, connections };
        s3.connect()?;
        Ok(s3)
    }

    fn connect(&self) -> Result<Arc<Connection>, FolderError> {
        let connection = self.connections.get(&self.address);
        connection.map_err(|error| self.failed("open the folder", error.reason()))
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
        let connection = self.connect()?;
        let found = connection.run(connection.store.list_with_delimiter(Some(&self.prefix)));
        let objects = found.map_err(|error| self.failed("list the folder", error))?.objects;
        Ok(objects.iter().filter_map(|object| object.location.filename()).map(str::to_owned).collect())
    }

    fn read(&self, name: &str) -> Result<Bytes, FolderError> {
        let connection = self.connect()?;
        let key = self.key(name);
        let read = connection.run(async { connection.store.get(&key).await?.bytes().await });
        read.map_err(|error| match error {
            Error::NotFound { .. } => FolderError::Gone { name: format!("{}/{name}", self.url) },
            error => self.failed_file("read the file", &error, name),
        })
    }

    fn publish(&self, name: &str, bytes: Bytes) -> Result<(), FolderError> {
        let connection = self.connect()?;
        let put = connection.run(connection.store.put(&self.key(name), bytes.into()));
        put.map(drop).map_err(|error| self.failed_file("write the file", &error, name))
    }

    fn delete(&self, name: &str) -> Result<(), FolderError> {
        let connection = self.connect()?;
        match connection.run(connection.store.delete(&self.key(name))) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed_file("delete the file", &error, name)),
        }
    }
}
