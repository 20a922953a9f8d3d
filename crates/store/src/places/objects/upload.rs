//! Writes an object that appears as a whole.
//!
//! What fits into one part is put at once. More goes up in parts, a few at a time, and becomes an object when all of
//! them are there.

use super::super::error::PlaceError;
use super::super::{FileInfo, Upload};
use super::connection::Connection;
use super::told::told;
use super::{Objects, info};
use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// All but the last are equal, which some stores insist on. A store takes 10,000.
const PART_BYTES: usize = 8 << 20;

const IN_FLIGHT_MAX: usize = 4;

/// Whoever gives up does not want to wait for long.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct NewObject {
    connection: Arc<Connection>,
    key: Path,
    url: String,
    unsent: BytesMut,
    parts: Option<Box<dyn MultipartUpload>>,
    in_flight: JoinSet<object_store::Result<()>>,
    /// Nothing can become of it any more.
    failed: Option<PlaceError>,
}

pub(super) fn create(objects: &Objects<'_>) -> Result<Box<dyn Upload>, PlaceError> {
    Ok(Box::new(NewObject {
        connection: objects.connect()?,
        key: objects.key()?,
        url: objects.address.url(),
        unsent: BytesMut::new(),
        parts: None,
        in_flight: JoinSet::new(),
        failed: None,
    }))
}

impl NewObject {
    fn told(&self, error: &object_store::Error) -> PlaceError {
        told("write the file", error, &self.url, &self.connection)
    }

    fn send(&mut self, part: Bytes) -> Result<(), PlaceError> {
        let connection = Arc::clone(&self.connection);
        if self.parts.is_none() {
            let begun = connection.run(connection.store.put_multipart(&self.key));
            self.parts = Some(begun.map_err(|error| self.told(&error))?);
        }
        self.settle(IN_FLIGHT_MAX - 1)?;
        if let Some(parts) = &mut self.parts {
            let part = parts.put_part(part.into());
            self.in_flight.spawn_on(part, connection.runtime.handle());
        }
        Ok(())
    }

    /// Waits until no more than so many parts are under way.
    fn settle(&mut self, under_way_max: usize) -> Result<(), PlaceError> {
        while self.in_flight.len() > under_way_max {
            let sent = match self.connection.run(self.in_flight.join_next()) {
                None => return Ok(()),
                Some(Ok(sent)) => sent,
                Some(Err(error)) => Err(error.into()),
            };
            sent.map_err(|error| self.told(&error))?;
        }
        Ok(())
    }

    fn send_all(&mut self, at_least: usize) -> Result<(), PlaceError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        while !self.unsent.is_empty() && self.unsent.len() >= at_least {
            let part = self.unsent.split_to(PART_BYTES.min(self.unsent.len())).freeze();
            self.send(part).inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<FileInfo, PlaceError> {
        let connection = Arc::clone(&self.connection);
        if self.parts.is_some() {
            self.send_all(1)?;
            self.settle(0).inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        let put = match &mut self.parts {
            Some(parts) => connection.run(parts.complete()),
            None => connection.run(connection.store.put(&self.key, self.unsent.split().freeze().into())),
        };
        put.map_err(|error| self.told(&error))?;
        self.parts = None;
        let meta = connection.run(connection.store.head(&self.key)).map_err(|error| self.told(&error))?;
        Ok(info(self.url.clone(), &meta))
    }
}

impl Upload for NewObject {
    fn write(&mut self, bytes: Bytes) -> Result<(), PlaceError> {
        self.unsent.extend_from_slice(&bytes);
        self.send_all(PART_BYTES)
    }

    fn finish(mut self: Box<Self>) -> Result<FileInfo, PlaceError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.publish()
    }

    fn abort(self: Box<Self>) {}
}

impl Drop for NewObject {
    fn drop(&mut self) {
        if !self.connection.is_ours() {
            // A fork's copy: the object is its parent's.
            std::mem::forget((std::mem::take(&mut self.in_flight), self.parts.take()));
            return;
        }
        let Some(mut parts) = self.parts.take() else { return };
        let mut in_flight = std::mem::take(&mut self.in_flight);
        let url = self.url.clone();
        let clean = async move {
            in_flight.shutdown().await;
            match tokio::time::timeout(ABORT_TIMEOUT, parts.abort()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, url, "parts of an unfinished file are left in the store")
                }
                Err(_) => tracing::warn!(url, "parts of an unfinished file may be left in the store"),
            }
        };
        if tokio::runtime::Handle::try_current().is_ok() {
            self.connection.runtime.spawn(clean);
        } else {
            self.connection.run(clean);
        }
    }
}
