//! Encoders beside each other: which give the ids of `tokenizers`, and how fast.
//!
//! `rollyard-encoders MODELS TEXTS SPEED`: a folder of `<name>/tokenizer.json`, a JSON Lines file of texts on which the
//! ids are compared, and a text file on which the speed is taken, in documents of 40 kB. See
//! `docs/decisions/004-encoder.md`.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

const DOCUMENT_BYTES: usize = 40_000;
const ROUNDS: usize = 5;

type Encode = Box<dyn Fn(&str) -> Option<Vec<u32>>>;
type Load = fn(&Path) -> Result<Encode>;

const CANDIDATES: [(&str, Load); 7] = [
    ("tokenizers 0.23.2", tokenizers_stable),
    ("tokenizers 1.0.0-rc.3", tokenizers_next),
    ("fastokens 0.3.5", fastokens),
    ("tokie 0.1.4", tokie),
    ("splintr 0.22.0", splintr),
    ("kitoken 0.11.1", kitoken),
    ("rollyard", rollyard),
];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [models, texts, speed] = args.as_slice() else {
        return Err(anyhow!("usage: rollyard-encoders MODELS TEXTS SPEED"));
    };
    let texts: Vec<String> = std::fs::read_to_string(texts)
        .with_context(|| texts.clone())?
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect::<Result<_>>()?;
    let speed = std::fs::read_to_string(speed).with_context(|| speed.clone())?;
    let documents = documents(&speed);
    // A candidate that panics on a text has failed that text, and needs no backtrace.
    panic::set_hook(Box::new(|_| {}));
    let mut folders: Vec<_> = std::fs::read_dir(models)?.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    folders.sort();
    println!("| tokenizer | encoder | load ms | texts that differ | MB/s | million tokens/s |\n|---|---|---|---|---|---|");
    for folder in folders.iter().filter(|folder| folder.join("tokenizer.json").exists()) {
        compare(folder, &texts, &documents)?;
    }
    Ok(())
}

fn compare(folder: &Path, texts: &[String], documents: &[&str]) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let reference = tokenizers_stable(&folder.join("tokenizer.json"))?;
    let expected: Vec<Option<Vec<u32>>> = texts.iter().map(|text| reference(text)).collect();
    for (candidate, load) in CANDIDATES {
        let started = Instant::now();
        let loaded = panic::catch_unwind(|| load(&folder.join("tokenizer.json")));
        let load_ms = started.elapsed().as_millis();
        let encode = match loaded {
            Ok(Ok(encode)) => encode,
            Ok(Err(error)) => {
                println!("| {name} | {candidate} | refused: {error} | | | |");
                continue;
            }
            Err(_) => {
                println!("| {name} | {candidate} | panicked | | | |");
                continue;
            }
        };
        let differ = texts.iter().zip(&expected).filter(|(text, ids)| guarded(&encode, text) != **ids).count();
        let (best, tokens) = time(&encode, documents);
        let megabytes = documents.iter().map(|document| document.len()).sum::<usize>() as f64 / 1e6;
        println!(
            "| {name} | {candidate} | {load_ms} | {differ} of {} | {:.1} | {:.2} |",
            texts.len(),
            megabytes / best.as_secs_f64(),
            tokens as f64 / best.as_secs_f64() / 1e6
        );
    }
    Ok(())
}

fn guarded(encode: &Encode, text: &str) -> Option<Vec<u32>> {
    panic::catch_unwind(AssertUnwindSafe(|| encode(text))).ok().flatten()
}

/// The best of a few rounds, so that caches are warm, and the number of tokens.
fn time(encode: &Encode, documents: &[&str]) -> (Duration, usize) {
    let round = || {
        let started = Instant::now();
        let tokens = documents.iter().map(|document| guarded(encode, document).map_or(0, |ids| ids.len())).sum();
        (started.elapsed(), tokens)
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (document, tail) = rest.split_at(rest.ceil_char_boundary(DOCUMENT_BYTES));
        documents.push(document);
        rest = tail;
    }
    documents
}

fn tokenizers_stable(path: &Path) -> Result<Encode> {
    let tokenizer = tokenizers::Tokenizer::from_file(path).map_err(|error| anyhow!(error))?;
    Ok(Box::new(move |text| Some(tokenizer.encode_fast(text, false).ok()?.get_ids().to_vec())))
}

fn tokenizers_next(path: &Path) -> Result<Encode> {
    let json = tokenizers_next::canonicalize_str(&std::fs::read_to_string(path)?).map_err(|error| anyhow!("{error}"))?;
    let tokenizer = tokenizers_next::from_json(&json).map_err(|error| anyhow!("{error}"))?;
    let options = tokenizers_next::pipeline::EncodeOptions::no_specials();
    Ok(Box::new(move |text| {
        let mut tokens = Vec::new();
        tokenizer.encode_into(text, &options, &mut tokens).ok()?;
        Some(tokens.into_iter().map(|token| token.id()).collect())
    }))
}

fn fastokens(path: &Path) -> Result<Encode> {
    let tokenizer = fastokens::Tokenizer::from_file(path)?;
    Ok(Box::new(move |text| tokenizer.encode(text).ok()))
}

fn tokie(path: &Path) -> Result<Encode> {
    let tokenizer = tokie::Tokenizer::from_json(path).map_err(|error| anyhow!("{error:?}"))?;
    Ok(Box::new(move |text| Some(tokenizer.encode_ids(text, false))))
}

fn splintr(path: &Path) -> Result<Encode> {
    let tokenizer = splintr::from_json_path(path).map_err(|error| anyhow!("{error:?}"))?;
    Ok(Box::new(move |text| Some(tokenizer.encode_raw(text))))
}

fn kitoken(path: &Path) -> Result<Encode> {
    let tokenizer = kitoken::Kitoken::from_tokenizers_file(path).map_err(|error| anyhow!("{error:?}"))?;
    Ok(Box::new(move |text| tokenizer.encode(text, true).ok()))
}

fn rollyard(path: &Path) -> Result<Encode> {
    let encoder = rollyard_core::tokens::encode::Encoder::from_json(&std::fs::read(path)?)?;
    Ok(Box::new(move |text| encoder.encode(text).ok()))
}
