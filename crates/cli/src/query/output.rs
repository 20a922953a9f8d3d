//! Answers as text.

use anyhow::Result;
use rollyard_store::catalog::columns::COLUMNS;
use rollyard_store::query::Answer;
use serde_json::Value;
use std::io::Write;

use crate::terminal::Table;

/// A cell of a table on a terminal is cut here; files have everything.
const CELL_CHARS_MAX: usize = 60;

pub(super) fn table(answer: &Answer) -> String {
    let headings: Vec<&str> = answer.names.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    for row in &answer.rows {
        table.push(row.iter().map(cell).collect());
    }
    table.to_string()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            // Four digits say enough to a person; zeros at their end say nothing.
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Value::String(text) => short(text),
        other => short(&other.to_string()),
    }
}

/// One line without anything that would move the cursor.
fn short(text: &str) -> String {
    let mut cut: String =
        text.chars().take(CELL_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(CELL_CHARS_MAX).is_some() {
        cut.push('…');
    }
    cut
}

/// All rows as CSV with a heading, or as an object a line.
pub(super) fn lines(answer: &Answer, csv: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if csv {
        csv_line(&mut out, answer.names.iter().map(String::as_str))?;
    }
    for row in &answer.rows {
        line(&mut out, &answer.names, row, csv)?;
    }
    Ok(out)
}

pub(super) fn line(out: &mut impl Write, names: &[String], row: &[Value], csv: bool) -> Result<()> {
    if csv {
        let cells: Vec<String> = row
            .iter()
            .map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect();
        return csv_line(out, cells.iter().map(String::as_str));
    }
    // In the order that was asked for, which a map would not keep.
    for (nth, (name, value)) in names.iter().zip(row).enumerate() {
        write!(out, "{}{}:{value}", if nth == 0 { '{' } else { ',' }, Value::from(name.as_str()))?;
    }
    Ok(out.write_all(b"}\n")?)
}

/// As RFC 4180 has it, but for the line's end, which is the one of this system.
pub(super) fn csv_line<'a>(out: &mut impl Write, cells: impl Iterator<Item = &'a str>) -> Result<()> {
    for (nth, cell) in cells.enumerate() {
        if nth > 0 {
            out.write_all(b",")?;
        }
        if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    Ok(out.write_all(b"\n")?)
}

/// What there is to ask for.
pub(super) fn columns() -> String {
    let width = COLUMNS.iter().map(|column| column.name.len()).max().unwrap_or_default();
    let kind =
        |column: &rollyard_store::catalog::columns::Column| format!("{:?}", column.kind).to_lowercase();
    COLUMNS
        .iter()
        .map(|column| format!("{:width$}  {:8}{}\n", column.name, kind(column), column.about))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_of_csv_are_quoted_where_they_must() {
        let row =
            [json!("a,b"), json!("say \"hi\""), json!("two\nlines"), json!(null), json!(0.5), json!("ü")];
        let mut out = Vec::new();
        line(&mut out, &[], &row, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",,0.5,ü\n");
    }

    #[test]
    fn cells_of_a_table_fit_a_line() {
        for (value, expected) in [
            (json!(null), ""),
            (json!(3), "3"),
            (json!(0.123456), "0.1235"),
            (json!(2.0), "2"),
            (json!("a\u{1b}[2Jb\nc"), "a [2Jb c"),
        ] {
            assert_eq!(cell(&value), expected);
        }
        assert_eq!(cell(&json!("x".repeat(100))).chars().count(), CELL_CHARS_MAX + 1);
    }
}
