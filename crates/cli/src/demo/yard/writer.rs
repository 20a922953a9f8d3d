//! A writer: one agent that sends what it made, and sends it again when it hears nothing.

use anyhow::Result;
use serde_json::{Value, json};

use super::stage::{GROUP_SIZE, Stage};
use super::{NATIVE_RUN, SLIME_RUN};

/// Every so many writes are sent once more although they were answered.
const NERVOUS_EVERY: u64 = 50;

/// About the length of a short conversation.
const ANSWER_BYTES: usize = 2000;

/// What a writer knows in the end.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The run and the uid of every write that was answered.
    pub(super) answered: Vec<(&'static str, String)>,
    /// Writes sent again because no answer came.
    pub(super) resent: u64,
    /// Of those, the ones that had been kept before: only the answer was lost.
    pub(super) kept_unanswered: u64,
    /// Writes sent twice on purpose, and how many of them were recognised.
    pub(super) sent_twice: u64,
    pub(super) recognised: u64,
}

pub(super) fn write(stage: &Stage, number: usize) -> Result<Written> {
    let mut client = stage.client();
    let mut written = Written::default();
    let mut dice = Dice(number as u64);
    while let Some(group) = stage.begin_group() {
        let run = if group.is_multiple_of(2) { SLIME_RUN } else { NATIVE_RUN };
        let path = format!("/runs/{run}/buffer/write");
        // Where all eight get the same reward there is nothing to learn: such a group is dropped, and says why.
        let is_dull = dice.roll(20) == 0;
        for n in 0..GROUP_SIZE {
            let uid = format!("{run}-{group}-{n}");
            let reward = if is_dull { 0.0 } else { dice.roll(5) as f64 / 4.0 };
            let item = item(&uid, &format!("task-{group}"), reward, &mut dice);
            let answer = stage.post(&mut client, &path, &item)?;
            written.resent += u64::from(answer.attempts > 1);
            written.kept_unanswered += u64::from(answer.attempts > 1 && is_duplicate(&answer.body));
            if (group * GROUP_SIZE + n).is_multiple_of(NERVOUS_EVERY) {
                written.sent_twice += 1;
                written.recognised += u64::from(is_duplicate(&stage.post(&mut client, &path, &item)?.body));
            }
            stage.note_answered();
            written.answered.push((run, uid));
        }
    }
    Ok(written)
}

fn item(uid: &str, instance: &str, reward: f64, dice: &mut Dice) -> Value {
    let words: String = (0..ANSWER_BYTES / 8).map(|_| format!("{:07x} ", dice.roll(1 << 28))).collect();
    json!({
        "uid": uid,
        "instance_id": instance,
        "messages": [
            {"role": "user", "content": format!("What is {} + {}?", dice.roll(100), dice.roll(100))},
            {"role": "assistant", "content": words},
        ],
        "reward": reward,
        "extra_info": {},
    })
}

fn is_duplicate(answer: &Value) -> bool {
    answer.pointer("/data/meta_info/duplicate") == Some(&Value::Bool(true))
}

/// Splitmix: the same writer makes the same rollouts in every demo.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
