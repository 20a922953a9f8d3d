//! The encoder against `tokenizers`: what its Python package once said, and what its crate says now.

use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use rollyard_core::tokens::encode::{Encoder, EncoderError, Path};
use serde::Deserialize;
use serde_json::{Value, json};
use tokenizers::{NormalizedString, Tokenizer};

const NAMES: [&str; 3] = ["chatml", "llama3", "spm"];

/// A tokenizer of `fixtures/tokens`, which `make.py` there has made.
struct Fixture {
    name: &'static str,
    json: Vec<u8>,
    encoder: Encoder,
    reference: Tokenizer,
}

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| NAMES.into_iter().map(load).collect());

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokens").join(name)
}

fn load(name: &'static str) -> Fixture {
    let json = std::fs::read(folder(name).join("tokenizer.json")).unwrap();
    let encoder = Encoder::from_json(&json).unwrap();
    let reference = Tokenizer::from_bytes(&json).unwrap();
    Fixture { name, json, encoder, reference }
}

fn fixture(name: &str) -> &'static Fixture {
    FIXTURES.iter().find(|fixture| fixture.name == name).unwrap()
}

fn nfc(text: &str) -> String {
    let mut normalized = NormalizedString::from(text);
    normalized.nfc();
    normalized.get().to_owned()
}

/// One line of encodings.jsonl. Decoded text is there only where it is not `text`.
#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
    /// Start and end of each token in bytes, one after the other.
    offsets: Vec<u32>,
    decoded: Option<String>,
    decoded_plain: Option<String>,
}

impl Row {
    /// Tokens that share a character share the end of the last of them.
    fn ends(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = self.offsets.chunks(2).map(|pair| pair[1]).collect();
        for at in (1..ends.len()).rev() {
            if self.offsets[2 * at] < ends[at - 1] {
                ends[at - 1] = ends[at];
            }
        }
        ends
    }
}

#[test]
fn texts_of_tokens_together_are_the_text() {
    let text = "Sum: 12 + 30 = 42.\n\nWell, that is naïve — 中文 ok";
    for Fixture { name, encoder, .. } in FIXTURES.iter() {
        let ids = encoder.encode(text).unwrap();
        let texts = encoder.texts(&ids).unwrap();
        assert_eq!(texts.len(), ids.len(), "{name}");
        let mut bytes = Vec::new();
        for part in &texts {
            let mut rest = part.as_str();
            while let Some((plain, after)) = rest.split_once("\\x") {
                bytes.extend_from_slice(plain.as_bytes());
                bytes.push(u8::from_str_radix(&after[..2], 16).unwrap());
                rest = &after[2..];
            }
            bytes.extend_from_slice(rest.as_bytes());
        }
        assert_eq!(String::from_utf8(bytes).unwrap().trim_start(), text, "{name}: {texts:?}");
    }
}

#[test]
fn bytes_that_are_no_character_are_seen_as_bytes() {
    for Fixture { name, encoder, .. } in FIXTURES.iter() {
        // Rare enough that no vocabulary of these has it whole.
        let ids = encoder.encode("𓀀").unwrap();
        let texts = encoder.texts(&ids).unwrap();
        assert!(texts.concat().contains("\\xF0"), "{name}: {texts:?}");
        assert!(!texts.concat().contains('\u{fffd}'), "{name}: {texts:?}");
        assert_eq!(encoder.texts(&[u32::MAX]).unwrap(), [""], "{name}");
    }
}

#[test]
fn ids_are_those_of_the_python_package() {
    for Fixture { name, encoder, .. } in FIXTURES.iter() {
        let rows = std::fs::read_to_string(folder(name).join("encodings.jsonl")).unwrap();
        for row in rows.lines().map(|line| serde_json::from_str::<Row>(line).unwrap()) {
            let Row { text, ids, .. } = &row;
            let encoded = encoder.encode_with_ends(text).unwrap();
            assert_eq!(encoded.ids, *ids, "{name}: {text:?}");
            assert_eq!(encoder.encode(text).unwrap(), *ids, "{name}: {text:?}");
            // Offsets of composed characters are looser in `tokenizers`.
            if *name != "chatml" || nfc(text) == *text {
                assert_eq!(encoded.ends, row.ends(), "{name}: {text:?}");
            }
            let decoded = encoder.decode(ids, false).unwrap();
            assert_eq!(&decoded, row.decoded.as_ref().unwrap_or(text), "{name}: {text:?}");
            let plain = encoder.decode(ids, true).unwrap();
            assert_eq!(&plain, row.decoded_plain.as_ref().unwrap_or(text), "{name}: {text:?}");
        }
    }
}

