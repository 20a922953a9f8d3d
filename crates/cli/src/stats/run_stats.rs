//! What `GET /api/runs` says of a run, as far as it is shown.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::terminal::count;

/// Ages that are told one by one.
const AGES_SHOWN: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct RunStats {
    pub(super) run: String,
    pub(super) task_type: String,
    pub(super) group_size: u64,
    pub(super) version: Option<u64>,
    pub(super) last_commit: Option<u64>,
    pub(super) open_groups: u64,
    pub(super) ready_groups: u64,
    pub(super) leases_out: u64,
    pub(super) pool: Option<Pool>,
    /// Who makes its rollouts, in a line.
    pub(super) generator: Option<String>,
    pub(super) books: Books,
}

/// What can be drawn, in a run that samples.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) step: i64,
    pub(super) env_sizes: Vec<(String, u64)>,
    /// Rollouts by how many steps their weights are behind.
    pub(super) ages: BTreeMap<i64, u64>,
    pub(super) oldest_timestamp: Option<f64>,
    pub(super) sampled: u64,
    pub(super) inserted: u64,
    /// Environment, mean length of what was generated, and of what was trained on.
    pub(super) lengths: Vec<(String, f64, f64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Books {
    pub(super) admitted: u64,
    pub(super) held: u64,
    pub(super) held_bytes: u64,
    pub(super) leased: u64,
    pub(super) trained: u64,
    pub(super) dropped: u64,
    pub(super) dropped_by_reason: Vec<(String, u64)>,
    pub(super) balanced: bool,
}

impl Pool {
    fn parse(answer: &Value) -> Option<Self> {
        let counts = |name: &str| answer.get(name)?.as_object();
        let mean = |sides: &Value, side: &str| sides.get(side)?.get("mean")?.as_f64();
        Some(Self {
            step: answer.get("step")?.as_i64()?,
            env_sizes: counts("env_sizes")?
                .iter()
                .filter_map(|(env, size)| Some((env.clone(), size.as_u64()?)))
                .collect(),
            ages: counts("ages_in_steps")?
                .iter()
                .filter_map(|(steps, count)| Some((steps.parse().ok()?, count.as_u64()?)))
                .collect(),
            oldest_timestamp: answer.get("oldest_timestamp").and_then(Value::as_f64),
            sampled: answer.get("sampled")?.as_u64()?,
            inserted: answer.get("inserted")?.as_u64()?,
            lengths: counts("lengths")?
                .iter()
                .filter_map(|(env, sides)| {
                    Some((env.clone(), mean(sides, "generated")?, mean(sides, "trained")?))
                })
                .collect(),
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.env_sizes.iter().map(|(_, size)| size).sum()
    }

    /// The pool in three lines: what is in it, how old that is, and whether what is trained on is like what is
    /// generated.
    pub(super) fn lines(&self, now_secs: f64) -> [String; 3] {
        let name = |env: &str| if env.is_empty() { "(no name)".to_owned() } else { env.to_owned() };
        let envs: Vec<String> =
            self.env_sizes.iter().map(|(env, size)| format!("{} {}", name(env), count(*size))).collect();
        let ages: Vec<String> = self
            .ages
            .iter()
            .take(AGES_SHOWN)
            .map(|(steps, size)| format!("{steps}: {}", count(*size)))
            .collect();
        let more = if self.ages.len() > AGES_SHOWN { ", …" } else { "" };
        let oldest =
            self.oldest_timestamp.map(|oldest| format!(", oldest {:.0} s", (now_secs - oldest).max(0.0)));
        let lengths: Vec<String> = self
            .lengths
            .iter()
            .map(|(env, generated, trained)| format!("{} {generated:.0} / {trained:.0}", name(env)))
            .collect();
        let or_none = |parts: Vec<String>| if parts.is_empty() { "-".to_owned() } else { parts.join(", ") };
        [
            format!(
                "step {}, {} to draw from ({}), {} drawn of {} inserted",
                self.step,
                count(self.size()),
                or_none(envs),
                count(self.sampled),
                count(self.inserted)
            ),
            format!("steps behind {}{more}{}", or_none(ages), oldest.unwrap_or_default()),
            format!("mean tokens generated / trained: {}", or_none(lengths)),
        ]
    }
}

impl RunStats {
    pub(super) fn parse(answer: &Value) -> Option<Self> {
        let number = |path: &str| answer.pointer(path).and_then(Value::as_u64);
        let text = |path: &str| answer.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let reasons = answer.pointer("/books/dropped_by_reason")?.as_object()?;
        Some(Self {
            run: text("/run")?,
            task_type: text("/config/task_type")?,
            group_size: number("/config/group_size")?,
            version: number("/version"),
            last_commit: answer.get("commits")?.as_array()?.last().and_then(Value::as_u64),
            open_groups: number("/open_groups")?,
            ready_groups: number("/ready_groups")?,
            leases_out: number("/leases_out")?,
            pool: answer.get("pool").filter(|pool| !pool.is_null()).and_then(Pool::parse),
            generator: answer.get("generator").and_then(generator_line),
            books: Books {
                admitted: number("/books/admitted")?,
                held: number("/books/held")?,
                held_bytes: number("/books/held_bytes")?,
                leased: number("/books/leased")?,
                trained: number("/books/trained")?,
                dropped: number("/books/dropped")?,
                dropped_by_reason: reasons
                    .iter()
                    .filter_map(|(reason, count)| Some((reason.clone(), count.as_u64()?)))
                    .collect(),
                balanced: answer.pointer("/books/balanced")?.as_bool()?,
            },
        })
    }
}

/// `None` for a run that was not started, or whose rollouts come from outside: there is nothing to look after.
fn generator_line(generator: &Value) -> Option<String> {
    let text = |name: &str| generator.get(name).and_then(Value::as_str);
    let number = |path: &str| generator.pointer(path).and_then(Value::as_u64);
    let state = text("state").filter(|state| *state != "external")?;
    let mut line = format!("{state}, {}", text("file").unwrap_or("built in"));
    for (name, value) in [("process", number("/pid")), ("restarts", number("/restarts").filter(|n| *n > 0))] {
        line.extend(value.map(|value| format!(", {name} {value}")));
    }
    if let (Some(written), Some(total)) = (number("/progress/written"), number("/progress/total")) {
        let before = number("/progress/known").unwrap_or(0) + number("/progress/skipped").unwrap_or(0);
        line.push_str(&format!(", {} of {}", count(written + before), count(total)));
    }
    let trouble = generator.pointer("/progress/last_error").and_then(Value::as_str).or(text("problem"));
    line.extend(trouble.map(|trouble| format!(": {}", trouble.lines().last().unwrap_or_default())));
    Some(line)
}
