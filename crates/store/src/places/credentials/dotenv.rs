//! Reads `~/.env`: `KEY=VALUE` a line, as shells and their imitations do.

use std::collections::BTreeMap;

/// Lines that set nothing are passed over: the file belongs to other programs too.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    text.trim_start_matches('\u{feff}').lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name.to_owned(), value_of(value.trim())))
}

fn value_of(text: &str) -> String {
    if let Some(rest) = text.strip_prefix('\'')
        && let Some((value, _)) = rest.split_once('\'')
    {
        return value.to_owned();
    }
    if let Some(rest) = text.strip_prefix('"')
        && let Some(value) = unescape(rest)
    {
        return value;
    }
    // A `#` within a word belongs to it.
    let comment = text.match_indices('#').find(|(at, _)| {
        text.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']))
    });
    comment.and_then(|(at, _)| text.get(..at)).unwrap_or(text).trim_end().to_owned()
}

/// Up to the closing quote. Nothing if there is none.
fn unescape(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' => match characters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other @ ('"' | '\\' | '$' | '`') => value.push(other),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sets_what_a_shell_would_set() {
        let cases = [
            ("A=b", Some(("A", "b"))),
            ("export A=b", Some(("A", "b"))),
            ("  A = b  ", Some(("A", "b"))),
            ("A='b # c'", Some(("A", "b # c"))),
            ("A=\"b # c\" # d", Some(("A", "b # c"))),
            (r#"A="b\"c\\d""#, Some(("A", r#"b"c\d"#))),
            ("A=b # c", Some(("A", "b"))),
            ("A=b#c", Some(("A", "b#c"))),
            ("A=b=c/+", Some(("A", "b=c/+"))),
            ("A=", Some(("A", ""))),
            ("A=\"open", Some(("A", "\"open"))),
            ("A=b\r", Some(("A", "b"))),
            ("# A=b", None),
            ("", None),
            ("set -e", None),
            ("not a name=b", None),
        ];
        for (text, set) in cases {
            let set: BTreeMap<_, _> =
                set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            assert_eq!(parse(text), set, "{text}");
        }
    }

    #[test]
    fn the_last_line_of_a_name_counts() {
        assert_eq!(parse("\u{feff}A=1\nB=2\nA=3").get("A").unwrap(), "3");
    }
}
