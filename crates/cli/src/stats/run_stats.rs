//! What `GET /api/runs` says of a run, as far as it is shown.

use serde_json::Value;

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
    pub(super) books: Books,
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
