//! A rollout as it came, made into a line of the viewer's format.
//!
//! What its writer sent stays, byte for byte where it can: the ledger's facts are only added where they are missing.
//! Token ids and what goes with them are nine tenths of a rollout and nothing to read, so they are left out unless
//! they are wanted.

use rollyard_core::ids::Time;
use rollyard_core::ledger::Admitted;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use super::fates::Fate;

/// The fields that hold one value for each token; see `wire::rollout`. A number by one of these names stays.
pub const TOKEN_FIELDS: [&str; 11] = [
    "tokens",
    "loss_mask",
    "prompt_tokens",
    "response_tokens",
    "turns",
    "logprobs",
    "rollout_log_probs",
    "response_logprobs",
    "versions",
    "weight_versions",
    "token_rewards",
];

/// What the yard knows of a rollout that it took in.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub run: &'a str,
    /// The number of its record in the run's log, which no other rollout of the run has.
    pub seq: u64,
    /// The how-manieth of its group it was, from 0.
    pub sample_index: u64,
    pub admitted: &'a Admitted,
}

/// Adds the line of a rollout to `out`, its end included.
pub fn write_rollout(
    out: &mut Vec<u8>,
    payload: &[u8],
    facts: &Facts<'_>,
    with_tokens: bool,
) -> Result<(), serde_json::Error> {
    let begin = out.len();
    let fields: Fields<'_> = serde_json::from_slice(payload)?;
    let has = |name: &str| fields.get(name).is_some();
    let mut line = Object::begin(out);
    for (name, value) in &fields.0 {
        let left_out = !with_tokens && TOKEN_FIELDS.contains(&name.as_ref()) && value.get().starts_with('[');
        match name.as_ref() {
            "attributes" => {}
            "response_tokens" if left_out && !has("response_length") => {
                line.put("response_length", &elements(value.get()).to_string())?;
            }
            _ if left_out => {}
            name => line.put(name, value.get())?,
        }
    }
    write_attributes(&mut line, &fields, facts)?;
    if !has("timestamp") {
        line.put("timestamp", &json!(iso(facts.admitted.at)).to_string())?;
    }
    line.end();
    end_line(out, begin);
    Ok(())
}

/// Adds the line of a fate to `out`, its end included. `seq` is the record that tells of it: the latest counts.
pub fn write_fate(out: &mut Vec<u8>, seq: u64, fate: &Fate) -> Result<(), serde_json::Error> {
    let begin = out.len();
    out.extend(b"{\"kind\":\"fate\",");
    let fields = serde_json::to_vec(fate)?;
    out.extend(fields.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default());
    let _in_memory = write!(out, ",\"seq\":{seq},\"at\":\"{}\"}}", iso(fate.at));
    end_line(out, begin);
    Ok(())
}

/// As ISO 8601 says it, in UTC.
pub fn iso(at: Time) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX).to_string()
}

fn write_attributes(
    line: &mut Object<'_>,
    fields: &Fields<'_>,
    facts: &Facts<'_>,
) -> Result<(), serde_json::Error> {
    let admitted = facts.admitted;
    let own = fields.get("attributes");
    let given: Fields<'_> = own.and_then(|own| serde_json::from_str(own.get()).ok()).unwrap_or_default();
    if let Some(own) = own.filter(|own| !own.get().starts_with('{')) {
        line.put("attributes_given", own.get())?;
    }
    let mut text = Vec::with_capacity(256);
    let mut attributes = Object::begin(&mut text);
    for (name, value) in &given.0 {
        attributes.put(name, value.get())?;
    }
    let source = ["data_source", "env_name"].into_iter().find_map(|name| fields.get(name).map(RawValue::get));
    let source = source.filter(|source| source.starts_with('"')).or(data_source(fields));
    let ours = [
        ("sample_index", json!(facts.sample_index).to_string()),
        ("step", json!(admitted.version.unwrap_or_default()).to_string()),
        ("rollout_n", json!(facts.seq).to_string()),
        ("reward", json!(admitted.reward).to_string()),
        ("data_source", source.unwrap_or("\"unknown\"").to_owned()),
        ("experiment_name", json!(facts.run).to_string()),
        ("validate", "false".to_owned()),
        ("group", json!(admitted.group.0).to_string()),
        ("round", json!(admitted.round).to_string()),
        ("epoch", json!(admitted.epoch).to_string()),
    ];
    for (name, value) in ours {
        let is_told = given.get(name).is_some() || (name == "epoch" && value == "null");
        if !is_told {
            attributes.put(name, &value)?;
        }
    }
    attributes.end();
    line.put("attributes", &String::from_utf8_lossy(&text))
}

