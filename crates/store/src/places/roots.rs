//! Keeps readers inside of the folders that a server was told to show.
//!
//! A path is looked at twice: as it was written, so that nothing outside can be asked about at all, and as the
//! real path behind its links, so that no link leads out. Names that decode to a step upwards are refused although
//! nothing here decodes them: whatever stands in front of this server might.

use super::Places;
use super::address::{Address, ObjectAddress, decode};
use super::error::PlaceError;
use std::path::{Component, Path, PathBuf};

/// Which folders may be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// A command at somebody's own terminal.
    Anywhere,
    /// What a server was told at its start: folders, and prefixes of buckets as `s3://bucket/prefix`.
    Only(Vec<String>),
}

impl Roots {
    /// Refuses a path by how it is written. It is absolute.
    pub(super) fn admit_written(&self, path: &Path) -> Result<(), PlaceError> {
        if matches!(self, Self::Anywhere) {
            return Ok(());
        }
        let climbs = path.components().any(|part| match part {
            Component::Normal(name) => name.to_str().is_none_or(climbs),
            Component::ParentDir => true,
            _ => false,
        });
        let inside = self.folders().any(|root| path.starts_with(&root) || is_real_inside(path, &root));
        if climbs || !inside { Err(self.refused(path.display().to_string())) } else { Ok(()) }
    }

    /// Refuses a path that has been resolved, or one below a resolved folder.
    pub(super) fn admit_real(&self, real: &Path) -> Result<(), PlaceError> {
        let inside = matches!(self, Self::Anywhere) || self.folders().any(|root| is_real_inside(real, &root));
        if inside { Ok(()) } else { Err(self.refused(real.display().to_string())) }
    }

    pub(super) fn admit_object(&self, address: &ObjectAddress) -> Result<(), PlaceError> {
        let Self::Only(roots) = self else { return Ok(()) };
        let inside = roots.iter().any(|root| match Address::parse(root) {
            Ok(Address::Object(root)) => {
                let prefix = root.key.trim_end_matches('/');
                let below = address.key.strip_prefix(prefix);
                root.scheme == address.scheme
                    && root.bucket == address.bucket
                    && (prefix.is_empty()
                        || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            }
            _ => false,
        });
        let climbs = address.key.split('/').any(climbs);
        if climbs || !inside { Err(self.refused(address.url())) } else { Ok(()) }
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let roots = match self {
            Self::Anywhere => &[],
            Self::Only(roots) => roots.as_slice(),
        };
        roots.iter().filter_map(|root| match Address::parse(root) {
            Ok(Address::Disk(path)) => std::path::absolute(path).ok(),
            _ => None,
        })
    }

    fn refused(&self, place: String) -> PlaceError {
        let allowed = match self {
            Self::Anywhere => String::new(),
            Self::Only(roots) if roots.is_empty() => "none".to_owned(),
            Self::Only(roots) => roots.join(", "),
        };
        PlaceError::NotAllowed { allowed, place }
    }
}

impl Places {
    /// Whether a place may be read at all, by how it is written: nothing is looked for.
    pub fn admit(&self, place: &str) -> Result<(), PlaceError> {
        match Address::parse(place)? {
            Address::Disk(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                self.roots.admit_written(&path)
            }
            Address::Object(address) => self.roots.admit_object(&address),
        }
    }
}

/// The root itself may be a link: what counts is where it leads.
fn is_real_inside(path: &Path, root: &Path) -> bool {
    root.canonicalize().is_ok_and(|real| path.starts_with(real))
}

/// Whether a name is a step upwards or a path of its own, however often it was encoded.
fn climbs(name: &str) -> bool {
    let mut name = name.to_owned();
    for _ in 0..4 {
        if name == ".." {
            return true;
        }
        match decode(&name) {
            None => return true,
            Some(decoded) if decoded == name => return false,
            Some(decoded) if decoded.contains(['/', '\\', '\0']) => return true,
            Some(decoded) => name = decoded,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outside_of_the_prefix_are_refused() {
        let roots =
            Roots::Only(vec!["s3://bucket/prefix/".to_owned(), "gs://open".to_owned(), "/srv".to_owned()]);
        let cases = [
            ("s3://bucket/prefix", true),
            ("s3://bucket/prefix/", true),
            ("s3://bucket/prefix/a/b.jsonl", true),
            ("s3://bucket/prefix/100%.jsonl", true),
            ("gs://open", true),
            ("gs://open/anything", true),
            ("s3://bucket", false),
            ("s3://bucket/", false),
            ("s3://bucket/prefix-other/a.jsonl", false),
            ("s3://bucket/pre", false),
            ("s3://other/prefix/a.jsonl", false),
            ("s3://open/anything", false),
            ("gs://bucket/prefix/a.jsonl", false),
            ("s3://bucket/prefix/../secret", false),
            ("s3://bucket/prefix/%2e%2e/secret", false),
            ("s3://bucket/prefix/%2E./secret", false),
            ("s3://bucket/prefix/%252e%252e/secret", false),
            ("s3://bucket/prefix/..%2fsecret", false),
            ("s3://bucket/prefix/a%00", false),
        ];
        for (url, allowed) in cases {
            let Ok(Address::Object(address)) = Address::parse(url) else { panic!("{url}") };
            assert_eq!(roots.admit_object(&address).is_ok(), allowed, "{url}");
        }
    }

    #[test]
    fn no_roots_allow_nothing() {
        let roots = Roots::Only(Vec::new());
        assert_eq!(roots.admit_written(Path::new("/")).unwrap_err().code(), "not_allowed");
        assert_eq!(roots.admit_real(Path::new("/")).unwrap_err().code(), "not_allowed");
    }
}
