//! Writes a stored rollout as a row of a read.
//!
//! The pipeline changed its reward and perhaps made a copy of it; everything else is given back as it came,
//! unknown fields and number spellings included.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::pipeline::Row;

/// Appends `payload`, with what `row` says of it, to `out` as one JSON object.
///
/// Fails only if `payload` is not the JSON object it was when it was admitted.
pub fn write(out: &mut Vec<u8>, payload: &[u8], row: &Row, raw_reward: f64) -> Result<(), serde_json::Error> {
    transcribe(out, payload, RowEdit { row, raw_reward, has_extra_info: false, has_raw_reward: false })
}

/// What a function of a generator changed in a rollout, besides its reward.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Nothing of the rollout is left: `set` is all there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    #[serde(default)]
    pub set: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    pub unset: BTreeSet<String>,
}

/// [`write`], of a rollout that was changed before; `changes` is [`Changes`] in JSON.
pub fn write_changed(
    out: &mut Vec<u8>,
    payload: &[u8],
    changes: &str,
    row: &Row,
    raw_reward: f64,
) -> Result<(), serde_json::Error> {
    let changes: Changes = serde_json::from_str(changes)?;
    let mut changed = Vec::with_capacity(payload.len() + 256);
    let payload = if changes.anew { b"{}" } else { payload };
    transcribe(&mut changed, payload, ChangeEdit(changes))?;
    write(out, &changed, row, raw_reward)
}

struct ChangeEdit(Changes);

impl Edit for ChangeEdit {
    fn field(&mut self, out: &mut Vec<u8>, key: &str, value: &RawValue) {
        match self.0.set.remove(key) {
            Some(new) => field(out, key, new.get().as_bytes()),
            None if self.0.unset.contains(key) => {}
            None => field(out, key, value.get().as_bytes()),
        }
    }

    fn rest(self, out: &mut Vec<u8>) {
        for (key, value) in self.0.set {
            field(out, &key, value.get().as_bytes());
        }
    }
}

/// What is told of a rollout that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    pub advantage: f64,
    /// Times it had been drawn, this one included.
    pub used: u32,
    /// The weights it counts as sampled with.
    pub version: u64,
}

/// Appends `payload`, with what is told of its draw, to `out` as one JSON object; its reward stays as it is.
pub fn write_drawn(out: &mut Vec<u8>, payload: &[u8], drawn: &Drawn) -> Result<(), serde_json::Error> {
    transcribe(out, payload, DrawnEdit { drawn, has_extra_info: false, has_version: false })
}

fn transcribe(out: &mut Vec<u8>, payload: &[u8], edit: impl Edit) -> Result<(), serde_json::Error> {
    let start = out.len();
    let mut deserializer = serde_json::Deserializer::from_slice(payload);
    let written = deserializer.deserialize_map(Transcriber { out, edit });
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// What is changed on the way out.
trait Edit {
    fn field(&mut self, out: &mut Vec<u8>, key: &str, value: &RawValue);
    /// Fields that were not there.
    fn rest(self, out: &mut Vec<u8>);
}

struct RowEdit<'r> {
    row: &'r Row,
    raw_reward: f64,
    has_extra_info: bool,
    has_raw_reward: bool,
}

impl Edit for RowEdit<'_> {
    fn field(&mut self, out: &mut Vec<u8>, key: &str, value: &RawValue) {
        match key {
            "reward" => field(out, key, self.row.reward.to_json().as_bytes()),
            "uid" => match self.row.copy {
                Some(copy) => field(out, key, copy_uid(value, copy).as_bytes()),
                None => field(out, key, value.get().as_bytes()),
            },
            // A copy's marks are ours to write, below.
            "padded" | "loss_weight" if self.row.copy.is_some() => {}
            "extra_info" => {
                self.has_extra_info = true;
                extra_info(out, value);
            }
            _ => {
                // A writer that normalised for itself knows better what the raw reward was.
                self.has_raw_reward |= key == "raw_reward";
                field(out, key, value.get().as_bytes());
            }
        }
    }

    fn rest(self, out: &mut Vec<u8>) {
        if !self.has_raw_reward {
            field(out, "raw_reward", self.raw_reward.to_json().as_bytes());
        }
        if !self.has_extra_info {
            field(out, "extra_info", b"{}");
        }
        if self.row.copy.is_some() {
            field(out, "padded", b"true");
            field(out, "loss_weight", self.row.weight.to_json().as_bytes());
        }
    }
}

struct DrawnEdit<'r> {
    drawn: &'r Drawn,
    has_extra_info: bool,
    has_version: bool,
}

impl Edit for DrawnEdit<'_> {
    fn field(&mut self, out: &mut Vec<u8>, key: &str, value: &RawValue) {
        match key {
            // Ours to write, below.
            "advantage" | "usage_count" => {}
            // An engine may have said "default" or nothing: the run's version was stamped on it then.
            "weight_version" => {
                self.has_version = true;
                field(out, key, self.drawn.version.to_string().as_bytes());
            }
            "extra_info" => {
                self.has_extra_info = true;
                extra_info(out, value);
            }
            _ => field(out, key, value.get().as_bytes()),
        }
    }

    fn rest(self, out: &mut Vec<u8>) {
        if !self.has_version {
            field(out, "weight_version", self.drawn.version.to_string().as_bytes());
        }
        if !self.has_extra_info {
            field(out, "extra_info", b"{}");
        }
        field(out, "advantage", self.drawn.advantage.to_json().as_bytes());
        field(out, "usage_count", self.drawn.used.to_string().as_bytes());
    }
}

