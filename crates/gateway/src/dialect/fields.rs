//! Reads a JSON object field by field, so that whatever is wrong is told with its path and its value.
//!
//! Values stay text until somebody wants them: a body of a megabyte is mostly messages that nobody here looks into.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use crate::refusal::{Kind, Refusal};

#[derive(Debug)]
pub(super) struct Fields<'a> {
    /// Empty for the body itself.
    path: String,
    entries: Entries<'a>,
}

#[derive(Debug)]
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    pub(super) fn of_body(body: &'a [u8]) -> Result<Self, Refusal> {
        let bad = |reason: String| {
            Refusal::new(Kind::BadRequest, format!("the body is not a JSON object: {reason}"))
        };
        let text = std::str::from_utf8(body).map_err(|error| bad(error.to_string()))?;
        let entries = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        Ok(Self { path: String::new(), entries })
    }

    pub(super) fn of(path: impl Into<String>, raw: &'a RawValue, want: &str) -> Result<Self, Refusal> {
        let path = path.into();
        match serde_json::from_str(raw.get()) {
            Ok(entries) => Ok(Self { path, entries }),
            Err(_) => Err(wrong(path, raw, want)),
        }
    }

    /// Where a field is.
    pub(super) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The value as it was written. A `null` is as good as nothing; of two with one name the last counts.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.entries.0.iter().rev().find(|(key, _)| key == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    pub(super) fn need(&self, name: &str, want: &str) -> Result<&'a RawValue, Refusal> {
        self.raw(name).ok_or_else(|| {
            let at = self.at(name);
            let message = format!("field \"{at}\" is missing; it must be {want}");
            Refusal::field(at, message)
        })
    }

    pub(super) fn get<T: DeserializeOwned>(&self, name: &str, want: &str) -> Result<Option<T>, Refusal> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| wrong(self.at(name), raw, want))
    }

    pub(super) fn number(
        &self,
        name: &str,
        range: RangeInclusive<f32>,
        want: &str,
    ) -> Result<Option<f32>, Refusal> {
        self.checked(name, want, |number| range.contains(number))
    }

    pub(super) fn count(
        &self,
        name: &str,
        range: RangeInclusive<u32>,
        want: &str,
    ) -> Result<Option<u32>, Refusal> {
        self.checked(name, want, |count| range.contains(count))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.get(name, "true or false")?.unwrap_or_default())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.get(name, "a text")
    }

    pub(super) fn needed_text(&self, name: &str) -> Result<String, Refusal> {
        let want = "a text that is not empty";
        let raw = self.need(name, want)?;
        let text: Option<String> = serde_json::from_str(raw.get()).ok();
        text.filter(|text| !text.is_empty()).ok_or_else(|| wrong(self.at(name), raw, want))
    }

    /// A text as it was written, quotes and all: a long one is passed on without being read.
    pub(super) fn needed_raw_text(&self, name: &str) -> Result<&'a RawValue, Refusal> {
        let raw = self.need(name, "a text")?;
        if is_text(raw) { Ok(raw) } else { Err(wrong(self.at(name), raw, "a text")) }
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Refusal> {
        self.raw(name).map(|raw| Self::of(self.at(name), raw, "an object")).transpose()
    }

    pub(super) fn list(&self, name: &str, want: &str) -> Result<Option<Vec<&'a RawValue>>, Refusal> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        list(&self.at(name), raw, want).map(Some)
    }

    /// Says that a field cannot be as it is; what is left out is not wrong.
    pub(super) fn wrong(&self, name: &str, want: &str) -> Refusal {
        match self.raw(name) {
            Some(raw) => wrong(self.at(name), raw, want),
            None => Refusal::field(self.at(name), format!("field \"{}\" must be {want}", self.at(name))),
        }
    }

    fn checked<T: DeserializeOwned>(
        &self,
        name: &str,
        want: &str,
        fits: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, Refusal> {
        match self.get(name, want)? {
            Some(value) if !fits(&value) => Err(self.wrong(name, want)),
            value => Ok(value),
        }
    }
}

pub(super) fn list<'a>(path: &str, raw: &'a RawValue, want: &str) -> Result<Vec<&'a RawValue>, Refusal> {
    serde_json::from_str(raw.get()).map_err(|_| wrong(path, raw, want))
}

pub(super) fn wrong(path: impl Into<String>, found: &RawValue, want: &str) -> Refusal {
    let path = path.into();
    let message = format!("field \"{path}\" is {}, but must be {want}", shown(found.get()));
    Refusal::field(path, message)
}

pub(super) fn is_text(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// Its beginning: prompts are long, and refusals are read by people.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(80) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Key(name), value)) = map.next_entry()? {
                    entries.push((name, value));
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Reader).map(Self)
    }
}
