//! Methods of Python's `str`.

use minijinja::Value;
use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Tuple, ValueKind};

use super::methods::{Args, invalid, list, unknown};
use super::python::is_space;

type Answer = Result<Value, minijinja::Error>;

pub(super) fn call(s: &str, method: &str, args: &Args) -> Answer {
    Ok(match method {
        "strip" | "lstrip" | "rstrip" => strip(s, method, args)?,
        "split" => split(s, args)?,
        "rsplit" => rsplit(s, args)?,
        "splitlines" => splitlines(s, args.get(0, "keepends").is_some_and(|keep| keep.is_true())),
        "startswith" => Value::from(affix(s, args, |s, affix| s.starts_with(affix))?),
        "endswith" => Value::from(affix(s, args, |s, affix| s.ends_with(affix))?),
        "replace" => replace(s, args)?,
        "upper" => Value::from(s.to_uppercase()),
        "lower" | "casefold" => Value::from(s.to_lowercase()),
        "swapcase" => Value::from(s.chars().map(swap_case).collect::<String>()),
        "capitalize" => Value::from(capitalize(s)),
        "title" => Value::from(title(s)),
        "join" => join(s, args)?,
        "find" | "index" | "rfind" | "rindex" => find(s, method, args)?,
        "count" => Value::from(s.matches(args.need_text(0, "sub")?.as_str()).count()),
        "removeprefix" => Value::from(s.strip_prefix(args.need_text(0, "prefix")?.as_str()).unwrap_or(s)),
        "removesuffix" => Value::from(s.strip_suffix(args.need_text(0, "suffix")?.as_str()).unwrap_or(s)),
        "partition" | "rpartition" => partition(s, method, args)?,
        "ljust" | "rjust" | "center" | "zfill" => pad(s, method, args)?,
        "format" => {
            let mut values = args.positional.to_vec();
            values.extend(args.named.clone().map(Value::from));
            Value::from(format(FormatStyle::StrFormat, s, &values)?)
        }
        _ => Value::from(is(s, method)?),
    })
}

fn is(s: &str, method: &str) -> Result<bool, minijinja::Error> {
    let all = |holds: fn(char) -> bool| !s.is_empty() && s.chars().all(holds);
    let cased = |up: bool| s.chars().any(|c| if up { c.is_uppercase() } else { c.is_lowercase() });
    Ok(match method {
        "isspace" => all(is_space),
        // Superscripts are digits to Python but not decimals; Rust knows numeric, and ASCII.
        "isdigit" | "isdecimal" => all(|c| c.is_numeric() && (c.is_ascii() || c.is_alphanumeric())),
        "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isascii" => s.is_ascii(),
        "islower" => cased(false) && !cased(true),
        "isupper" => cased(true) && !cased(false),
        "istitle" => cased(true) && title(s) == s,
        "isidentifier" => {
            all(|c| c.is_alphanumeric() || c == '_') && !s.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => return Err(unknown(method)),
    })
}

fn strip(s: &str, method: &str, args: &Args) -> Answer {
    let chars = args.text(0, "chars")?;
    let strips = |c: char| chars.as_ref().map_or_else(|| is_space(c), |chars| chars.contains(c));
    Ok(Value::from(match method {
        "strip" => s.trim_matches(strips),
        "lstrip" => s.trim_start_matches(strips),
        _ => s.trim_end_matches(strips),
    }))
}

/// How many cuts to make: Python's -1 is all of them.
fn maxsplit(args: &Args) -> Result<usize, minijinja::Error> {
    let most = args.int(1, "maxsplit")?.unwrap_or(-1);
    Ok(usize::try_from(most).unwrap_or(usize::MAX - 1))
}

fn separator(args: &Args) -> Result<Option<String>, minijinja::Error> {
    let separator = args.text(0, "sep")?;
    if separator.as_deref() == Some("") { Err(invalid("empty separator")) } else { Ok(separator) }
}

fn split(s: &str, args: &Args) -> Answer {
    let most = maxsplit(args)?;
    if let Some(separator) = separator(args)? {
        return Ok(list(s.splitn(most + 1, separator.as_str()).map(Value::from)));
    }
    let mut rest = s.trim_start_matches(is_space);
    let mut parts = Vec::new();
    while !rest.is_empty() {
        if parts.len() == most {
            parts.push(Value::from(rest));
            break;
        }
        let (word, tail) = rest.split_once(is_space).unwrap_or((rest, ""));
        parts.push(Value::from(word));
        rest = tail.trim_start_matches(is_space);
    }
    Ok(list(parts))
}

fn rsplit(s: &str, args: &Args) -> Answer {
    let most = maxsplit(args)?;
    let mut parts = Vec::new();
    if let Some(separator) = separator(args)? {
        parts.extend(s.rsplitn(most + 1, separator.as_str()).map(Value::from));
    } else {
        let mut rest = s.trim_end_matches(is_space);
        while !rest.is_empty() {
            if parts.len() == most {
                parts.push(Value::from(rest));
                break;
            }
            let (head, word) = rest.rsplit_once(is_space).unwrap_or(("", rest));
            parts.push(Value::from(word));
            rest = head.trim_end_matches(is_space);
        }
    }
    parts.reverse();
    Ok(list(parts))
}

fn splitlines(s: &str, keep_ends: bool) -> Value {
    let is_break = |c: char| matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut rest = s;
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let line = rest.find(is_break).and_then(|at| rest.get(..at)).unwrap_or(rest);
        let tail = rest.get(line.len()..).unwrap_or_default();
        let break_len =
            if tail.starts_with("\r\n") { 2 } else { tail.chars().next().map_or(0, char::len_utf8) };
        let whole = rest.get(..line.len() + break_len).unwrap_or(rest);
        lines.push(Value::from(if keep_ends { whole } else { line }));
        rest = rest.get(whole.len()..).unwrap_or_default();
    }
    list(lines)
}

