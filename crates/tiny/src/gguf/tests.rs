//! A file is served exactly or refused by name, and nothing in a file stops the process.

use candle_core::quantized::gguf_file::Value;
use proptest::prelude::*;
use rollyard_core::tokens::template::{Message, Render};
use rollyard_engine::generate::GenerationConfig;
use std::io::Cursor;
use std::sync::Arc;

use super::synthetic::{CONTEXT, HIDDEN, KV_WIDTH, LAYERS, Synthetic, WIDTH};
use super::{Fault, Gguf};
use crate::engine::{Ask, Ended, EngineSettings, Model, TinyEngine};
use crate::model::{Decoder, Feed};

fn read(bytes: &[u8]) -> Result<Gguf, Fault> {
    Gguf::read(Cursor::new(bytes))
}

fn model() -> Gguf {
    read(&Synthetic::new().bytes()).unwrap()
}

fn ids(model: &Gguf, text: &str) -> Vec<u32> {
    model.tokenizer.encoder().encode(text).unwrap()
}

const TEXT: [i32; 7] = [0, 41, 90, 12, 200, 41, 7];

fn logits_of(decoder: &mut dyn Decoder, text: &[i32]) -> Vec<f32> {
    let slot = decoder.begin();
    let logits = decoder.forward(&[Feed { slot, tokens: text }]).unwrap();
    decoder.end(slot);
    logits
}

#[test]
fn the_logits_are_those_of_a_llama_written_down_plainly() {
    let file = Synthetic::new();
    let logits = logits_of(model().decoder.as_mut(), &TEXT);
    let expected = plain_llama(&file, &TEXT);
    assert_eq!(logits.len(), expected.len());
    let spread = expected.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
    for (got, expected) in logits.iter().zip(&expected) {
        // The rows that go in are rounded to eight bits for the quantised matrices.
        assert!((got - expected).abs() < 0.03 * spread, "{got} {expected} of {spread}");
    }
}

/// Row by row, with every weight unpacked.
fn plain_llama(file: &Synthetic, text: &[i32]) -> Vec<f32> {
    let apply = |name: &str, x: &[f32]| -> Vec<f32> {
        let matrix = file.floats(name);
        matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    };
    let norm = |name: &str, x: &[f32]| -> Vec<f32> {
        let rms = (x.iter().map(|x| x * x).sum::<f32>() / WIDTH as f32 + 1e-5).sqrt();
        x.iter().zip(file.floats(name)).map(|(x, gain)| x / rms * gain).collect()
    };
    let turn = |row: &mut [f32], place: usize| {
        for head in row.chunks_exact_mut(16) {
            for pair in 0..8 {
                let angle = place as f32 * 10_000.0_f32.powf(-(pair as f32) / 8.0);
                let (a, b) = (head[2 * pair], head[2 * pair + 1]);
                head[2 * pair] = a * angle.cos() - b * angle.sin();
                head[2 * pair + 1] = a * angle.sin() + b * angle.cos();
            }
        }
    };
    let embed = file.floats("token_embd.weight");
    let mut rows: Vec<Vec<f32>> =
        text.iter().map(|token| embed[*token as usize * WIDTH..][..WIDTH].to_vec()).collect();
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (place, x) in rows.iter_mut().enumerate() {
            let normed = norm(&name("attn_norm"), x);
            let mut query = apply(&name("attn_q"), &normed);
            let mut key = apply(&name("attn_k"), &normed);
            turn(&mut query, place);
            turn(&mut key, place);
            keys.push(key);
            values.push(apply(&name("attn_v"), &normed));
            assert_eq!(keys[0].len(), KV_WIDTH);
            let mut seen = Vec::new();
            for head in 0..4 {
                let shared = head / 2 * 16;
                let score = |key: &Vec<f32>| -> f32 {
                    (0..16).map(|at| query[head * 16 + at] * key[shared + at]).sum::<f32>() / 4.0
                };
                let shares: Vec<f32> = keys.iter().map(|key| score(key).exp()).collect();
                let sum: f32 = shares.iter().sum();
                seen.extend((0..16).map(|at| {
                    shares.iter().zip(&values).map(|(share, value)| share * value[shared + at]).sum::<f32>()
                        / sum
                }));
            }
            x.iter_mut().zip(apply(&name("attn_output"), &seen)).for_each(|(x, more)| *x += more);
            let normed = norm(&name("ffn_norm"), x);
            let gate = apply(&name("ffn_gate"), &normed);
            let up = apply(&name("ffn_up"), &normed);
            assert_eq!(up.len(), HIDDEN);
            let gated: Vec<f32> =
                gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
            x.iter_mut().zip(apply(&name("ffn_down"), &gated)).for_each(|(x, more)| *x += more);
        }
    }
    apply("token_embd.weight", &norm("output_norm.weight", rows.last().unwrap()))
}

