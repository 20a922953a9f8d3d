//! Reads one rollout: `{"uid", "instance_id", "messages", "reward", "extra_info", ...}`.
//!
//! One pass checks the whole text and picks out the few facts the ledger keeps; the bytes themselves are
//! stored as they came. Only when that pass fails does a second, slower one find out which field is to
//! blame, so that the writer is told its name and value.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::num::NonZeroU32;

use super::reference::{Stored, WireStored};

/// Uids and instance ids longer than this are a mistake, not a name.
pub const NAME_BYTES_MAX: usize = 1024;

/// Squares of rewards up to this still add up to a finite variance.
pub const REWARD_MAX: f64 = 1e100;

/// What the ledger needs to know of a rollout; the rest stays in its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub uid: String,
    pub instance: String,
    pub reward: f64,
    /// The last message has text in it.
    pub answered: bool,
    /// The weights it was sampled with, where the writer knows.
    pub version: Option<u64>,
    /// The pass over the data set it belongs to, where the writer knows: rollouts of two never share a group.
    pub epoch: Option<u64>,
    pub source: Source,
}

/// What replay asks of a rollout. Queues do not, and their writers may use these names for something else: so
/// a field of another kind is no error here, but told to whoever asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    pub env: Option<String>,
    /// When it was made, in seconds since 1970.
    pub timestamp: Option<f64>,
    /// Tokens of the response, where the item says.
    pub response_len: Option<u32>,
    /// Rollouts in its group, where it is not the run's usual number.
    pub group_size: Option<NonZeroU32>,
    /// A field that is not what it must be.
    pub wrong: Option<ItemError>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    #[error("the body is empty; send one JSON object")]
    Empty,
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("{value} is not valid JSON, found at line {line} column {column}{}; send a number", in_field(.field))]
    NotANumber { value: String, line: usize, column: usize, field: Option<String> },
    #[error("a rollout is a JSON object, not {0}")]
    NotAnObject(String),
    #[error("field {field:?} is missing")]
    Missing { field: &'static str },
    #[error("field {field:?} is {value}, but must be {expected}")]
    Wrong { field: &'static str, value: String, expected: &'static str },
}

fn in_field(field: &Option<String>) -> String {
    field.as_ref().map(|name| format!(" in field {name:?}")).unwrap_or_default()
}

impl ItemError {
    /// The short name in error answers.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_body",
            Self::NotJson(_) => "not_json",
            Self::NotANumber { .. } => "not_a_number",
            Self::NotAnObject(_) => "not_an_object",
            Self::Missing { .. } => "missing_field",
            Self::Wrong { .. } => "wrong_field",
        }
    }

    /// The field that is to blame, where one is.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Missing { field } | Self::Wrong { field, .. } => Some(field),
            Self::NotANumber { field, .. } => field.as_deref(),
            Self::Empty | Self::NotJson(_) | Self::NotAnObject(_) => None,
        }
    }
}

/// Reads one rollout, or says which field is wrong.
pub fn decode(bytes: &[u8]) -> Result<Item, ItemError> {
    match decode_any(bytes)? {
        (item, None) => Ok(item),
        (_, Some(_)) => Err(ItemError::Missing { field: "messages" }),
    }
}

