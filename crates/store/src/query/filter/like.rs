//! `LIKE` as SQLite has it, in time that grows with the text and not with a power of it.

/// `%` is any text, `_` any one character; ASCII letters match in either case.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().map(|c| c.to_ascii_lowercase()).collect();
    let text: Vec<char> = text.chars().map(|c| c.to_ascii_lowercase()).collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on after the last `%` when what follows it did not fit: one character further.
    let mut again: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match pattern.get(p) {
            Some('%') => {
                again = Some((p + 1, t));
                p += 1;
            }
            Some(&want) if want == '_' || want == c => (p, t) = (p + 1, t + 1),
            _ => match again {
                Some((after, from)) => {
                    again = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&c| c == '%'))
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_is_that_of_sqlite() {
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        let patterns = ["", "%", "a%", "%a", "%A%", "a_c", "_", "%_%", "a%b%c", "%%", "é%", "a%a", "É"];
        let texts = ["", "a", "A", "abc", "aXbYc", "aa", "é", "éa", "aba", "%", "É"];
        for pattern in patterns {
            for text in texts {
                let theirs: bool =
                    sqlite.query_row("select ?1 like ?2", (text, pattern), |row| row.get(0)).unwrap();
                assert_eq!(like(pattern, text), theirs, "{text:?} like {pattern:?}");
            }
        }
    }
}
