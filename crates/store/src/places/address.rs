//! What a user typed, taken apart: a path on this disk, or a key in a bucket.

use super::error::PlaceError;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Disk(PathBuf),
    Object(ObjectAddress),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectAddress {
    pub(crate) kind: StoreKind,
    /// As it stands in the URL, before the colon.
    pub(crate) scheme: &'static str,
    /// A container of Azure may carry its account: `container@account.dfs.core.windows.net`.
    pub(crate) bucket: String,
    /// Without a slash at its start. May end in one, and may be empty.
    pub(crate) key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoreKind {
    S3,
    Google,
    Azure,
}

const SCHEMES: [(&str, &str, StoreKind); 7] = [
    ("s3", "s3", StoreKind::S3),
    ("s3a", "s3", StoreKind::S3),
    ("gs", "gs", StoreKind::Google),
    ("az", "az", StoreKind::Azure),
    ("azure", "az", StoreKind::Azure),
    ("abfs", "abfs", StoreKind::Azure),
    ("abfss", "abfss", StoreKind::Azure),
];

impl Address {
    pub(crate) fn parse(place: &str) -> Result<Self, PlaceError> {
        let refuse = |why: &str| Err(PlaceError::not_a_place(why, place.replace('\0', "\\0")));
        if place.is_empty() {
            return refuse("the place is empty; name a file, a folder, a glob or s3://bucket/prefix");
        }
        if place.contains('\0') {
            return refuse("a place has no NUL character in it");
        }
        let Some((scheme, rest)) = scheme(place) else { return Ok(Self::Disk(PathBuf::from(place))) };
        if scheme.eq_ignore_ascii_case("file") {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            return match decode(path) {
                Some(path) if path.starts_with('/') && !path.contains('\0') => {
                    Ok(Self::Disk(PathBuf::from(path)))
                }
                _ => refuse("a file URL is file:/// and an absolute path of this machine"),
            };
        }
        let known = SCHEMES.iter().find(|(name, ..)| scheme.eq_ignore_ascii_case(name));
        let Some(&(_, scheme, kind)) = known else {
            return refuse(
                "this kind of URL is not known; places are paths, file:///, s3://, gs://, az:// and abfss://",
            );
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return refuse("there is no bucket in the URL; it is written s3://bucket/prefix");
        }
        Ok(Self::Object(ObjectAddress { kind, scheme, bucket: bucket.to_owned(), key: key.to_owned() }))
    }
}

impl ObjectAddress {
    /// `s3://bucket`.
    pub(crate) fn bucket_url(&self) -> String {
        format!("{}://{}", self.scheme, self.bucket)
    }

    pub(crate) fn url_of(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.bucket)
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(&self.key)
    }
}

/// A path may hold a colon; a scheme is letters and digits before `://`.
fn scheme(place: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = place.split_once("://")?;
    let is_word = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_word.then_some((scheme, rest))
}

/// Undoes percent-encoding. Nothing if what comes out is not text.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let is_hex = digits.is_some_and(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(decoded) if byte == b'%' && is_hex => {
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_names_a_path_or_a_key() {
        let object = |scheme, kind, bucket: &str, key: &str| {
            Address::Object(ObjectAddress { kind, scheme, bucket: bucket.to_owned(), key: key.to_owned() })
        };
        let cases = [
            ("runs/a.jsonl", Address::Disk("runs/a.jsonl".into())),
            ("/runs/odd:name", Address::Disk("/runs/odd:name".into())),
            ("file:///runs/a%20b.jsonl", Address::Disk("/runs/a b.jsonl".into())),
            ("file://localhost/runs", Address::Disk("/runs".into())),
            ("file:///100%.jsonl", Address::Disk("/100%.jsonl".into())),
            ("s3://bucket", object("s3", StoreKind::S3, "bucket", "")),
            ("S3://bucket/a/b.jsonl", object("s3", StoreKind::S3, "bucket", "a/b.jsonl")),
            ("s3a://bucket/a/", object("s3", StoreKind::S3, "bucket", "a/")),
            ("gs://bucket/a", object("gs", StoreKind::Google, "bucket", "a")),
            ("az://box/a", object("az", StoreKind::Azure, "box", "a")),
            (
                "abfss://box@me.dfs.core.windows.net/a",
                object("abfss", StoreKind::Azure, "box@me.dfs.core.windows.net", "a"),
            ),
        ];
        for (typed, address) in cases {
            assert_eq!(Address::parse(typed), Ok(address), "{typed}");
        }
    }

    #[test]
    fn what_names_no_place_is_refused_with_a_next_step() {
        let cases = [
            ("", "name a file"),
            ("a\0b", "NUL"),
            ("file:///a%00b", "file:///"),
            ("file://elsewhere/a", "of this machine"),
            ("https://host/a.jsonl", "s3://"),
            ("s3:///key", "no bucket"),
        ];
        for (typed, said) in cases {
            let error = Address::parse(typed).unwrap_err();
            assert!(error.to_string().contains(said), "{typed:?}: {error}");
            assert_eq!(error.code(), "not_a_place");
        }
    }
}