#[test]
fn a_text_fed_in_pieces_beside_others_gives_exactly_what_it_gives_alone() {
    let mut model = model();
    let decoder = model.decoder.as_mut();
    let alone: Vec<Vec<f32>> = [3, 4, 7].map(|end| logits_of(decoder, &TEXT[..end])).into();
    let others: Vec<_> = (0..17).map(|_| decoder.begin()).collect();
    let slot = decoder.begin();
    for (nth, piece) in [0..3, 3..4, 4..7].into_iter().enumerate() {
        let mut feeds: Vec<Feed<'_>> =
            others.iter().map(|slot| Feed { slot: *slot, tokens: &[9, 8] }).collect();
        feeds.insert(nth, Feed { slot, tokens: &TEXT[piece] });
        let logits = decoder.forward(&feeds).unwrap();
        let vocabulary = decoder.vocabulary();
        assert_eq!(&logits[nth * vocabulary..][..vocabulary], alone[nth], "piece {nth}");
    }
}

#[test]
fn a_token_or_text_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut model = model();
    let decoder = model.decoder.as_mut();
    let slot = decoder.begin();
    for (tokens, expect) in [
        (vec![3, 264], "token 264 is none of the model's, which has 264"),
        (vec![1; CONTEXT as usize + 1], "a text of 25 tokens is longer than the model's context of 24"),
    ] {
        let error = decoder.forward(&[Feed { slot, tokens: &tokens }]).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
    }
    let logits = decoder.forward(&[Feed { slot, tokens: &TEXT }]).unwrap();
    assert_eq!(logits, logits_of(decoder, &TEXT));
}

#[tokio::test]
async fn an_engine_samples_from_it_until_the_context_is_full() {
    let model = model();
    let tokenizer = Arc::clone(&model.tokenizer);
    let engine =
        TinyEngine::over(Model::Fixed(model.decoder), 0, tokenizer, EngineSettings::default()).unwrap();
    let sampling = GenerationConfig { temperature: 0.0, max_new_tokens: 1000, ..GenerationConfig::default() };
    let ask =
        |ignore_eos| Ask { prompt: TEXT.into(), sampling: sampling.clone(), ignore_eos, ..Ask::default() };
    let answer = engine.ask(ask(true)).await.unwrap();
    assert_eq!((answer.tokens.len(), answer.ended), (CONTEXT as usize - TEXT.len(), Ended::Length));
    assert_eq!(answer.logprobs.len(), answer.tokens.len());
    assert_eq!(engine.ask(ask(true)).await.unwrap().tokens, answer.tokens);
}

