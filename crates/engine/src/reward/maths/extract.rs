//! Finds the answer in what a model wrote.
//!
//! Only the last mark counts: whoever boxes every number from 1 to 100 has answered 100.

/// What follows the last of these is an answer, down to the end of its sentence.
const PHRASES: [&str; 4] = ["final answer is", "answer is", "final answer:", "answer:"];

/// The last `\boxed{…}` or `\fbox{…}`, or else what follows the last `####`, or else what follows the last "the
/// answer is". Thoughts before `</think>` are no answer. An empty box is an empty answer.
pub fn extract(text: &str) -> Option<&str> {
    let text = text.rsplit_once("</think>").map_or(text, |(_, answer)| answer);
    if let Some(at) = text.rfind("\\boxed").max(text.rfind("\\fbox")) {
        return boxed(text.get(at..)?);
    }
    if let Some((_, after)) = text.rsplit_once("####") {
        return marked(after.lines().next().unwrap_or_default());
    }
    phrase(text)
}

/// The last number in a text, for models that mark nothing.
pub(super) fn last_number(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '/' | '-' | '−');
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let head = text.get(..end)?;
    let start = head.char_indices().rev().take_while(|(_, c)| is_part(*c)).last()?.0;
    head.get(start..).map(|number| number.trim_start_matches(['.', ',', '/']))
}

/// The content of the box at the beginning of `text`; `None` if it never closes.
fn boxed(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches("\\boxed").trim_start_matches("\\fbox").trim_start();
    let Some(content) = rest.strip_prefix('{') else {
        // Without braces TeX takes what comes next.
        let end = rest.find(|c: char| c.is_whitespace() || c == '$').unwrap_or(rest.len());
        return rest.get(..end).and_then(marked);
    };
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, c) in content.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => depth += 1,
            '}' if depth == 0 => return content.get(..at).map(str::trim),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn phrase(text: &str) -> Option<&str> {
    // ASCII only, so that places in the copy are places in the text.
    let lower = text.to_ascii_lowercase();
    let ends = PHRASES.iter().filter_map(|phrase| lower.rfind(phrase).map(|at| at + phrase.len()));
    let after = text.get(ends.max()?..)?.trim_start_matches([':', ' ', '*', '\n']);
    let line = after.lines().next().unwrap_or_default();
    let is_end = |(at, _): &(usize, &str)| {
        let next = line.get(at + 1..).unwrap_or_default();
        next.is_empty() || next.starts_with(char::is_whitespace)
    };
    let end = line.match_indices('.').find(is_end).map_or(line.len(), |(at, _)| at);
    line.get(..end).and_then(marked)
}

/// Without the marks of Markdown and of TeX around it; nothing, if nothing is left.
fn marked(text: &str) -> Option<&str> {
    let bare = text.trim().trim_matches(['*', '$', '`']).trim();
    (!bare.is_empty()).then_some(bare)
}