/// Reads one rollout, or what stands for one whose bytes are stored already.
pub fn decode_any(bytes: &[u8]) -> Result<(Item, Option<Stored>), ItemError> {
    if bytes.trim_ascii().is_empty() {
        return Err(ItemError::Empty);
    }
    // Up front, because values that are skipped over would not be looked at.
    let text = std::str::from_utf8(bytes).map_err(|error| ItemError::NotJson(error.to_string()))?;
    let wire: WireItem<'_> = match serde_json::from_str(text) {
        // A list would be taken for the fields in their order.
        Ok(_) if !bytes.trim_ascii_start().starts_with(b"{") => return Err(not_an_object(bytes)),
        Ok(wire) => wire,
        Err(error) => return Err(diagnose(bytes, &error)),
    };
    let source = wire.source();
    let uid = name("uid", wire.uid)?;
    let instance = name("instance_id", wire.instance_id)?;
    let (answered, stored) = match (wire.messages, wire.stored) {
        (Some(Messages { last_has_text }), _) => (last_has_text, None),
        (None, Some(raw)) => {
            let (stored, answered) = stored(raw)?;
            (answered, Some(stored))
        }
        (None, None) => return Err(ItemError::Missing { field: "messages" }),
    };
    if let Some(raw) = wire.extra_info
        && !(raw.get().starts_with('{') || raw.get() == "null")
    {
        return Err(wrong("extra_info", raw, "an object"));
    }
    let item = Item {
        uid,
        instance,
        reward: reward(wire.reward)?,
        answered,
        version: count("weight_version", wire.weight_version)?,
        epoch: count("epoch", wire.epoch)?,
        source,
    };
    Ok((item, stored))
}

fn stored(raw: &RawValue) -> Result<(Stored, bool), ItemError> {
    const EXPECTED: &str = r#"{"bytes": 70000, "xxh3": "16 hex digits", "crc32c": "8 hex digits", "answered": true, "claim": 1}"#;
    let read = serde_json::from_str::<WireStored>(raw.get()).ok().and_then(|wire| wire.read());
    read.ok_or_else(|| wrong("stored", raw, EXPECTED))
}

/// A field that is absent is `None`; one that is null is there, and wrong.
#[derive(Deserialize)]
struct WireItem<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    uid: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    instance_id: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    messages: Option<Messages>,
    #[serde(borrow, default, deserialize_with = "present")]
    reward: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    extra_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    weight_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    epoch: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    env_name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    group_size: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    response_length: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    response_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stored: Option<&'a RawValue>,
}

impl WireItem<'_> {
    fn source(&self) -> Source {
        let mut source = Source::default();
        source.env = source.read("env_name", self.env_name, "a text", |raw| serde_json::from_str(raw).ok());
        source.timestamp =
            source.read("timestamp", self.timestamp, "a finite number of seconds since 1970", |raw| {
                raw.trim_matches('"').parse().ok().filter(|secs: &f64| secs.is_finite())
            });
        source.group_size =
            source.read("group_size", self.group_size, "a whole number from 1", |raw| raw.parse().ok());
        let said = source
            .read("response_length", self.response_length, "a number of tokens", |raw| raw.parse().ok());
        let counted = self.response_tokens.and_then(|raw| elements(raw.get()));
        source.response_len = said.or(counted);
        source
    }
}

impl Source {
    /// The field as `parse` reads it; one that is there and is not what it must be is noted.
    fn read<T>(
        &mut self,
        field: &'static str,
        raw: Option<&RawValue>,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let raw = raw.filter(|raw| raw.get() != "null")?;
        let value = parse(raw.get());
        if value.is_none() && self.wrong.is_none() {
            self.wrong = Some(wrong(field, raw, expected));
        }
        value
    }
}

/// How many numbers are in the text of a list of them.
fn elements(list: &str) -> Option<u32> {
    let inner = list.strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim_ascii().is_empty() {
        return Some(0);
    }
    u32::try_from(inner.bytes().filter(|byte| *byte == b',').count() + 1).ok()
}

fn present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A list of message objects, of which only the end matters here.
struct Messages {
    last_has_text: bool,
}

/// A message object: whether its content has text.
struct WireMessage {
    has_text: bool,
}

impl<'de> Deserialize<'de> for WireMessage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = WireMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireMessage, A::Error> {
                #[derive(Deserialize)]
                #[serde(field_identifier, rename_all = "lowercase")]
                enum Key {
                    Content,
                    #[serde(other)]
                    Other,
                }
                let mut has_text = false;
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Content => has_text = text_in(map.next_value()?),
                        Key::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(WireMessage { has_text })
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Last;
        impl<'de> Visitor<'de> for Last {
            type Value = Messages;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of message objects")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Messages, A::Error> {
                let mut last_has_text = false;
                while let Some(message) = seq.next_element::<WireMessage>()? {
                    last_has_text = message.has_text;
                }
                Ok(Messages { last_has_text })
            }
        }
        deserializer.deserialize_seq(Last)
    }
}

