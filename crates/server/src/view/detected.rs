//! Signs in one rollout that its reward was not won by the task, and where they stand.

use rollyard_store::records::{Body, Detection, Span};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::summary::Summary;

/// From so many times the mean of its group on, a length is told as a sign. The column has the number itself.
const LONG_FROM: f64 = 2.0;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DetectionAnswer {
    /// The column that has it: leak, tampering, format_only, repetition, dead_group or length_ratio.
    detector: &'static str,
    why: String,
    /// The message that it stands in; null where numbers alone say it, as with all that follows.
    message: Option<usize>,
    channel: Option<&'static str>,
    /// Characters of the text that the message has in this channel.
    start: Option<usize>,
    end: Option<usize>,
    /// What stands there; a long one is cut.
    quote: Option<String>,
}

impl DetectionAnswer {
    fn of_numbers(detector: &'static str, why: String) -> Self {
        Detection { detector, why, span: None }.into()
    }
}

impl From<Detection> for DetectionAnswer {
    fn from(Detection { detector, why, span }: Detection) -> Self {
        let (message, channel, start, end, quote) = match span {
            Some(Span { message, channel, start, end, quote }) => {
                (Some(message), Some(channel.name()), Some(start), Some(end), Some(quote))
            }
            None => (None, None, None, None, None),
        };
        Self { detector, why, message, channel, start, end, quote }
    }
}

/// Of the rollout itself, and of it beside the others of its group.
pub(super) fn detections(body: &Body, found: &Summary, siblings: u64) -> Vec<DetectionAnswer> {
    let of_text = body.detections().unwrap_or_default();
    let mut all: Vec<DetectionAnswer> = of_text.into_iter().map(DetectionAnswer::from).collect();
    if found.value("dead_group") == Value::Bool(true) {
        let why =
            format!("all {} rollouts of its group have the reward {}", siblings + 1, found.value("reward"));
        all.push(DetectionAnswer::of_numbers("dead_group", why));
    }
    if let Some(ratio) = found.value("length_ratio").as_f64().filter(|ratio| *ratio >= LONG_FROM) {
        let chars = found.value("response_chars");
        let why = format!("its answers have {chars} characters, {ratio:.1} times the mean of its group");
        all.push(DetectionAnswer::of_numbers("length_ratio", why));
    }
    all
}
