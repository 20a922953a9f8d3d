//! How a text can be spelled inside a JSON string.
//!
//! Letters and digits stand for themselves, but a quote is `\"` or `\u0022`, a stroke `/` or `\/`, and whatever is
//! not ASCII may stand as it is or as `\u` and four digits, in either case. A needle finds every row that may have
//! the text; some of the rows it finds do not have it.

use super::Pattern;
use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::literal::Extractor;

/// A stretch of plain letters this long is rare enough to look for alone.
const PLAIN_ENOUGH: usize = 3;

#[derive(Debug)]
pub(crate) enum Needle {
    /// Nothing can be said before decoding.
    Everywhere,
    Bytes(Box<Finder<'static>>),
    Spellings(Regex),
}

impl Needle {
    pub(crate) fn of(pattern: &Pattern) -> Self {
        if pattern.is_regex {
            return Self::of_regex(pattern);
        }
        let longest = plain_stretches(&pattern.text).max_by_key(|stretch| stretch.len()).unwrap_or_default();
        let only = longest.len() == pattern.text.len();
        if !longest.is_empty() && (only || longest.len() >= PLAIN_ENOUGH) {
            if !pattern.ignore_case {
                return Self::Bytes(Box::new(Finder::new(longest).into_owned()));
            }
            return Self::spellings(&regex::escape(longest), true);
        }
        let spelled: String = pattern.text.chars().map(|c| spellings_of(c, pattern.ignore_case)).collect();
        if spelled.is_empty() { Self::Everywhere } else { Self::spellings(&spelled, pattern.ignore_case) }
    }

    /// A regex that begins with one of a few texts is preceded by a look for those.
    fn of_regex(pattern: &Pattern) -> Self {
        let Ok(hir) = regex_syntax::ParserBuilder::new()
            .case_insensitive(pattern.ignore_case)
            .build()
            .parse(&pattern.text)
        else {
            return Self::Everywhere;
        };
        let found = Extractor::new().extract(&hir);
        let Some(literals) = found.literals() else { return Self::Everywhere };
        let mut spelled = Vec::new();
        for literal in literals {
            let text = std::str::from_utf8(literal.as_bytes()).unwrap_or_default();
            let longest = plain_stretches(text).max_by_key(|stretch| stretch.len()).unwrap_or_default();
            if longest.len() < PLAIN_ENOUGH {
                return Self::Everywhere;
            }
            spelled.push(regex::escape(longest));
        }
        match spelled.as_slice() {
            [] => Self::Everywhere,
            [only] if *only == regex::escape(only) => Self::Bytes(Box::new(Finder::new(only).into_owned())),
            many => Self::spellings(&many.join("|"), false),
        }
    }

    fn spellings(pattern: &str, ignore_case: bool) -> Self {
        let built = RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(16 << 20).build();
        built.map_or(Self::Everywhere, Self::Spellings)
    }

    /// Where it first stands in these bytes.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Everywhere => Some(0),
            Self::Bytes(finder) => finder.find(bytes),
            Self::Spellings(regex) => regex.find(bytes).map(|found| found.start()),
        }
    }
}

/// The parts of a text that every writer of JSON leaves as they are.
fn plain_stretches(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_plain(c))
}

/// Some writers spell what HTML minds as `\u`, too.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '/' | '<' | '>' | '&' | '\'' | '+' | '=' | '`')
}

/// All spellings of one character, as a regex.
fn spellings_of(c: char, ignore_case: bool) -> String {
    if is_plain(c) {
        return regex::escape(c.encode_utf8(&mut [0; 4]));
    }
    let mut forms: Vec<char> = vec![c];
    if ignore_case {
        forms.extend(c.to_lowercase().chain(c.to_uppercase()).filter(|form| *form != c));
    }
    let mut all = Vec::new();
    for form in forms {
        if !matches!(form, '"' | '\\') && !form.is_control() {
            all.push(regex::escape(form.encode_utf8(&mut [0; 4])));
        }
        let units = form
            .encode_utf16(&mut [0; 2])
            .iter()
            .map(|unit| format!(r"\\u(?i:{unit:04x})"))
            .collect::<String>();
        all.push(units);
        // DEL and the later control characters may stand as they are.
        if form.is_control() && u32::from(form) >= 0x7f {
            all.push(format!(r"\x{{{:x}}}", u32::from(form)));
        }
        all.extend(short(form).map(str::to_owned));
    }
    format!("(?:{})", all.join("|"))
}

fn short(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => r#"\\""#,
        '\\' => r"\\\\",
        '/' => r"\\/",
        '\n' => r"\\n",
        '\r' => r"\\r",
        '\t' => r"\\t",
        '\u{8}' => r"\\b",
        '\u{c}' => r"\\f",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Needle, Pattern};

    #[test]
    fn every_spelling_in_json_is_found() {
        let texts = [
            "plain",
            "a\"b",
            "C:\\dir",
            "a/b",
            "\n\n",
            "\t",
            "é",
            "ü/",
            "привет",
            "🦀",
            "\"",
            "<b>",
            "a\u{7f}",
            "l'été\n",
        ];
        for text in texts {
            let needle = Needle::of(&Pattern {
                text: text.into(),
                is_regex: false,
                ignore_case: false,
                channels: vec![],
            });
            let plain = serde_json::to_string(text).unwrap();
            let escape = |upper: bool| {
                let unit = |c: char| {
                    c.encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|u| if upper { format!("\\u{u:04X}") } else { format!("\\u{u:04x}") })
                        .collect::<String>()
                };
                let one =
                    |c: char| if c.is_ascii_alphanumeric() || c == ' ' { c.to_string() } else { unit(c) };
                format!("\"{}\"", text.chars().map(one).collect::<String>())
            };
            for spelled in [plain.clone(), plain.replace('/', "\\/"), escape(false), escape(true)] {
                let read: String = serde_json::from_str(&spelled).unwrap();
                assert_eq!(read, text);
                assert!(needle.find(spelled.as_bytes()).is_some(), "{text:?} as {spelled} by {needle:?}");
            }
            assert!(needle.find(b"{\"content\": \"something else\"}").is_none(), "{text:?}");
        }
    }

    #[test]
    fn case_is_ignored_where_it_is_not_asked_for() {
        let cases =
            [("HELLO", "say hello"), ("École", "école"), ("ÉÈ", r"\u00e9\u00e8"), ("straße", "STRAßE")];
        for (text, raw) in cases {
            let needle = Needle::of(&Pattern {
                text: text.into(),
                is_regex: false,
                ignore_case: true,
                channels: vec![],
            });
            assert!(needle.find(raw.as_bytes()).is_some(), "{text:?} in {raw} by {needle:?}");
        }
    }
}
