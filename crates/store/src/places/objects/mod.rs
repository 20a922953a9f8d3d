//! Places in a bucket.
//!
//! A bucket has keys and no folders; a slash in a key is taken for one. A key that is asked for by a name without a
//! slash at its end may be a file or a folder: the store is asked for the file first.

pub(crate) mod connection;
mod told;
mod upload;

use super::address::ObjectAddress;
use super::error::{PlaceError, in_words};
use super::pattern::{Pattern, can_hold_rollouts, is_hidden};
use super::roots::Roots;
use super::{Depth, FileInfo, Listing, ReadAt, Upload};
use bytes::Bytes;
use connection::{Connection, Connections};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, ListResult, ObjectMeta, ObjectStoreExt};
use std::ops::Range;
use std::sync::Arc;
use told::told;

#[derive(Debug)]
pub(super) struct Objects<'a> {
    pub(super) roots: &'a Roots,
    pub(super) connections: &'a Arc<Connections>,
    pub(super) address: ObjectAddress,
}

impl Objects<'_> {
    pub(super) fn files(&self) -> Result<Vec<FileInfo>, PlaceError> {
        let listing = self.browse(Depth::All)?;
        if listing.files.is_empty() {
            let near = match Pattern::parse(&self.address.key, "") {
                Ok(Some(_)) => {
                    let near = "the glob matches no file".to_owned();
                    return Err(PlaceError::NotFound { near, place: self.address.url() });
                }
                _ => self.names_in(&self.address.key),
            };
            return Err(PlaceError::NoRollouts { near, place: self.address.url() });
        }
        Ok(listing.files)
    }

    pub(super) fn browse(&self, depth: Depth) -> Result<Listing, PlaceError> {
        self.roots.admit_object(&self.address)?;
        let key = &self.address.key;
        let is_folder = key.is_empty() || key.ends_with('/');
        // Brackets may be part of a name; stars never are.
        if !is_folder && !key.contains(['*', '?']) {
            match self.head() {
                Ok(file) => return Ok(Listing { folders: Vec::new(), files: vec![file] }),
                Err(PlaceError::NotFound { near, .. }) if near.contains("file") => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(pattern) = Pattern::parse(key, &self.address.url())? {
            let depth = if pattern.levels == Some(1) { Depth::One } else { Depth::All };
            let is_meant = |below: &str| pattern.matches(below);
            let files = self.list(&pattern.base, depth, &is_meant)?.files;
            return Ok(Listing { folders: Vec::new(), files });
        }
        let folder = if is_folder { key.clone() } else { format!("{key}/") };
        let is_meant = |below: &str| below.rsplit('/').next().is_some_and(can_hold_rollouts);
        let listing = self.list(&folder, depth, &is_meant)?;
        if listing == Listing::default() && !folder.is_empty() && !self.has_any(&folder)? {
            let above = key.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
            return Err(PlaceError::NotFound { near: self.names_in(above), place: self.address.url() });
        }
        Ok(listing)
    }

    pub(super) fn look(&self) -> Result<FileInfo, PlaceError> {
        self.roots.admit_object(&self.address)?;
        self.head()
    }

    pub(super) fn open(&self) -> Result<Arc<dyn ReadAt>, PlaceError> {
        self.roots.admit_object(&self.address)?;
        let meta = self.meta()?;
        let (address, connections) = (self.address.clone(), Arc::clone(self.connections));
        Ok(Arc::new(OpenObject { address, connections, key: self.key()?, meta }))
    }

    pub(super) fn create(&self) -> Result<Box<dyn Upload>, PlaceError> {
        self.roots.admit_object(&self.address)?;
        upload::create(self)
    }

    fn connect(&self) -> Result<Arc<Connection>, PlaceError> {
        self.connections.get(&self.address)
    }

    /// The key of a file.
    fn key(&self) -> Result<Path, PlaceError> {
        let key = &self.address.key;
        if key.is_empty() || key.ends_with('/') {
            return Err(PlaceError::not_a_place(
                "this is a folder, and a file was asked for",
                self.address.url(),
            ));
        }
        self.path(key)
    }

    fn path(&self, key: &str) -> Result<Path, PlaceError> {
        let path = Path::parse(key);
        path.map_err(|error| {
            PlaceError::not_a_place(format!("the key cannot be used ({error})"), self.address.url())
        })
    }

    fn meta(&self) -> Result<ObjectMeta, PlaceError> {
        let (connection, key) = (self.connect()?, self.key()?);
        let meta = connection.run(connection.store.head(&key));
        meta.map_err(|error| told("look at the file", &error, &self.address.url(), &connection))
    }

    fn head(&self) -> Result<FileInfo, PlaceError> {
        Ok(info(self.address.url(), &self.meta()?))
    }

    /// Of a folder, whose key ends in a slash unless it is the whole bucket.
    fn list(
        &self,
        folder: &str,
        depth: Depth,
        is_meant: &dyn Fn(&str) -> bool,
    ) -> Result<Listing, PlaceError> {
        let found = self.list_all(folder, depth)?;
        let mut listing = Listing::default();
        for object in &found.objects {
            let Some(below) = object.location.as_ref().strip_prefix(folder) else { continue };
            if !below.split('/').any(is_hidden) && is_meant(below) {
                listing.files.push(info(self.address.url_of(object.location.as_ref()), object));
            }
        }
        let shown = found.common_prefixes.iter().filter(|path| !path.filename().is_some_and(is_hidden));
        listing.folders.extend(shown.map(|path| format!("{}/", self.address.url_of(path.as_ref()))));
        listing.files.sort_by(|a, b| a.url.cmp(&b.url));
        listing.folders.sort();
        Ok(listing)
    }

    fn list_all(&self, folder: &str, depth: Depth) -> Result<ListResult, PlaceError> {
        let (connection, prefix) = (self.connect()?, self.path(folder)?);
        let prefix = (!folder.is_empty()).then_some(&prefix);
        let found = match depth {
            Depth::One => connection.run(connection.store.list_with_delimiter(prefix)),
            Depth::All => connection.run(async {
                let objects = connection.store.list(prefix).try_collect().await?;
                Ok(ListResult { objects, common_prefixes: Vec::new(), extensions: Default::default() })
            }),
        };
        found.map_err(|error| told("list the folder", &error, &self.address.url(), &connection))
    }

    fn has_any(&self, folder: &str) -> Result<bool, PlaceError> {
        let (connection, prefix) = (self.connect()?, self.path(folder)?);
        let first = connection.run(async { connection.store.list(Some(&prefix)).try_next().await });
        let first =
            first.map_err(|error| told("list the folder", &error, &self.address.url(), &connection))?;
        Ok(first.is_some())
    }

    /// For an error, and so never one itself. Nothing outside of the roots is named.
    fn names_in(&self, folder: &str) -> String {
        let above = ObjectAddress { key: folder.to_owned(), ..self.address.clone() };
        let nothing = || "nor is there anything near it".to_owned();
        if self.roots.admit_object(&above).is_err() {
            return nothing();
        }
        let Ok(found) = self.list_all(folder, Depth::One) else { return nothing() };
        let files = found.objects.iter().filter_map(|object| object.location.filename()).map(str::to_owned);
        let folders = found.common_prefixes.iter().filter_map(|path| path.filename());
        in_words(folders.map(|name| format!("{name}/")).chain(files).collect())
    }
}

/// One object, as it was when it was opened: a newer one under its key is not read by mistake.
#[derive(Debug)]
struct OpenObject {
    address: ObjectAddress,
    connections: Arc<Connections>,
    key: Path,
    meta: ObjectMeta,
}

impl ReadAt for OpenObject {
    fn read_at(&self, range: Range<u64>) -> Result<Bytes, PlaceError> {
        let range = range.start..range.end.min(self.meta.size);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let wanted = range.end - range.start;
        let connection = self.connections.get(&self.address)?;
        let options = GetOptions {
            range: Some(range.into()),
            if_match: self.meta.e_tag.clone(),
            ..GetOptions::default()
        };
        let read =
            connection.run(async { connection.store.get_opts(&self.key, options).await?.bytes().await });
        let bytes = read.map_err(|error| told("read the file", &error, &self.address.url(), &connection))?;
        if bytes.len() as u64 != wanted {
            let why = format!("the store sent {} of {wanted} bytes", bytes.len());
            return Err(PlaceError::Unreachable { why, place: self.address.url() });
        }
        Ok(bytes)
    }

    fn size_bytes(&self) -> u64 {
        self.meta.size
    }
}

fn info(url: String, meta: &ObjectMeta) -> FileInfo {
    let modified_ms = meta.last_modified.timestamp_millis();
    let stamp = meta.e_tag.clone().unwrap_or_else(|| format!("{modified_ms}-{}", meta.size));
    FileInfo { url, size_bytes: meta.size, stamp, modified_ms }
}
