//! Calls whose name stands before their JSON, between marks of their own: DeepSeek and Kimi.

use super::form::Unread;
use super::schema::Tools;
use super::told::Written;

/// `function<｜tool▁sep｜>name`, a newline and a fence with JSON (V3 and R1), or `name<｜tool▁sep｜>{…}` (V3.1).
pub(super) fn deepseek(body: &str, _tools: &Tools) -> Result<Vec<Written>, Unread> {
    let (first, second) = split(body, "<｜tool▁sep｜>")?;
    let Some((name, fenced)) = second.split_once("```json").filter(|_| first.trim() == "function") else {
        return Ok(vec![Written::new(first, second)?]);
    };
    let arguments = fenced.trim().strip_suffix("```");
    let arguments = arguments
        .ok_or_else(|| Unread::Malformed("the fence around the arguments does not end".to_owned()))?;
    Ok(vec![Written::new(name, arguments)?])
}

/// `functions.name:0<|tool_call_argument_begin|>{…}`, where the number counts the calls.
pub(super) fn kimi(body: &str, _tools: &Tools) -> Result<Vec<Written>, Unread> {
    let (id, arguments) = split(body, "<|tool_call_argument_begin|>")?;
    let id = id.trim();
    let name = id.strip_prefix("functions.").unwrap_or(id);
    let name = match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    };
    Ok(vec![Written::new(name, arguments)?])
}

fn split<'a>(body: &'a str, mark: &str) -> Result<(&'a str, &'a str), Unread> {
    body.split_once(mark)
        .ok_or_else(|| Unread::Malformed(format!("the call has no {mark} before its arguments")))
}
