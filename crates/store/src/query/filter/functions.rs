//! The operators of the filter that SQLite does not have, or has otherwise, as functions of a connection.
//!
//! They are what `columns` uses too, so that both give the same rows. Users of SQL get them as well, and
//! `x REGEXP 'pattern'` with them.

use super::tree::How;
use super::types;
use regex::Regex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC);

/// Adds `contains`, `startswith`, `endswith`, `fits` and `matches`, each of a text and a pattern, and `regexp`.
pub(crate) fn add(connection: &Connection) -> rusqlite::Result<()> {
    type Make = fn(String) -> How;
    let plain: [(&str, Make); 4] = [
        ("contains", How::Contains),
        ("startswith", How::Starts),
        ("endswith", How::Ends),
        ("fits", How::Like),
    ];
    for (name, how) in plain {
        connection.create_scalar_function(name, 2, FLAGS, move |context| {
            let Some(pattern) = text(context, 1) else { return Ok(None) };
            let how = how(pattern.to_owned());
            Ok(text(context, 0).map(|text| how.holds(text)))
        })?;
    }
    connection.create_scalar_function("matches", 2, FLAGS, |context| regexp(context, 0, 1))?;
    // SQLite turns `x REGEXP y` into `regexp(y, x)`.
    connection.create_scalar_function("regexp", 2, FLAGS, |context| regexp(context, 1, 0))
}

fn regexp(context: &Context<'_>, text_at: usize, pattern_at: i32) -> rusqlite::Result<Option<bool>> {
    // Compiled once a statement: SQLite keeps it beside the argument that does not change.
    let regex = context.get_or_create_aux(
        pattern_at,
        |value| -> Result<Regex, Box<dyn std::error::Error + Send + Sync>> {
            Ok(types::regex(value.as_str()?, &(0..0))?)
        },
    );
    let regex = regex.map_err(|error| Error::UserFunctionError(Box::new(error)))?;
    Ok(text(context, text_at).map(|text| regex.is_match(text)))
}

/// Numbers and NULL are no text; an operator of text on them is unknown.
fn text<'a>(context: &'a Context<'_>, at: usize) -> Option<&'a str> {
    match context.get_raw(at) {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}