#[test]
fn the_path_is_known_and_has_a_reason() {
    assert_eq!(fixture("chatml").encoder.path(), &Path::Fast);
    assert_eq!(fixture("llama3").encoder.path(), &Path::Fast);
    let reason = "normalizer Replace is not NFC".to_owned();
    assert_eq!(fixture("spm").encoder.path(), &Path::Fallback { reason });
    assert_eq!(fixture("spm").encoder.path().to_string(), "tokenizers (normalizer Replace is not NFC)");
}

#[test]
fn tokens_and_ids_name_each_other() {
    for Fixture { name, encoder, reference, .. } in FIXTURES.iter() {
        assert_eq!(encoder.vocab_size(), reference.get_vocab_size(true), "{name}");
        for id in 0..1000 {
            let token = reference.id_to_token(id);
            assert_eq!(encoder.id_to_token(id), token, "{name}: {id}");
            if let Some(token) = token {
                assert_eq!(encoder.token_to_id(&token), reference.token_to_id(&token), "{name}: {token:?}");
            }
        }
        assert_eq!(encoder.token_to_id("no such token"), None);
    }
    let chatml = &fixture("chatml").encoder;
    let added: Vec<&str> = chatml.added_tokens().iter().map(|token| token.content.as_str()).collect();
    assert_eq!(added[..5], ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]);
    assert!(chatml.is_special(chatml.token_to_id("<|im_end|>").unwrap()));
    assert!(!chatml.is_special(chatml.token_to_id("<think>").unwrap()));
}

#[test]
fn a_word_outside_the_merges_is_one_token_where_merges_are_ignored() {
    let llama3 = &fixture("llama3").encoder;
    assert_eq!(llama3.encode(" rollouts").unwrap(), [llama3.token_to_id("Ġrollouts").unwrap()]);
    let mut json: Value = serde_json::from_slice(&fixture("llama3").json).unwrap();
    json["model"]["ignore_merges"] = json!(false);
    let merged = Encoder::from_json(json.to_string().as_bytes()).unwrap();
    assert_eq!(merged.path(), &Path::Fast);
    assert!(merged.encode(" rollouts").unwrap().len() > 1);
}

#[test]
fn a_token_that_shares_a_character_shares_its_end() {
    let encoded = fixture("llama3").encoder.encode_with_ends("a🚀b").unwrap();
    let (first, last) = (encoded.ends.first().unwrap(), encoded.ends.last().unwrap());
    assert_eq!((*first, *last), (1, 6));
    assert!(encoded.ends.iter().all(|end| [1, 5, 6].contains(end)), "{:?}", encoded.ends);
}

/// Each change to the file is one that the fast path has to notice.
#[test]
fn what_is_not_understood_is_left_to_tokenizers() {
    let cases = [
        ("/normalizer", json!({"type": "NFKC"}), "normalizer NFKC is not NFC"),
        ("/model/dropout", json!(0.1), "the model drops merges at random"),
        ("/model/end_of_word_suffix", json!("</w>"), "the model marks the parts of words"),
        (
            "/pre_tokenizer/pretokenizers/0/pattern/Regex",
            json!("\\w+"),
            "split pattern [\"\\\\w+\"] is not a known one",
        ),
        (
            "/pre_tokenizer/pretokenizers/0/behavior",
            json!("Removed"),
            "split behavior Removed is not Isolated",
        ),
        (
            "/pre_tokenizer/pretokenizers/1/add_prefix_space",
            json!(true),
            "ByteLevel adds a space before the text",
        ),
        (
            "/pre_tokenizer/pretokenizers/1/use_regex",
            json!(true),
            "ByteLevel splits again what Split has split",
        ),
        (
            "/added_tokens/0/lstrip",
            json!(true),
            "added token \"<|endoftext|>\" takes in what stands around it",
        ),
        ("/added_tokens/1/id", json!(7), "added token \"<|im_start|>\" has id 7, and 601 is its turn"),
        ("/decoder", json!(null), "decoder (none) is not ByteLevel"),
    ];
    for (pointer, value, expected) in cases {
        let mut json: Value = serde_json::from_slice(&fixture("chatml").json).unwrap();
        *json.pointer_mut(pointer).unwrap() = value;
        let encoder = Encoder::from_json(json.to_string().as_bytes()).unwrap();
        assert_eq!(encoder.path(), &Path::Fallback { reason: expected.into() }, "{pointer}");
    }
}

