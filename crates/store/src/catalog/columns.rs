//! What the catalog knows of every rollout: the columns of `rollouts`, once, for SQL, filters, completion and docs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Real,
    Text,
    Flag,
    /// Seconds since 1970.
    Time,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
    /// What it is of the group `g` and the row `r`, for a column that is not in the table `rows`.
    of_group: Option<&'static str>,
}

const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, about, of_group: None }
}

const fn of_group(name: &'static str, kind: Kind, sql: &'static str, about: &'static str) -> Column {
    Column { name, kind, about, of_group: Some(sql) }
}

impl Column {
    /// Whether it also depends on the other rollouts of the group, and so changes as those come.
    pub fn is_of_group(&self) -> bool {
        self.of_group.is_some()
    }

    /// The value, in a query over the table `rows` that is called `rows` there.
    pub fn sql(&self, rows: &str) -> String {
        match self.of_group {
            None => format!("{rows}.{}", self.name),
            Some(sql) => {
                let sql = sql.replace("r.", &format!("{rows}."));
                format!("(SELECT {sql} FROM groups g WHERE g.group_id = {rows}.group_id)")
            }
        }
    }
}

/// The columns of the table `rows`, in its order after `row`; hot ones first, because SQLite reads a row from its
/// front. NULL where the rollout does not say, except where a default is the format's own. Those of the group come
/// after them; `query::columns` has the same in memory.
pub const COLUMNS: &[Column] = &[
    column("step", Kind::Integer, "training step; 0 where none is given"),
    column("reward", Kind::Real, "reward; NULL where it is none, NaN or not a number"),
    column("data_source", Kind::Text, "where the prompt comes from"),
    column("sample_index", Kind::Integer, "index within its batch"),
    column("rollout_n", Kind::Integer, "number that the writer gave it, not always unique"),
    column("validate", Kind::Flag, "made for validation, not for training"),
    column("experiment_name", Kind::Text, "experiment or run"),
    column("status", Kind::Text, "what became of it: held, trained, dropped, accepted, rejected, failed"),
    column("reason", Kind::Text, "why it was dropped, rejected or failed"),
    column("version", Kind::Integer, "weights that sampled its first token"),
    column("lag", Kind::Integer, "steps between its weights and the step that trained on it"),
    column("mixed", Kind::Flag, "its tokens come from more than one version of the weights"),
    column("advantage", Kind::Real, "advantage, where it is given"),
    column("stop_reason", Kind::Text, "why generation ended"),
    column("truncated", Kind::Flag, "generation ended at a limit"),
    column("turns", Kind::Integer, "messages of the assistant"),
    column("message_count", Kind::Integer, "messages"),
    column("tool_calls", Kind::Integer, "calls of tools"),
    column("prompt_chars", Kind::Integer, "characters before the first answer"),
    column("response_chars", Kind::Integer, "characters of all answers, reasoning included"),
    column("reasoning_chars", Kind::Integer, "characters of reasoning"),
    column("tokens", Kind::Integer, "sampled tokens, where they are given"),
    column("repetition", Kind::Real, "share of the answers that repeats earlier parts of them, 0 to 1"),
    column("unclosed", Kind::Flag, "a <think> block is never closed"),
    column("leak", Kind::Flag, "the ground truth stands in what the model was told before it said it"),
    column("tampering", Kind::Flag, "tests or the grader are changed, skipped or got round"),
    column("format_only", Kind::Flag, "a reward above 0 although the part that says correct is 0"),
    column("odd", Kind::Flag, "something in it is not as the format says, such as NaN for a number"),
    column("time", Kind::Time, "its timestamp"),
    column("prompt_hash", Kind::Integer, "the same for the same prompt"),
    column("group_id", Kind::Integer, "the same for the rollouts of one prompt at one step"),
    column("instance_id", Kind::Text, "name of the prompt"),
    column("uid", Kind::Text, "name of the rollout, where it has one"),
    column("trained_step", Kind::Integer, "step that trained on it"),
    of_group(
        "dead_group",
        Kind::Flag,
        "g.n > 1 AND g.rated = g.n AND g.low = g.high",
        "all rewards of its group, which has several, are the same",
    ),
    of_group(
        "length_ratio",
        Kind::Real,
        "CASE WHEN g.n > 1 AND g.chars > 0 THEN CAST(r.response_chars AS REAL) * g.lengths / g.chars END",
        "response_chars over their mean in its group; NULL alone",
    ),
];
