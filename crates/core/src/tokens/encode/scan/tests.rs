//! Every pattern against the regular expression it stands for, run by Oniguruma.

use proptest::prelude::*;
use std::sync::LazyLock;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior};

use super::*;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

static SPLITTERS: LazyLock<Vec<(Pattern, Vec<Split>)>> = LazyLock::new(|| {
    let split = |regex: &&str| {
        Split::new(SplitPattern::Regex(regex.to_string()), SplitDelimiterBehavior::Isolated, false).unwrap()
    };
    let known = SPLITS.iter().map(|(regexes, pattern)| (*pattern, regexes.iter().map(split).collect()));
    known.chain([(Pattern::Gpt2, vec![split(&GPT2)])]).collect()
});

fn expected(splits: &[Split], text: &str) -> Vec<usize> {
    let mut pieces = PreTokenizedString::from(text);
    splits.iter().for_each(|split| split.pre_tokenize(&mut pieces).unwrap());
    let found = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
    found.into_iter().map(|(_, (_, end), _)| end).collect()
}

fn ends(mut scan: impl Scan, text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < text.len() {
        at = scan.piece_end(text.as_bytes(), at);
        ends.push(at);
    }
    ends
}

fn scanned(pattern: Pattern, text: &str) -> Vec<usize> {
    let classes = Classes::get();
    match pattern {
        Pattern::Gpt2 => ends(Gpt2 { classes }, text),
        Pattern::Llama3 => ends(Words::<3, false> { classes }, text),
        Pattern::Qwen2 => ends(Words::<1, false> { classes }, text),
        Pattern::Qwen35 => ends(Words::<1, true> { classes }, text),
        Pattern::O200k => ends(Cased::<3, true> { classes }, text),
        Pattern::Tekken => ends(Cased::<1, false> { classes }, text),
        Pattern::DeepSeek => ends(DeepSeek::new(classes), text),
    }
}

fn check(text: &str) {
    for (pattern, splits) in SPLITTERS.iter() {
        assert_eq!(scanned(*pattern, text), expected(splits, text), "{pattern:?} of {text:?}");
    }
}

#[test]
fn every_letter_that_folds_to_a_contraction_ends_one() {
    let folds = |c: char| c.to_lowercase().chain(c.to_uppercase()).any(|c| c.is_ascii()) || c < '\u{250}';
    for c in ('\0'..=char::MAX).filter(|&c| folds(c)) {
        check(&format!("we'{c} we'{c}e we'r{c} we'{c}l'l{c}X"));
    }
}

#[test]
fn spaces_before_words_and_line_ends() {
    for text in [
        "",
        " ",
        "  a",
        "a  ",
        " \n b",
        "\r\n \r\n\t x",
        "a \n",
        "\u{a0}\u{3000}b",
        "!\n\n /a",
        "\u{85}\n.\r\n/",
    ] {
        check(text);
    }
}

#[test]
fn a_mark_may_lead_a_word_or_begin_it() {
    for text in [
        "\u{301}ABC",
        "\u{301}ABc",
        "\u{301}\u{301}",
        "A\u{301}B",
        "aʰB",
        "ʰABʰC",
        "字A字",
        "\u{1}\u{1}a",
        "\u{200b}\u{200b}b1",
    ] {
        check(text);
    }
}

#[test]
fn line_ends_may_be_written_out() {
    let (regexes, pattern) = SPLITS[0];
    let written: Vec<String> = regexes.iter().map(|r| r.replace(r"\r", "\r").replace(r"\n", "\n")).collect();
    assert_eq!(Pattern::of_splits(&written), Some(pattern));
    assert_eq!(Pattern::of_splits(&[r"\p{L}+".into()]), None);
    assert_eq!(Pattern::of_splits(&[]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn pieces_are_those_of_the_regular_expression(
        text in "([ \n\r\t/'a-eA-E0-9stSTl!?<|éÉßǅʰªıſ字가\u{301}\u{903}\u{200d}\u{3000}\u{85}・ーあア٣½🚀]|\\PC|\\p{L}|\\p{M}){0,24}"
    ) {
        check(&text);
    }
}