#[test]
fn texts_come_back_and_marks_are_found() {
    let model = model();
    let text = "<|im_start|>Grüße to 12345 日本 'S\n\t 🚆<|im_end|>";
    let found = ids(&model, text);
    assert_eq!((found[0], *found.last().unwrap()), (0, 1));
    let decoded = |skip| model.tokenizer.encoder().decode(&found, skip).unwrap();
    assert_eq!(decoded(false), text);
    assert_eq!(decoded(true), "Grüße to 12345 日本 'S\n\t 🚆");
    let messages = Message::list_from_str(r#"[{"role": "user", "content": "hi"}]"#).unwrap();
    let rendered = model.tokenizer.render(&messages, &Render::default()).unwrap();
    assert_eq!(rendered.text, "<|im_start|>hi<|im_end|>");
    assert_eq!(model.tokenizer.config().special.get("eos_token"), Some("<|im_end|>"));
    assert_eq!(model.name, "Synthetic");
}

#[test]
fn the_name_of_the_cut_decides_what_is_merged() {
    for (pre, expect) in [
        ("smollm", ["1", "2", "3", "4", "Ġto", "'", "S"].as_slice()),
        ("gpt-2", &["1234", "Ġto", "'", "S"]),
        ("llama-bpe", &["123", "4", "Ġto", "'S"]),
        ("qwen2", &["1", "2", "3", "4", "Ġto", "'S"]),
        ("default", &["123", "4", "Ġto", "'", "S"]),
    ] {
        let model = read(&Synthetic::new().with("tokenizer.ggml.pre", text(pre)).bytes()).unwrap();
        let encoder = model.tokenizer.encoder();
        let tokens: Vec<String> =
            ids(&model, "1234 to'S").iter().filter_map(|id| encoder.id_to_token(*id)).collect();
        assert_eq!(tokens, expect, "{pre}");
    }
}

#[test]
fn a_beginning_of_text_is_set_where_the_file_asks_for_it() {
    let asked = Synthetic::new().with("tokenizer.ggml.add_bos_token", Value::Bool(true)).bytes();
    let encoder = |bytes: &[u8]| read(bytes).unwrap().tokenizer.encoder().encode_with_special("!").unwrap();
    assert_eq!(encoder(&asked), [0, 35]);
    assert_eq!(encoder(&Synthetic::new().bytes()), [35]);
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let new = Synthetic::new;
    let list = |kind: i32| Value::Array(vec![Value::I32(kind); 264]);
    for (file, expect) in [
        (new().with("general.architecture", text("qwen2")), "a \"qwen2\", but only \"llama\""),
        (new().without("general.architecture"), "does not say \"general.architecture\""),
        (new().without("llama.block_count"), "does not say \"llama.block_count\""),
        (new().with("llama.block_count", text("two")), "\"llama.block_count\" in the file is \"two\""),
        (new().with("llama.block_count", Value::U32(3)), "no tensor \"blk.2.attn_q.weight\""),
        (new().with("llama.block_count", Value::U32(1)), "a tensor \"blk.1.attn_k.weight\", of which"),
        (new().with("llama.attention.head_count_kv", Value::U32(3)), "a divisor of the 4 heads"),
        (new().with("llama.rope.scaling.type", text("yarn")), "\"yarn\", but must be \"none\""),
        (new().with("llama.expert_count", Value::U32(8)), "\"llama.expert_count\" in the file is 8"),
        (
            new().with("tokenizer.ggml.model", text("llama")),
            "\"tokenizer.ggml.model\" in the file is \"llama\"",
        ),
        (new().with("tokenizer.ggml.pre", text("tekken")), "\"tekken\", but must be \"smollm\""),
        (new().without("tokenizer.ggml.pre"), "does not say \"tokenizer.ggml.pre\""),
        (new().with("tokenizer.ggml.token_type", list(6)), "6 for"),
        (new().with("tokenizer.ggml.eos_token_id", Value::U32(264)), "one of 264 tokens"),
        (
            new().with("tokenizer.ggml.merges", Value::Array(vec![text("q z")])),
            "two tokens that make a third",
        ),
        (new().with("tokenizer.chat_template", text("{% if %}")), "the tokenizer in the file is not one"),
        (new().with("general.alignment", Value::U32(0)), "\"general.alignment\" in the file is 0"),
        (new().without_tensor("output_norm.weight"), "no tensor \"output_norm.weight\""),
        (new().with_tensor("output.weight", &[264, 16]), "\"output.weight\" is [264, 16], but [264, 64]"),
        (new().with_tensor("blk.0.attn_q.bias", &[WIDTH]), "a tensor \"blk.0.attn_q.bias\", of which"),
    ] {
        let error = read(&file.bytes()).unwrap_err().to_string();
        assert!(error.contains(expect), "{error:?} instead of {expect:?}");
    }
}

#[test]
fn what_is_no_gguf_is_called_so_with_its_path_last() {
    let mut old = Synthetic::new().bytes();
    old[4] = 1;
    for (bytes, expect) in [
        (b"PK\x03\x04 and so on".as_slice(), "no GGUF file: it begins with \"PK\\u{3}\\u{4}\""),
        (b"GG", "the magic needs 4 bytes, and 2 are left"),
        (&old, "version 1 of GGUF is not known"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        std::fs::write(&path, bytes).unwrap();
        let error = Gguf::open(&path).unwrap_err().to_string();
        assert!(error.contains(expect) && error.ends_with("model.gguf"), "{error}");
    }
    let error = Gguf::open("nowhere.gguf".as_ref()).unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.ends_with(": nowhere.gguf"), "{error}");
}

#[test]
fn a_file_that_was_cut_off_is_refused_wherever_it_ends() {
    let bytes = Synthetic::new().bytes();
    // The last tensor is padded to the alignment, which nobody reads.
    let ends = (0..600).chain((600..bytes.len() - 64).step_by(61));
    for end in ends {
        let fault = read(&bytes[..end]).unwrap_err();
        assert!(matches!(fault, Fault::Truncated { .. }), "{end}: {fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn bytes_that_flipped_never_stop_the_process(
        flips in prop::collection::vec((0.0..1.0_f64, 0..3_u8, any::<u8>()), 1..6),
    ) {
        let mut bytes = Synthetic::new().bytes();
        let header = bytes.windows(10).position(|at| at == b"token_embd").unwrap() + 1500;
        for (at, where_from, with) in flips {
            // Most of the file is weights, and most of what can go wrong is not.
            let within = if where_from == 0 { bytes.len() } else { header };
            bytes[(at * within as f64) as usize] ^= with;
        }
        if let Ok(mut model) = read(&bytes) {
            let slot = model.decoder.begin();
            let _any = model.decoder.forward(&[Feed { slot, tokens: &[2, 3] }]);
            let _any = model.tokenizer.encoder().encode("any text 123");
        }
    }
}
