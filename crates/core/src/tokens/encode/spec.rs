//! Reads a tokenizer.json and says whether the fast path does all that it asks for.
//!
//! Everything is looked at: a field that this file does not know how to honour sends the whole tokenizer to
//! `tokenizers`, with a reason. Nothing is guessed.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bpe::Bpe;
use super::error::EncoderError;
use super::scan::Pattern;

/// A tokenizer.json, with the model left unread until its type is known.
#[derive(Debug, Deserialize)]
pub(super) struct Spec<'a> {
    #[serde(default)]
    version: Value,
    #[serde(default)]
    added_tokens: Vec<AddedSpec>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    #[serde(borrow)]
    model: &'a RawValue,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct AddedSpec {
    pub(super) id: u32,
    pub(super) content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    pub(super) normalized: bool,
    pub(super) special: bool,
}

/// What the fast path needs to know.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) added: Vec<AddedSpec>,
    pub(super) nfc: bool,
    pub(super) pattern: Pattern,
    pub(super) frame: Frame,
    pub(super) bpe: Bpe<'a>,
}

/// The ids that the post-processor sets around a text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

/// Why a tokenizer is left to `tokenizers`.
pub(super) type Reason = String;

#[derive(Deserialize)]
struct ModelHead {
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl<'a> Spec<'a> {
    pub(super) fn parse(json: &'a [u8]) -> Result<Spec<'a>, EncoderError> {
        Ok(serde_json::from_slice(json)?)
    }

    /// The plan, or the reason why there is none.
    pub(super) fn plan(self) -> Result<Result<Plan<'a>, Reason>, EncoderError> {
        let head: ModelHead = serde_json::from_str(self.model.get())?;
        if head.kind.as_deref() != Some("BPE") {
            return Ok(Err(format!("model type {} is not BPE", head.kind.as_deref().unwrap_or("(none)"))));
        }
        // Merges are checked for `tokenizers` as well, which takes them on trust.
        let bpe: Bpe = serde_json::from_str(self.model.get())?;
        bpe.check_merges()?;
        Ok(self.parts().map(|(nfc, pattern, frame)| Plan {
            added: self.added_tokens,
            nfc,
            pattern,
            frame,
            bpe,
        }))
    }

    fn parts(&self) -> Result<(bool, Pattern, Frame), Reason> {
        if self.version != "1.0" {
            return Err(format!("version {} is not 1.0", self.version));
        }
        for token in &self.added_tokens {
            if token.single_word || token.lstrip || token.rstrip {
                return Err(format!("added token {:?} takes in what stands around it", token.content));
            }
        }
        let nfc = normalizes(&self.normalizer)?;
        let pattern = pattern(&self.pre_tokenizer)?;
        if kind(&self.decoder) != "ByteLevel" {
            return Err(format!("decoder {} is not ByteLevel", kind(&self.decoder)));
        }
        Ok((nfc, pattern, frame(&self.post_processor)?))
    }
}

fn kind(component: &Value) -> &str {
    component.get("type").and_then(Value::as_str).unwrap_or("(none)")
}

fn list<'v>(component: &'v Value, field: &str) -> &'v [Value] {
    component.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn flag(component: &Value, field: &str, default: bool) -> bool {
    component.get(field).and_then(Value::as_bool).unwrap_or(default)
}

/// Whether NFC is asked for.
fn normalizes(normalizer: &Value) -> Result<bool, Reason> {
    match kind(normalizer) {
        _ if normalizer.is_null() => Ok(false),
        "NFC" => Ok(true),
        "Sequence" => {
            let steps: Result<Vec<bool>, Reason> =
                list(normalizer, "normalizers").iter().map(normalizes).collect();
            Ok(steps?.contains(&true))
        }
        other => Err(format!("normalizer {other} is not NFC")),
    }
}

/// The cut that a `ByteLevel` makes alone, or `Split`s before it.
fn pattern(pre_tokenizer: &Value) -> Result<Pattern, Reason> {
    let steps = match kind(pre_tokenizer) {
        "Sequence" => list(pre_tokenizer, "pretokenizers"),
        _ => std::slice::from_ref(pre_tokenizer),
    };
    let Some((last, splits)) = steps.split_last() else {
        return Err("there is no pre-tokenizer".into());
    };
    if kind(last) != "ByteLevel" {
        return Err(format!("pre-tokenizer {} is not ByteLevel", kind(last)));
    }
    if flag(last, "add_prefix_space", true) {
        return Err("ByteLevel adds a space before the text".into());
    }
    match (flag(last, "use_regex", true), splits) {
        (true, []) => Ok(Pattern::Gpt2),
        (true, _) => Err("ByteLevel splits again what Split has split".into()),
        (false, _) => {
            let regexes = splits.iter().map(split_regex).collect::<Result<Vec<String>, Reason>>()?;
            Pattern::of_splits(&regexes)
                .ok_or_else(|| format!("split pattern {regexes:?} is not a known one"))
        }
    }
}

fn split_regex(split: &Value) -> Result<String, Reason> {
    if kind(split) != "Split" {
        return Err(format!("pre-tokenizer {} is not Split", kind(split)));
    }
    let behavior = split.get("behavior").and_then(Value::as_str).unwrap_or("(none)");
    // The known patterns match every character, so that removing what lies between two matches removes nothing.
    // DeepSeek's three do not, and are written with `Isolated`.
    if !matches!((behavior, flag(split, "invert", false)), ("Isolated", false) | ("Removed", true)) {
        return Err(format!("split behavior {behavior} is not Isolated"));
    }
    let regex = split.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
    let regex = regex.ok_or_else(|| "split pattern is not a regular expression".to_owned())?;
    match behavior {
        "Removed" if Pattern::of_splits(&[regex.to_owned()]).is_none() => {
            Err(format!("split pattern {regex:?} with behavior Removed is not a known one"))
        }
        _ => Ok(regex.to_owned()),
    }
}

fn frame(post_processor: &Value) -> Result<Frame, Reason> {
    match kind(post_processor) {
        _ if post_processor.is_null() => Ok(Frame::default()),
        // It moves offsets, and adds nothing.
        "ByteLevel" => Ok(Frame::default()),
        "TemplateProcessing" => template_frame(post_processor),
        "Sequence" => {
            let steps: Result<Vec<Frame>, Reason> =
                list(post_processor, "processors").iter().map(frame).collect();
            let mut framed = steps?.into_iter().filter(|frame| *frame != Frame::default());
            match (framed.next(), framed.next()) {
                (first, None) => Ok(first.unwrap_or_default()),
                _ => Err("two post-processors add tokens".into()),
            }
        }
        other => Err(format!("post-processor {other} is not known")),
    }
}

fn template_frame(template: &Value) -> Result<Frame, Reason> {
    let mut frame = Frame::default();
    let mut seen_text = false;
    for piece in list(template, "single") {
        if piece.get("Sequence").is_some() && !seen_text {
            seen_text = true;
            continue;
        }
        let name = piece.get("SpecialToken").and_then(|token| token.get("id")).and_then(Value::as_str);
        let token = name.and_then(|name| template.get("special_tokens")?.get(name));
        let ids: Option<Vec<u32>> = token
            .map(|token| list(token, "ids"))
            .and_then(|ids| ids.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect());
        let ids = ids.ok_or_else(|| format!("post-processor template has the unknown piece {piece}"))?;
        if seen_text { frame.after.extend(ids) } else { frame.before.extend(ids) }
    }
    if seen_text { Ok(frame) } else { Err("post-processor template leaves out the text".into()) }
}
