//! A rollout whose bytes lie elsewhere: what the ledger keeps of it, and how to know the bytes again.
//!
//! On the wire it is the rollout without its `messages`, and with `stored` in their place:
//! `{"uid", "instance_id", "reward", …, "stored": {"bytes", "xxh3", "crc32c", "answered", "claim"}}`.
//!
//! Bytes are stored for one claim of the run: if another node takes the run over, they are stored anew. So whoever
//! throws away what an old owner left unfinished cannot throw away what a new one relies on.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::item::{Item, ItemError};

/// The bytes of a rollout, as they can be known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub size_bytes: u32,
    /// xxh3, 64 bits: the same uid with another digest is another rollout.
    pub digest: u64,
    pub crc32c: u32,
    /// The claim of the run's owner for which they were stored.
    pub claim: u64,
}

impl Stored {
    /// `None` if there is too much of it.
    #[must_use]
    pub fn of(bytes: &[u8], claim: u64) -> Option<Self> {
        let size_bytes = u32::try_from(bytes.len()).ok()?;
        Some(Self { size_bytes, digest: xxh3_64(bytes), crc32c: crc32c::crc32c(bytes), claim })
    }

    /// Where the bytes of the rollout `uid` lie.
    ///
    /// No two rollouts share a blob, because a run takes a uid once: so it can go when its rollout goes. Whoever brings
    /// the same bytes again puts them where they are already.
    #[must_use]
    pub fn blob_name(&self, uid: &str) -> String {
        blob_name(uid, self.digest, self.claim)
    }
}

/// The name of the blob that holds a rollout with this digest.
#[must_use]
pub fn blob_name(uid: &str, digest: u64, claim: u64) -> String {
    format!("u.{claim}.{:032x}.{digest:016x}", xxh3_128(uid.as_bytes()))
}

/// The field `stored`.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireStored {
    bytes: u32,
    xxh3: String,
    crc32c: String,
    answered: bool,
    claim: u64,
}

impl WireStored {
    /// What it says, and whether the rollout's last message has text; `None` if it cannot be read.
    pub(super) fn read(&self) -> Option<(Stored, bool)> {
        let digest = hex(&self.xxh3, 16)?;
        let crc32c = u32::try_from(hex(&self.crc32c, 8)?).ok()?;
        let stored = Stored { size_bytes: self.bytes, digest, crc32c, claim: self.claim };
        (stored.size_bytes > 0).then_some((stored, self.answered))
    }
}

/// The number that so many digits stand for.
pub fn hex(digits: &str, len: usize) -> Option<u64> {
    let is_hex = digits.len() == len && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// What stands for a rollout, in JSON; `None` if it has something to tell that only its bytes can.
#[must_use]
pub fn encode(item: &Item, stored: Stored) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Wire<'a> {
        uid: &'a str,
        instance_id: &'a str,
        reward: f64,
        weight_version: Option<u64>,
        epoch: Option<u64>,
        env_name: Option<&'a str>,
        timestamp: Option<f64>,
        group_size: Option<std::num::NonZeroU32>,
        response_length: Option<u32>,
        stored: WireStored,
    }
    if item.source.wrong.is_some() {
        return None;
    }
    let Stored { size_bytes, digest, crc32c, claim } = stored;
    let (xxh3, crc32c) = (format!("{digest:016x}"), format!("{crc32c:08x}"));
    let wire = Wire {
        uid: &item.uid,
        instance_id: &item.instance,
        reward: item.reward,
        weight_version: item.version,
        epoch: item.epoch,
        env_name: item.source.env.as_deref(),
        timestamp: item.source.timestamp,
        group_size: item.source.group_size,
        response_length: item.source.response_len,
        stored: WireStored { bytes: size_bytes, xxh3, crc32c, answered: item.answered, claim },
    };
    serde_json::to_vec(&wire).ok()
}

/// What stands for the rollout in `bytes`, and the name of the blob to put them into.
///
/// `None` if only the bytes themselves can say it.
pub fn of_rollout(bytes: &[u8], claim: u64) -> Result<Option<(Vec<u8>, String)>, ItemError> {
    let item = super::item::decode(bytes)?;
    let Some(stored) = Stored::of(bytes, claim) else { return Ok(None) };
    Ok(encode(&item, stored).map(|reference| (reference, stored.blob_name(&item.uid))))
}

#[cfg(test)]
mod tests {
    use super::super::item::{self, decode_any};
    use super::*;

    const WHOLE: &str = r#"{"uid":"u 1","instance_id":7,"messages":[{"role":"assistant","content":"hi"}],"reward":true,
        "weight_version":"12","epoch":3,"env_name":"gsm","timestamp":"1794973588.5","group_size":4,
        "response_tokens":[1,2,3],"extra_info":{}}"#;

    #[test]
    fn it_says_the_same_as_the_rollout() {
        let (reference, name) = of_rollout(WHOLE.as_bytes(), 3).unwrap().unwrap();
        let whole = item::decode(WHOLE.as_bytes()).unwrap();
        let (item, stored) = decode_any(&reference).unwrap();
        assert_eq!(item, whole);
        assert_eq!(stored, Stored::of(WHOLE.as_bytes(), 3));
        assert_eq!(stored.unwrap().blob_name("u 1"), name);
        assert_eq!(decode_any(WHOLE.as_bytes()).unwrap(), (whole, None));
    }

    #[test]
    fn names_differ_by_uid_and_content_and_claim() {
        let stored = |bytes: &str| Stored::of(bytes.as_bytes(), 1).unwrap();
        assert_ne!(stored("a").blob_name("u"), Stored::of(b"a", 2).unwrap().blob_name("u"));
        assert_ne!(stored("a").blob_name("u"), stored("a").blob_name("v"));
        assert_ne!(stored("a").blob_name("u"), stored("b").blob_name("u"));
        assert_eq!(stored("a").blob_name("u"), stored("a").blob_name("u"));
    }

    #[test]
    fn what_only_the_bytes_can_say_has_no_reference() {
        let odd = WHOLE.replace(r#""group_size":4"#, r#""group_size":"many""#);
        assert_eq!(of_rollout(odd.as_bytes(), 1), Ok(None));
        assert!(of_rollout(b"{}", 1).is_err());
    }

    #[test]
    fn a_bad_one_is_refused_by_its_field() {
        let (good, _) = of_rollout(WHOLE.as_bytes(), 1).unwrap().unwrap();
        let good = String::from_utf8(good).unwrap();
        assert!(matches!(item::decode(good.as_bytes()), Err(ItemError::Missing { field: "messages" })));
        for (from, to) in [
            (r#""xxh3":""#, r#""xxh3":"+"#),
            (r#""crc32c":""#, r#""crc32c":"0"#),
            (r#""bytes":"#, r#""bytes":-"#),
            (r#""answered":true"#, r#""answered":1"#),
            (r#""stored":{"#, r#""stored":{"more":1,"#),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            let error = decode_any(bad.as_bytes()).unwrap_err();
            assert_eq!((error.code(), error.field()), ("wrong_field", Some("stored")), "{bad}: {error}");
        }
        let none = good.split(",\"stored\"").next().unwrap().to_owned() + "}";
        assert_eq!(decode_any(none.as_bytes()), Err(ItemError::Missing { field: "messages" }));
    }
}