/// A trainer always finds an object.
fn extra_info(out: &mut Vec<u8>, value: &RawValue) {
    let value = if value.get() == "null" { "{}" } else { value.get() };
    field(out, "extra_info", value.as_bytes());
}

struct Transcriber<'o, E> {
    out: &'o mut Vec<u8>,
    edit: E,
}

impl<'de, E: Edit> Visitor<'de> for Transcriber<'_, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rollout object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { out, mut edit } = self;
        out.push(b'{');
        while let Some(Key(key)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            edit.field(out, &key, value);
        }
        edit.rest(out);
        out.push(b'}');
        Ok(())
    }
}

fn field(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(serde_json::Value::from(key).to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(value);
}

/// A copy is told from its original by its uid.
fn copy_uid(uid: &RawValue, copy: u32) -> String {
    let plain = serde_json::from_str::<String>(uid.get()).unwrap_or_else(|_| uid.get().to_owned());
    serde_json::Value::from(format!("{plain}#pad{copy}")).to_string()
}

struct Key<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

trait ToJson {
    fn to_json(self) -> String;
}

impl ToJson for f64 {
    /// Rewards are finite wherever a row is made: items are checked on entry, groups when processed.
    fn to_json(self) -> String {
        serde_json::Value::from(self).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &str, row: Row, expected: &str) {
        let mut out = Vec::new();
        write(&mut out, payload.as_bytes(), &row, 0.5).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    const ROW: Row = Row { member: 0, reward: -1.25, weight: 1.0, copy: None };

    #[test]
    fn unknown_fields_come_back_byte_for_byte() {
        check(
            r#"{"uid":"a","reward":0.5,"x":1.0e2, "ключ":[ 1,2 ],"extra_info":{"k":null}}"#,
            ROW,
            r#"{"uid":"a","reward":-1.25,"x":1.0e2,"ключ":[ 1,2 ],"extra_info":{"k":null},"raw_reward":0.5}"#,
        );
    }

    #[test]
    fn a_trainer_always_finds_extra_info() {
        check(
            r#"{"uid":"a","reward":1}"#,
            ROW,
            r#"{"uid":"a","reward":-1.25,"raw_reward":0.5,"extra_info":{}}"#,
        );
        check(
            r#"{"extra_info":null,"reward":1}"#,
            ROW,
            r#"{"extra_info":{},"reward":-1.25,"raw_reward":0.5}"#,
        );
    }

    #[test]
    fn a_copy_is_marked_and_has_its_own_uid() {
        let copy = Row { copy: Some(2), weight: 0.0, ..ROW };
        check(
            r#"{"uid":"a","reward":1,"padded":false,"extra_info":{}}"#,
            copy,
            r#"{"uid":"a#pad2","reward":-1.25,"extra_info":{},"raw_reward":0.5,"padded":true,"loss_weight":0.0}"#,
        );
        check(
            r#"{"uid":17,"reward":1,"extra_info":{}}"#,
            copy,
            r#"{"uid":"17#pad2","reward":-1.25,"extra_info":{},"raw_reward":0.5,"padded":true,"loss_weight":0.0}"#,
        );
    }

    #[test]
    fn a_function_may_change_any_field_and_the_rest_stays() {
        let payload = r#"{"uid":"a","reward":0.5,"x":1.0e2,"messages":[],"extra_info":null}"#;
        for (changes, row, expected) in [
            (
                r#"{"set":{"messages":[1],"new":2},"unset":["x"]}"#,
                ROW,
                r#"{"uid":"a","reward":-1.25,"messages":[1],"extra_info":{},"new":2,"raw_reward":0.5}"#,
            ),
            (
                r#"{"anew":true,"set":{"uid":"b","reward":9,"raw_reward":7}}"#,
                ROW,
                r#"{"raw_reward":7,"reward":-1.25,"uid":"b","extra_info":{}}"#,
            ),
            (
                r#"{"set":{"x":1}}"#,
                Row { copy: Some(1), ..ROW },
                r#"{"uid":"a#pad1","reward":-1.25,"x":1,"messages":[],"extra_info":{},"raw_reward":0.5,"padded":true,"loss_weight":1.0}"#,
            ),
        ] {
            let mut out = Vec::new();
            write_changed(&mut out, payload.as_bytes(), changes, &row, 0.5).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{changes}");
        }
    }

    #[test]
    fn a_drawn_rollout_carries_its_draw_and_the_weights_it_counts_with() {
        let drawn = Drawn { advantage: -0.25, used: 2, version: 7 };
        for (payload, expected) in [
            (
                r#"{"uid":"a","reward":0.5,"advantage":9,"weight_version":"default","extra_info":null}"#,
                r#"{"uid":"a","reward":0.5,"weight_version":7,"extra_info":{},"advantage":-0.25,"usage_count":2}"#,
            ),
            (
                r#"{"uid":"a","reward":0.5}"#,
                r#"{"uid":"a","reward":0.5,"weight_version":7,"extra_info":{},"advantage":-0.25,"usage_count":2}"#,
            ),
        ] {
            let mut out = Vec::new();
            write_drawn(&mut out, payload.as_bytes(), &drawn).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_not_an_object_writes_nothing() {
        let mut out = b"before".to_vec();
        assert!(write(&mut out, b"{\"a\":", &ROW, 0.0).is_err());
        assert_eq!(out, b"before");
    }
}
