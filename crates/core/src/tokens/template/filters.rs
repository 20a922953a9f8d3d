//! Filters and tests where Jinja2 and our engine part ways.
//!
//! What is not named here behaves alike in both, as far as a comparison over the templates of many models shows.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, State, Value, filters};

use super::methods::{invalid, list};
use super::value::Generator;
use super::{python, source, strings, tojson};

pub(super) fn install(env: &mut Environment<'static>) {
    env.add_filter("tojson", tojson::tojson);
    env.add_filter("string", |value: &Value| python::str(value));
    env.add_filter("trim", trim);
    env.add_filter("upper", |value: &Value| python::str(value).to_uppercase());
    env.add_filter("lower", |value: &Value| python::str(value).to_lowercase());
    env.add_filter("capitalize", |value: &Value| strings::capitalize(&python::str(value)));
    env.add_filter("title", |value: &Value| filters::title(python::str(value).into()));
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_filter("list", |value: &Value| items_of(value).map(list));
    env.add_filter("first", first);
    env.add_filter("last", last);
    env.add_filter("join", join);
    env.add_filter("replace", replace);
    env.add_filter("items", items);
    env.add_filter("default", default);
    env.add_filter("d", default);
    env.add_filter("indent", indent);
    env.add_filter("reverse", reverse);
    env.add_filter("wordcount", |value: &Value| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        python::str(value).split(|c| !is_word(c)).filter(|word| !word.is_empty()).count()
    });
    install_generators(env);
    env.add_function(source::ITERATE, iterate);

    env.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Map)
            || matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && value.len().is_some()
    });
    env.add_test("iterable", |value: &Value| {
        use ValueKind::{Iterable, Map, Seq, String, Undefined};
        matches!(value.kind(), String | Map | Seq | Iterable | Undefined)
    });
    env.add_test("number", |value: &Value| {
        matches!(value.kind(), ValueKind::Number | ValueKind::Bool) || python::is_big_int(value)
    });
    env.add_test("integer", |value: &Value| value.is_integer() || python::is_big_int(value));
    env.add_test("callable", |value: &Value| {
        value.kind() == ValueKind::Plain && !python::is_big_int(value)
            || value.to_string().starts_with("<macro ")
    });
}

/// Filters that make generators in Jinja: the engine does the work, and the result forgets its length.
fn install_generators(env: &mut Environment<'static>) {
    env.add_filter("__select", filters::select);
    env.add_filter("__reject", filters::reject);
    env.add_filter("__selectattr", filters::selectattr);
    env.add_filter("__rejectattr", filters::rejectattr);
    env.add_filter("__map", filters::map);
    env.add_filter("__unique", filters::unique);
    for (name, inner) in [
        ("select", "__select"),
        ("reject", "__reject"),
        ("selectattr", "__selectattr"),
        ("rejectattr", "__rejectattr"),
        ("map", "__map"),
        ("unique", "__unique"),
    ] {
        env.add_filter(name, move |state: &mut State, args: Rest<Value>, named: Kwargs| {
            if args.first().is_some_and(Value::is_none) {
                return Err(invalid("'NoneType' object is not iterable"));
            }
            let mut args = args.to_vec();
            if named.args().next().is_some() {
                args.push(Value::from(named));
            }
            let made = state.apply_filter(inner, &args)?;
            Ok(Generator::value(items_of(&made)?))
        });
    }
}

fn items_of(value: &Value) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(Vec::new()),
        ValueKind::String => {
            Ok(value.as_str().unwrap_or_default().chars().map(|c| Value::from(c.to_string())).collect())
        }
        ValueKind::None => Err(invalid("'NoneType' object is not iterable")),
        _ => Ok(value.try_iter()?.collect()),
    }
}

/// What a loop goes over: the engine takes None for empty and strings for single values, Python does not.
fn iterate(args: Rest<Value>) -> Result<Value, Error> {
    match &args[..] {
        [one] if matches!(one.kind(), ValueKind::None | ValueKind::String) => items_of(one).map(list),
        [one] => Ok(one.clone()),
        several => Ok(list(several.iter().cloned())),
    }
}

fn trim(value: &Value, chars: Option<Value>) -> String {
    let text = python::str(value);
    match chars.as_ref().and_then(Value::as_str) {
        Some(chars) => text.trim_matches(|c| chars.contains(c)).to_owned(),
        None => text.trim_matches(python::is_space).to_owned(),
    }
}

