//! Curves as a picture: an SVG that reads well on light and on dark pages.

use rollyard_tiny::learn::{Plan, StepReport};
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// Lines over one pair of axes. Values go from 0 to 1, as rewards do.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_name: &'static str,
    pub(super) lines: Vec<Line>,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Drawn thin and pale: what another line is the gist of.
    pub(super) is_faint: bool,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 48.0;
/// Names of lines stand at least so far apart.
const NAME_GAP: f64 = 17.0;

/// Apart for people who see few colours too; the second of each is for dark pages.
const COLOURS: [(&str, &str); 6] = [
    ("#1f5fbf", "#7fb2ff"),
    ("#c2570c", "#ffa25c"),
    ("#4b7f52", "#9bd3a2"),
    ("#7a4fb0", "#c6a6f0"),
    ("#8a6d00", "#e3c65a"),
    ("#555f6b", "#b4bec9"),
];

/// Reward and held-out accuracy of a run, by step.
pub(super) fn learning_curve(plan: &Plan, curve: &[StepReport]) -> Chart {
    let exams = curve.iter().filter_map(|report| Some((report.step as f64, report.held_out?)));
    let rewards = curve.iter().filter(|report| report.step > 0);
    let title = format!("{}, seed {}: held-out accuracy and reward", plan.task, plan.seed);
    Chart {
        title,
        x_name: "step",
        lines: vec![
            Line { name: "held-out".into(), points: exams.collect(), is_faint: false },
            Line {
                name: "reward".into(),
                points: rewards.map(|report| (report.step as f64, report.reward)).collect(),
                is_faint: true,
            },
        ],
    }
}

pub(super) fn write(path: &Path, chart: &Chart) -> io::Result<()> {
    fs::write(path, svg(chart))
}

fn svg(chart: &Chart) -> String {
    let x_max = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.0).fold(0.0, f64::max);
    let x_max = if x_max > 0.0 { x_max } else { 1.0 };
    let tick = round_step(x_max);
    let across = |x: f64| LEFT + x / x_max * (WIDTH - LEFT - RIGHT);
    let up = |y: f64| HEIGHT - BOTTOM - y.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}",
        escape(&chart.title),
        style()
    );
    let mut put = |text: String| {
        // Writing to a String does not fail.
        let _written = writeln!(out, "{text}");
    };
    put("<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>".to_owned());
    put(format!("<text class=\"title\" x=\"{LEFT}\" y=\"26\">{}</text>", escape(&chart.title)));
    for fifth in 0..=5 {
        let y = up(f64::from(fifth) / 5.0);
        put(format!("<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT));
        put(format!(
            "<text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{}%</text>",
            LEFT - 8.0,
            y + 4.0,
            fifth * 20
        ));
    }
    for nth in 0..=(x_max / tick) as usize {
        let value = nth as f64 * tick;
        let (x, y) = (across(value), HEIGHT - BOTTOM + 18.0);
        put(format!("<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y}\">{value}</text>"));
    }
    let (x, y) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    put(format!("<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y}\">{}</text>", escape(chart.x_name)));
    for (nth, line) in chart.lines.iter().enumerate() {
        let points: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), up(*y))).collect();
        let faint = if line.is_faint { " faint" } else { "" };
        put(format!(
            "<polyline class=\"line c{}{faint}\" points=\"{}\"/>",
            nth % COLOURS.len(),
            points.join(" ")
        ));
    }
    for (nth, line, y) in name_places(chart, up) {
        let x = WIDTH - RIGHT + 10.0;
        put(format!(
            "<text class=\"name c{}\" x=\"{x}\" y=\"{:.1}\">{}</text>",
            nth % COLOURS.len(),
            y + 4.0,
            escape(&line.name)
        ));
    }
    out + "</svg>\n"
}

/// Names stand where their lines end, moved apart where they would lie over each other.
fn name_places(chart: &Chart, up: impl Fn(f64) -> f64) -> Vec<(usize, &Line, f64)> {
    let ends = chart.lines.iter().enumerate();
    let mut places: Vec<(usize, &Line, f64)> =
        ends.filter_map(|(nth, line)| Some((nth, line, up(line.points.last()?.1)))).collect();
    places.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut least = f64::NEG_INFINITY;
    for (_, _, y) in &mut places {
        *y = y.max(least);
        least = *y + NAME_GAP;
    }
    places
}

fn style() -> String {
    let colours = |dark: bool| -> String {
        let rules = COLOURS.iter().enumerate().map(|(nth, pair)| {
            let colour = if dark { pair.1 } else { pair.0 };
            format!(".line.c{nth}{{stroke:{colour}}}.name.c{nth}{{fill:{colour}}}")
        });
        rules.collect()
    };
    format!(
        "<style>text{{font:13px system-ui,sans-serif;font-variant-numeric:tabular-nums}}.title{{font-size:15px;\
         font-weight:600;fill:#1c2430}}.tick{{fill:#5b6673}}.end{{text-anchor:end}}.middle{{text-anchor:middle}}\
         .page{{fill:#fff}}.grid{{stroke:#e3e7ec}}.line{{fill:none;stroke-width:2.2;stroke-linejoin:round}}\
         .faint{{stroke-width:1;opacity:.75}}{}@media(prefers-color-scheme:dark){{.page{{fill:#14181e}}\
         .title{{fill:#e8edf3}}.tick{{fill:#98a4b1}}.grid{{stroke:#2a313a}}{}}}</style>\n",
        colours(false),
        colours(true)
    )
}

/// A round number of which about six make the whole.
fn round_step(most: f64) -> f64 {
    let rough = (most / 6.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    (factor * power).max(f64::MIN_POSITIVE)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.into(), points: points.to_vec(), is_faint: false }
    }

    #[test]
    fn a_point_stands_where_its_values_say() {
        let chart = Chart {
            title: "a < b".into(),
            x_name: "step",
            lines: vec![line("up", &[(0.0, 0.0), (100.0, 1.0)])],
        };
        let drawn = svg(&chart);
        assert!(drawn.contains("points=\"52.0,332.0 610.0,46.0\""), "{drawn}");
        assert!(drawn.contains(">a &lt; b</text>") && drawn.contains(">20</text>"), "{drawn}");
    }

    #[test]
    fn names_that_end_at_one_place_do_not_lie_over_each_other() {
        let same = [(1.0, 0.9)];
        let chart = Chart {
            title: String::new(),
            x_name: "s",
            lines: vec![line("a", &same), line("b", &same), line("none", &[])],
        };
        let places: Vec<f64> = name_places(&chart, |y| y).into_iter().map(|place| place.2).collect();
        assert_eq!(places, [0.9, 0.9 + NAME_GAP]);
        assert!(svg(&Chart { lines: Vec::new(), ..chart }).ends_with("</svg>\n"));
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!([100.0, 120.0, 7.3].map(round_step), [20.0, 20.0, 2.0]);
    }
}