#[test]
fn a_bad_file_is_an_error_that_says_where() {
    let error = |json: &str| Encoder::from_json(json.as_bytes()).unwrap_err().to_string();
    assert!(error("{").contains("line 1 column 1"), "{}", error("{"));
    assert!(error("{}").contains("missing field `model`"), "{}", error("{}"));
    let unknown = error(r#"{"version":"1.0","model":{"type":"Rope"}}"#);
    assert!(unknown.contains("model type Rope is not BPE"), "{unknown}");

    let mut json: Value = serde_json::from_slice(&fixture("chatml").json).unwrap();
    json["model"]["merges"][3] = json!(["Ġ", "nowhere"]);
    match Encoder::from_json(json.to_string().as_bytes()) {
        Err(EncoderError::MergeOutsideVocabulary { rank, left, right }) => {
            assert_eq!((rank, left.as_str(), right.as_str()), (3, "Ġ", "nowhere"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_share_an_encoder() {
    let encoder = &fixture("chatml").encoder;
    let text = "<|im_start|>user\nIt's the yard's 42nd rollout.<|im_end|>\n".repeat(50);
    let expected = encoder.encode(&text).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(encoder.encode(&text).unwrap(), expected)));
        }
    });
}

fn texts() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "<|im_start|>",
        "<|im_end|>",
        "<|im_",
        "<think>",
        "</think>",
        "<|eot_id|>",
        "<s>",
        "</s>",
        "e\u{301}",
        "\u{323}\u{301}",
        "각",
        " rollouts",
        "the ",
        "'ve",
        "\r\n",
        "    ",
        "\n\n",
        "🏳️‍🌈",
        "<0x0A>",
        "▁",
    ]);
    let part = prop_oneof![
        3 => special.prop_map(str::to_owned),
        2 => "[ a-zA-Z0-9.,'\n]{0,12}",
        2 => "\\PC{0,6}",
        1 => any::<String>(),
        1 => "(a|ab|字){40,90}",
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ids_are_those_of_the_crate(text in texts()) {
        for Fixture { name, encoder, reference, .. } in FIXTURES.iter() {
            let expected = reference.encode_fast(text.as_str(), false).unwrap();
            let encoded = encoder.encode_with_ends(&text).unwrap();
            prop_assert_eq!(&encoded.ids, expected.get_ids(), "{}", name);
            let framed = reference.encode_fast(text.as_str(), true).unwrap();
            prop_assert_eq!(encoder.encode_with_special(&text).unwrap(), framed.get_ids(), "{}", name);
            for skip in [false, true] {
                let decoded = reference.decode(&encoded.ids, skip).unwrap();
                prop_assert_eq!(encoder.decode(&encoded.ids, skip).unwrap(), decoded, "{}", name);
            }
            prop_assert_eq!(encoded.ends.len(), encoded.ids.len());
            prop_assert!(encoded.ends.is_sorted());
            prop_assert!(encoded.ends.iter().all(|&end| text.is_char_boundary(end as usize)));
        }
    }

    #[test]
    fn byte_level_text_comes_back_composed(text in texts()) {
        let chatml = &fixture("chatml").encoder;
        let encoded = chatml.encode_with_ends(&text).unwrap();
        prop_assert_eq!(encoded.ends.last().copied().unwrap_or(0) as usize, text.len());
        // Added tokens part what stands on both of their sides, so each part is composed alone.
        if !text.contains('<') {
            prop_assert_eq!(chatml.decode(&encoded.ids, false).unwrap(), nfc(&text));
        }
        let llama3 = &fixture("llama3").encoder;
        prop_assert_eq!(llama3.decode(&llama3.encode(&text).unwrap(), false).unwrap(), text);
    }

    /// A boundary that the encoder reports is one where two texts can be encoded apart.
    #[test]
    fn ids_up_to_an_end_decode_to_the_text_up_to_it(text in texts()) {
        let llama3 = &fixture("llama3").encoder;
        let encoded = llama3.encode_with_ends(&text).unwrap();
        for (count, &end) in (1..).zip(&encoded.ends) {
            if encoded.ends.get(count) != Some(&end) {
                let decoded = llama3.decode(&encoded.ids[..count], false).unwrap();
                prop_assert_eq!(decoded, &text[..end as usize]);
            }
        }
    }
}