fn length(value: &Value) -> Result<usize, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(0),
        kind => value.len().ok_or_else(|| invalid(format!("object of type {kind} has no len()"))),
    }
}

fn first(value: &Value) -> Result<Value, Error> {
    Ok(match value.as_str() {
        Some(text) => text.chars().next().map_or(Value::UNDEFINED, |c| Value::from(c.to_string())),
        None if value.is_undefined() => Value::UNDEFINED,
        None => items_of(value)?.into_iter().next().unwrap_or_default(),
    })
}

fn last(value: &Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Iterable && value.len().is_none() {
        return Err(invalid("a generator is not reversible; make it a list first"));
    }
    Ok(items_of(value)?.pop().unwrap_or_default())
}

fn join(
    value: &Value,
    between: Option<Value>,
    attribute: Option<Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let between = between.or(kwargs.get::<Option<Value>>("d")?);
    let attribute = attribute.or(kwargs.get::<Option<Value>>("attribute")?);
    kwargs.assert_all_used()?;
    let between = between.map(|text| python::str(&text)).unwrap_or_default();
    let mut joined = String::new();
    for (at, item) in items_of(value)?.iter().enumerate() {
        joined.push_str(if at == 0 { "" } else { &between });
        match &attribute {
            Some(name) => python::write_str(&mut joined, &item.get_item(name)?),
            None => python::write_str(&mut joined, item),
        }
    }
    Ok(joined)
}

fn replace(value: &Value, old: &Value, new: &Value, count: Option<Value>) -> Result<String, Error> {
    let (text, old, new) = (python::str(value), python::str(old), python::str(new));
    let count = count.filter(|count| !count.is_none()).map(i64::try_from).transpose()?.unwrap_or(-1);
    Ok(usize::try_from(count)
        .map_or_else(|_| text.replace(&old, &new), |count| text.replacen(&old, &new, count)))
}

fn items(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(Generator::value(Vec::new())),
        ValueKind::Map => {
            let pairs = python::pairs(value).into_iter();
            let pairs = pairs.map(|(key, item)| Value::from(minijinja::value::Tuple::from([key, item])));
            Ok(Generator::value(pairs.collect()))
        }
        _ => Err(invalid("Can only get item pairs from a mapping.")),
    }
}

fn default(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let named = kwargs.get::<Option<Value>>("default_value")?;
    let boolean = kwargs.get::<Option<Value>>("boolean")?;
    kwargs.assert_all_used()?;
    let lax = args.get(1).or(boolean.as_ref()).is_some_and(Value::is_true);
    if value.is_undefined() || (lax && !value.is_true()) {
        return Ok(args.first().cloned().or(named).unwrap_or_else(|| Value::from("")));
    }
    Ok(value.clone())
}

fn indent(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let option = |at: usize, name: &str| -> Result<Option<Value>, Error> {
        Ok(kwargs.get::<Option<Value>>(name)?.or_else(|| args.get(at).cloned()))
    };
    let (width, first, blank) = (option(0, "width")?, option(1, "first")?, option(2, "blank")?);
    kwargs.assert_all_used()?;
    let padding = match width {
        None => " ".repeat(4),
        Some(text) if text.as_str().is_some() => python::str(&text),
        Some(width) => " ".repeat(usize::try_from(i64::try_from(width)?).unwrap_or(0).min(1 << 20)),
    };
    let (first, blank) =
        (first.is_some_and(|first| first.is_true()), blank.is_some_and(|blank| blank.is_true()));
    let text = python::str(value);
    // Jinja ends the text with a line break before it splits, so a final break yields an empty last line.
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        out.push_str(if at == 0 { "" } else { "\n" });
        let indents = if at == 0 { first } else { blank || !line.is_empty() };
        out.push_str(if indents { &padding } else { "" });
        out.push_str(line);
    }
    Ok(out)
}

fn reverse(value: &Value) -> Result<Value, Error> {
    let mut items = items_of(value)?;
    items.reverse();
    match value.kind() {
        ValueKind::String => Ok(Value::from(items.iter().filter_map(Value::as_str).collect::<String>())),
        _ => Ok(Generator::value(items)),
    }
}
