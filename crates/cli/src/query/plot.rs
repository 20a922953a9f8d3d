//! A curve in the terminal, drawn with Braille dots: two by four to a character.

use anyhow::{Result, bail};
use rollyard_store::query::Answer;
use serde_json::Value;

const ROWS: usize = 16;

/// Bits of a Braille character for its dots, from the top left.
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

pub(super) fn draw(answer: &Answer, width: usize) -> Result<String> {
    let [x_name, y_name, ..] = answer.names.as_slice() else {
        bail!("a curve needs two columns, as in `select step, avg(reward) from rollouts group by step`");
    };
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let mut points: Vec<(f64, f64)> =
        answer.rows.iter().filter_map(|row| Some((number(row.first())?, number(row.get(1))?))).collect();
    if points.is_empty() {
        bail!("there is nothing to draw: no row has a number for both {x_name} and {y_name}");
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (x_low, x_high) = span(points.iter().map(|point| point.0));
    let (y_low, y_high) = span(points.iter().map(|point| point.1));
    let labels = [label(y_high), label(y_low)];
    let margin = labels.iter().map(String::len).max().unwrap_or_default();
    let columns = width.saturating_sub(margin + 3).max(10);
    let mut canvas = Canvas::new(columns);
    let at = |(x, y): (f64, f64)| {
        let across = (x - x_low) / (x_high - x_low) * (columns * 2 - 1) as f64;
        let up = (y - y_low) / (y_high - y_low) * (ROWS * 4 - 1) as f64;
        (across.round() as i64, (ROWS * 4 - 1) as i64 - up.round() as i64)
    };
    for pair in points.windows(2) {
        if let [from, to] = *pair {
            canvas.line(at(from), at(to));
        }
    }
    points.iter().for_each(|&point| canvas.dot(at(point)));
    let [high, low] = labels;
    let mut text = format!("{y_name}\n");
    for (row, line) in canvas.lines().enumerate() {
        let label = if row == 0 {
            high.as_str()
        } else if row == ROWS - 1 {
            low.as_str()
        } else {
            ""
        };
        text += &format!("{label:>margin$} │{line}\n");
    }
    let (left, right) = (label(x_low), label(x_high));
    let gap = columns.saturating_sub(left.len() + right.len());
    text += &format!("{:>margin$} └{}\n", "", "─".repeat(columns));
    text += &format!("{:>margin$}  {left}{}{right}  {x_name}\n", "", " ".repeat(gap));
    Ok(text)
}

/// From the least to the greatest; a single value stands in the middle.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low < high { (low, high) } else { (low - 0.5, high + 0.5) }
}

fn label(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Canvas {
    columns: usize,
    cells: Vec<u32>,
}

impl Canvas {
    fn new(columns: usize) -> Self {
        Self { columns, cells: vec![0; columns * ROWS] }
    }

    fn dot(&mut self, (x, y): (i64, i64)) {
        let (x, y) = (x.max(0) as usize, y.max(0) as usize);
        let bit = DOTS.get(y % 4).and_then(|row| row.get(x % 2)).copied().unwrap_or_default();
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= bit;
        }
    }

    fn line(&mut self, from: (i64, i64), to: (i64, i64)) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
        for step in 0..=steps {
            let between = |from: i64, to: i64| from + (to - from) * step / steps;
            self.dot((between(from.0, to.0), between(from.1, to.1)));
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.columns).map(|row| {
            let line: String = row.iter().map(|bits| char::from_u32(0x2800 + bits).unwrap_or(' ')).collect();
            line.trim_end_matches('\u{2800}').to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(rows: &[(Value, Value)]) -> Answer {
        let rows = rows.iter().map(|(x, y)| vec![x.clone(), y.clone()]).collect();
        Answer { names: vec!["step".to_owned(), "reward".to_owned()], rows }
    }

    #[test]
    fn a_rising_line_goes_from_bottom_left_to_top_right() {
        let drawn = draw(&answer(&[(json!(0), json!(0.0)), (json!(100), json!(1.0))]), 40).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), ROWS + 3);
        assert!(lines[1].starts_with("1 │") && lines[1].ends_with('⠊'), "{drawn}");
        assert!(lines[ROWS].starts_with("0 │⡠") || lines[ROWS].starts_with("0 │⣀"), "{drawn}");
        assert!(lines[ROWS + 2].contains("0 ") && lines[ROWS + 2].ends_with("100  step"), "{drawn}");
    }

    #[test]
    fn one_point_is_drawn_and_none_is_told() {
        assert!(draw(&answer(&[(json!(3), json!(0.5))]), 40).is_ok());
        let error = draw(&answer(&[(json!("a"), json!(null))]), 40).unwrap_err().to_string();
        assert!(error.contains("no row has a number for both step and reward"), "{error}");
    }
}