fn text_in(content: &RawValue) -> bool {
    match content.get().as_bytes() {
        [b'"', text @ .., b'"'] => !text.trim_ascii().is_empty(),
        [b'[', parts @ .., b']'] => !parts.trim_ascii().is_empty(),
        _ => false,
    }
}

/// A name may be a text or a whole number: instance 1 and instance "1" are the same.
fn name(field: &'static str, raw: Option<&RawValue>) -> Result<String, ItemError> {
    const EXPECTED: &str = "a non-empty text of at most 1024 bytes, or a whole number";
    let raw = raw.ok_or(ItemError::Missing { field })?;
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(raw.get()).map_err(|_| wrong(field, raw, EXPECTED))?,
        _ => match raw.get().parse::<i128>() {
            Ok(number) => number.to_string(),
            Err(_) => return Err(wrong(field, raw, EXPECTED)),
        },
    };
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(wrong(field, raw, EXPECTED));
    }
    Ok(text)
}

/// Python's `True` and `False` count as 1 and 0, as they do in the filter we stand in for.
fn reward(raw: Option<&RawValue>) -> Result<f64, ItemError> {
    let raw = raw.ok_or(ItemError::Missing { field: "reward" })?;
    match raw.get() {
        "true" => Ok(1.0),
        "false" => Ok(0.0),
        text => match serde_json::from_str::<f64>(text) {
            Ok(number) if number.abs() <= REWARD_MAX => Ok(number),
            _ => Err(wrong("reward", raw, "a finite number between -1e100 and 1e100")),
        },
    }
}

fn count(field: &'static str, raw: Option<&RawValue>) -> Result<Option<u64>, ItemError> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    // A version is a number to compare by; SGLang reports it as a text.
    let digits = raw.get().trim_matches('"');
    match digits.parse() {
        Ok(number) => Ok(Some(number)),
        // "default" is what an engine says before its first weight update.
        Err(_) if raw.get() == "\"default\"" => Ok(None),
        Err(_) => Err(wrong(field, raw, "a whole number, 0 or more")),
    }
}

fn wrong(field: &'static str, raw: &RawValue, expected: &'static str) -> ItemError {
    ItemError::Wrong { field, value: shorten(raw.get()), expected }
}

/// Enough of a value to recognise it by.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(SHOWN).collect::<String>())
}

fn not_an_object(bytes: &[u8]) -> ItemError {
    ItemError::NotAnObject(shorten(&String::from_utf8_lossy(bytes.trim_ascii())))
}

/// The slow path: why did the fast one fail?
fn diagnose(bytes: &[u8], error: &serde_json::Error) -> ItemError {
    if let Some(found) = not_a_number(bytes, error) {
        return found;
    }
    if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        return ItemError::NotJson(error.to_string());
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return not_an_object(bytes);
    }
    #[derive(Deserialize)]
    struct OnlyMessages<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        messages: Option<&'a RawValue>,
    }
    match serde_json::from_slice::<OnlyMessages<'_>>(bytes) {
        Ok(OnlyMessages { messages: Some(raw) }) if serde_json::from_str::<Messages>(raw.get()).is_err() => {
            wrong("messages", raw, "a list of message objects")
        }
        // Valid JSON that still does not fit: a field given twice.
        _ => ItemError::NotJson(error.to_string()),
    }
}

