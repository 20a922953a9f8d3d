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
}

const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, about }
}

/// The columns of the table `rows`, in its order after `row`; hot ones first, because SQLite reads a row from its
/// front. NULL where the rollout does not say, except where a default is the format's own.
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
    column("odd", Kind::Flag, "something in it is not as the format says, such as NaN for a number"),
    column("time", Kind::Time, "its timestamp"),
    column("prompt_hash", Kind::Integer, "the same for the same prompt"),
    column("group_id", Kind::Integer, "the same for the rollouts of one prompt at one step"),
    column("instance_id", Kind::Text, "name of the prompt"),
    column("uid", Kind::Text, "name of the rollout, where it has one"),
    column("trained_step", Kind::Integer, "step that trained on it"),
];