/// Some writers say it beside other things of theirs.
fn data_source<'a>(fields: &Fields<'a>) -> Option<&'a str> {
    let extra: Fields<'a> = serde_json::from_str(fields.get("extra_info")?.get()).ok()?;
    extra.get("data_source").map(RawValue::get).filter(|source| source.starts_with('"'))
}

/// A line break in JSON can only stand between two values, where a space does as well.
fn end_line(out: &mut Vec<u8>, begin: usize) {
    for byte in out.iter_mut().skip(begin).filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    out.push(b'\n');
}

/// How many values are in the text of a list of numbers.
fn elements(list: &str) -> usize {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    if inner.trim_ascii().is_empty() { 0 } else { inner.bytes().filter(|byte| *byte == b',').count() + 1 }
}

/// An object's fields in their order, each as it was written.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Borrowed where it can be: without this, every key would be copied.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A JSON object under construction.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    fn put(&mut self, name: &str, value: &str) -> Result<(), serde_json::Error> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        serde_json::to_writer(&mut *self.out, name)?;
        self.out.push(b':');
        self.out.extend(value.as_bytes());
        Ok(())
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollyard_core::ids::GroupNo;
    use serde_json::Value;

    fn admitted() -> Admitted {
        Admitted {
            at: Time(1_768_563_190_744),
            uid: "u1".into(),
            instance: "i".into(),
            group: GroupNo(7),
            round: 2,
            epoch: None,
            version: Some(140),
            reward: 0.5,
            answered: true,
            digest: 0,
            size_bytes: 0,
            origin: None,
        }
    }

    fn line(payload: &str, with_tokens: bool) -> Value {
        let admitted = admitted();
        let facts = Facts { run: "grpo", seq: 42, sample_index: 3, admitted: &admitted };
        let mut out = Vec::new();
        write_rollout(&mut out, payload.as_bytes(), &facts, with_tokens).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
        assert_eq!(out.last(), Some(&b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_rollout_keeps_its_fields_and_gets_what_the_yard_knows() {
        let line = line(
            r#"{"uid":"u1","instance_id":"i","messages":[{"role":"user","content":"hi","name":"x"}],
                "reward":0.5,"extra_info":{"data_source":"maze"},"weight_version":140,"mine":[1,{"a":null}]}"#,
            false,
        );
        assert_eq!(line["messages"], json!([{"role": "user", "content": "hi", "name": "x"}]));
        assert_eq!(line["mine"], json!([1, {"a": null}]));
        assert_eq!(
            line["attributes"],
            json!({"sample_index": 3, "step": 140, "rollout_n": 42, "reward": 0.5, "data_source": "maze",
                "experiment_name": "grpo", "validate": false, "group": 7, "round": 2})
        );
        assert_eq!(line["timestamp"], "2026-01-16T11:33:10.744Z");
    }

    #[test]
    fn what_the_writer_said_wins() {
        let given =
            r#"{"attributes":{"step":9,"data_source":"code","mine":true},"timestamp":12.5,"env_name":"e"}"#;
        let line = line(given, false);
        assert_eq!((&line["attributes"]["step"], &line["attributes"]["mine"]), (&json!(9), &json!(true)));
        assert_eq!(line["attributes"]["data_source"], "code");
        assert_eq!(line["attributes"]["reward"], 0.5);
        assert_eq!(line["timestamp"], 12.5);
    }

    #[test]
    fn attributes_that_are_no_object_are_kept_beside_ours() {
        let line = line(r#"{"attributes":[1]}"#, false);
        assert_eq!((&line["attributes_given"], &line["attributes"]["group"]), (&json!([1]), &json!(7)));
    }

    #[test]
    fn tokens_are_left_out_unless_wanted() {
        let given = r#"{"response_tokens":[1,2,3],"response_logprobs":[-0.5,0,0],"tokens":17,"turns":3}"#;
        let without = line(given, false);
        assert_eq!(without["response_length"], 3);
        assert!(without.get("response_tokens").is_none() && without.get("response_logprobs").is_none());
        assert_eq!((&without["tokens"], &without["turns"]), (&json!(17), &json!(3)), "numbers stay");
        assert_eq!(line(given, true)["response_tokens"], json!([1, 2, 3]));
    }

    #[test]
    fn a_fate_is_one_line() {
        let fate = Fate {
            uid: "a\"b".into(),
            status: super::super::fates::Status::Dropped,
            reason: Some(rollyard_core::pipeline::DropReason::NoVariance),
            why: None,
            step: None,
            version: Some(3),
            at: Time(0),
        };
        let mut out = Vec::new();
        write_fate(&mut out, 12, &fate).unwrap();
        let line: Value = serde_json::from_slice(&out).unwrap();
        let expected = json!({"kind": "fate", "uid": "a\"b", "status": "dropped", "reason": "no_variance", "version": 3,
            "seq": 12, "at": "1970-01-01T00:00:00Z"});
        assert_eq!(line, expected);
    }
}