/// Python writes NaN and Infinity as bare words, which JSON does not have.
fn not_a_number(bytes: &[u8], error: &serde_json::Error) -> Option<ItemError> {
    let start =
        bytes.split(|&b| b == b'\n').take(error.line().saturating_sub(1)).map(|l| l.len() + 1).sum::<usize>();
    // serde_json points just behind the letter it stumbled over; the word may begin a letter or two before.
    let column = error.column();
    for back in (0..=3).rev() {
        let Some(at) = (start + column).checked_sub(back) else { continue };
        let Some(rest) = bytes.get(at..) else { continue };
        for word in ["NaN", "-Infinity", "Infinity", "-NaN"] {
            if rest.starts_with(word.as_bytes()) {
                return Some(ItemError::NotANumber {
                    value: word.to_owned(),
                    line: error.line(),
                    column: (column + 1).saturating_sub(back),
                    field: last_key(bytes.get(..at)?),
                });
            }
        }
    }
    None
}

/// The key whose value begins where `before` ends: the text in quotes ahead of the last colon.
fn last_key(before: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(before).ok()?.trim_end();
    let key = text.strip_suffix(':')?.trim_end().strip_suffix('"')?;
    Some(key.rsplit('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"uid":"u1","instance_id":7,"messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":"yo"}],"reward":0.5,"extra_info":{},"mine":[1,{"a":null}]}"#;

    #[test]
    fn a_rollout_gives_its_facts() {
        let item = decode(GOOD.as_bytes()).unwrap();
        assert_eq!((item.uid.as_str(), item.instance.as_str(), item.reward), ("u1", "7", 0.5));
        assert!(item.answered);
        assert_eq!((item.version, item.epoch), (None, None));
    }

    #[test]
    fn instance_one_and_instance_text_one_are_the_same() {
        let as_text = GOOD.replace(":7,", ":\"7\",");
        assert_eq!(decode(as_text.as_bytes()), decode(GOOD.as_bytes()));
    }

    #[test]
    fn replay_finds_its_facts_and_queues_do_not_mind_others() {
        let with = |fields: &str| {
            let text = GOOD.replace("\"mine\"", &format!("{fields},\"mine\""));
            decode(text.as_bytes()).unwrap().source
        };
        let source =
            with(r#""env_name":"math","timestamp":"1700000000.5","group_size":4,"response_tokens":[5, 6,7]"#);
        assert_eq!((source.env.as_deref(), source.timestamp), (Some("math"), Some(1_700_000_000.5)));
        assert_eq!((source.response_len, source.group_size), (Some(3), NonZeroU32::new(4)));
        assert_eq!(source.wrong, None);
        for (fields, part) in [
            (r#""env_name":7"#, "\"env_name\" is 7"),
            (r#""timestamp":"2026-01-01""#, "\"timestamp\" is \"2026-01-01\""),
            (r#""group_size":0"#, "\"group_size\" is 0"),
            (r#""response_length":-1"#, "\"response_length\" is -1"),
        ] {
            let wrong = with(fields).wrong.unwrap().to_string();
            assert!(wrong.contains(part), "{wrong:?} lacks {part:?}");
        }
    }

    #[test]
    fn truth_values_count_as_rewards() {
        assert_eq!(decode(GOOD.replace("0.5", "true").as_bytes()).unwrap().reward, 1.0);
    }

    #[test]
    fn an_empty_last_message_is_not_an_answer() {
        for (content, answered) in [
            (r#""yo""#, true),
            (r#""""#, false),
            (r#""  ""#, false),
            ("null", false),
            ("[]", false),
            (r#"[{"type":"text"}]"#, true),
        ] {
            let item = decode(GOOD.replace(r#""yo""#, content).as_bytes()).unwrap();
            assert_eq!(item.answered, answered, "{content}");
        }
    }

    #[test]
    fn an_engines_own_version_is_read_as_text_or_number() {
        for (version, expected) in
            [("3", Some(3)), ("\"12\"", Some(12)), ("\"default\"", None), ("null", None)]
        {
            let text = GOOD.replace("\"mine\"", &format!("\"weight_version\":{version},\"mine\""));
            assert_eq!(decode(text.as_bytes()).unwrap().version, expected, "{version}");
        }
    }

    /// The error for `GOOD` with `from` replaced by `to` must mention all of `parts`.
    fn refused(from: &str, to: &str, parts: &[&str]) {
        let text = GOOD.replace(from, to);
        let message = decode(text.as_bytes()).unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{to:?}: {message:?} lacks {part:?}");
        }
    }

    #[test]
    fn a_wrong_field_is_named_with_its_value() {
        refused(r#""uid":"u1","#, "", &["uid", "missing"]);
        refused(r#""u1""#, "\"\"", &["uid", "\"\"", "non-empty"]);
        refused(r#""u1""#, "[1]", &["uid", "[1]"]);
        refused(":7,", ":1.5,", &["instance_id", "1.5"]);
        refused(":7,", ":null,", &["instance_id", "null"]);
        refused(":7,", ":true,", &["instance_id", "true"]);
        refused("0.5", "\"high\"", &["reward", "high", "finite number"]);
        refused("0.5", "1e999", &["reward", "1e999"]);
        refused("0.5", "null", &["reward", "null"]);
        refused(
            r#"[{"role":"user","content":"hi"},
        {"role":"assistant","content":"yo"}]"#,
            "null",
            &["messages", "null"],
        );
        refused("0.5", "{\"a\":1}", &["reward"]);
        refused(r#""extra_info":{}"#, r#""extra_info":"x""#, &["extra_info", "\"x\"", "object"]);
        refused(r#"[{"role":"user","content":"hi"},"#, r#"["hi","#, &["messages", "hi", "list of message"]);
        refused(r#"{"role":"user","content":"hi"}"#, r#"["user","hi"]"#, &["messages", "list of message"]);
        refused("\"messages\"", "\"message\"", &["messages", "missing"]);
        refused("\"mine\":", "\"weight_version\":-1,\"mine\":", &["weight_version", "-1"]);
    }

    #[test]
    fn nan_is_named_with_its_field() {
        refused("0.5", "NaN", &["NaN", "reward"]);
        refused("0.5", " -Infinity", &["-Infinity", "reward"]);
        refused("[1,", "[Infinity,", &["Infinity"]);
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for (text, part) in [
            ("", "empty"),
            ("  \n", "empty"),
            ("[1]", "object"),
            ("\"x\"", "object"),
            ("{\"uid\":", "not JSON"),
            ("hello", "not JSON"),
            ("{} {}", "not JSON"),
            ("{\"uid\":\"a\",\"uid\":\"b\"}", "duplicate"),
        ] {
            let message = decode(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(part), "{text:?}: {message:?} lacks {part:?}");
        }
        assert!(decode(b"{\"uid\":\"\xff\"}").is_err());
    }

    mod any_bytes {
        use super::*;
        use crate::pipeline::Row;
        use crate::wire::row;
        use proptest::prelude::*;

        /// A good rollout with some of its bytes changed, taken out or put in.
        fn mangled() -> impl Strategy<Value = Vec<u8>> {
            let edit = (any::<proptest::sample::Index>(), any::<u8>(), 0..3u8);
            proptest::collection::vec(edit, 0..4).prop_map(|edits| {
                let mut bytes = GOOD.as_bytes().to_vec();
                for (at, byte, how) in edits {
                    let at = at.index(bytes.len());
                    match how {
                        0 => bytes[at] = byte,
                        1 => drop(bytes.remove(at)),
                        _ => bytes.insert(at, byte),
                    }
                }
                bytes
            })
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(2000))]

            #[test]
            fn what_is_taken_can_be_given_back(bytes in prop_oneof![mangled(), any::<Vec<u8>>()]) {
                match decode(&bytes) {
                    Err(error) => prop_assert!(!error.to_string().is_empty()),
                    Ok(item) => {
                        let shown = Row { member: 0, reward: item.reward, weight: 1.0, copy: None };
                        let mut out = Vec::new();
                        row::write(&mut out, &bytes, &shown, item.reward).unwrap();
                        prop_assert_eq!(decode(&out).unwrap(), item);
                    }
                }
            }
        }
    }
}