fn affix(s: &str, args: &Args, has: fn(&str, &str) -> bool) -> Result<bool, minijinja::Error> {
    let wanted = args.get(0, "prefix").ok_or_else(|| invalid("missing argument: a str or a tuple of str"))?;
    match (wanted.as_str(), wanted.kind()) {
        (Some(text), _) => Ok(has(s, text)),
        (None, ValueKind::Seq) if wanted.is_tuple() => {
            Ok(wanted.try_iter()?.any(|one| one.as_str().is_some_and(|text| has(s, text))))
        }
        (None, kind) => Err(invalid(format!("first arg must be str or a tuple of str, not {kind}"))),
    }
}

fn replace(s: &str, args: &Args) -> Answer {
    let (old, new) = (args.need_text(0, "old")?, args.need_text(1, "new")?);
    Ok(Value::from(match usize::try_from(args.int(2, "count")?.unwrap_or(-1)) {
        Ok(count) => s.replacen(&old, &new, count),
        Err(_) => s.replace(&old, &new),
    }))
}

fn join(s: &str, args: &Args) -> Answer {
    let items = args.get(0, "iterable").ok_or_else(|| invalid("join takes one argument"))?;
    let mut joined = String::new();
    for (at, item) in items.try_iter()?.enumerate() {
        let text = item.as_str().ok_or_else(|| {
            invalid(format!("sequence item {at}: expected str instance, {} found", item.kind()))
        })?;
        joined.push_str(if at == 0 { "" } else { s });
        joined.push_str(text);
    }
    Ok(Value::from(joined))
}

fn find(s: &str, method: &str, args: &Args) -> Answer {
    let wanted = args.need_text(0, "sub")?;
    let found = if method.starts_with('r') { s.rfind(&wanted) } else { s.find(&wanted) };
    match found.and_then(|at| s.get(..at)) {
        Some(before) => Ok(Value::from(before.chars().count())),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(invalid("substring not found")),
    }
}

fn partition(s: &str, method: &str, args: &Args) -> Answer {
    let separator = args.need_text(0, "sep")?;
    let (head, middle, tail) = if method == "partition" {
        s.split_once(&separator).map_or((s, "", ""), |(head, tail)| (head, &*separator, tail))
    } else {
        s.rsplit_once(&separator).map_or(("", "", s), |(head, tail)| (head, &*separator, tail))
    };
    Ok(Value::from(Tuple::from([head, middle, tail].map(Value::from))))
}

fn pad(s: &str, method: &str, args: &Args) -> Answer {
    // A width is a promise to allocate: no template needs more than this.
    let width = usize::try_from(args.int(0, "width")?.unwrap_or(0)).unwrap_or(0).min(1 << 20);
    let missing = width.saturating_sub(s.chars().count());
    let fill = if method == "zfill" { "0".into() } else { args.text(1, "fillchar")?.unwrap_or(" ".into()) };
    let (left, right) = match method {
        "ljust" => (0, missing),
        // Python gives the odd one to the left only when the width is odd too.
        "center" => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
        _ => (missing, 0),
    };
    let signed = s.strip_prefix(['-', '+']).filter(|_| method == "zfill");
    let (sign, body) = signed.map_or(("", s), |body| (s.get(..1).unwrap_or_default(), body));
    Ok(Value::from([sign, &fill.repeat(left), body, &fill.repeat(right)].concat()))
}

fn swap_case(c: char) -> char {
    let mut swapped = c.to_lowercase();
    if c.is_lowercase() { c.to_uppercase().next().unwrap_or(c) } else { swapped.next().unwrap_or(c) }
}

pub(super) fn capitalize(s: &str) -> String {
    let mut chars = s.chars();
    let first = chars.next();
    first.into_iter().flat_map(char::to_uppercase).chain(chars.flat_map(char::to_lowercase)).collect()
}

fn title(s: &str) -> String {
    let mut inside = false;
    let mut titled = String::with_capacity(s.len());
    for c in s.chars() {
        if inside {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    titled
}
