//! What the functions of a generator made of a group.
//!
//! They are called once, when the group could be ready, and never again: not when a lease comes back, not when a log
//! is replayed. So the rows are kept, each as what differs from the rollout it shows. A changed reward is a number;
//! anything else that was changed is kept as JSON.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::pipeline::{DropReason, Row};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: Vec<ShapedRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapedRow {
    /// Which member of the group it shows.
    pub member: u32,
    pub reward: f64,
    /// As in [`Row`]: the how-manieth copy of the group.
    pub copy: Option<u32>,
    /// Fields that were changed besides, as [`crate::wire::row::Changes`] in JSON.
    pub changes: Option<Arc<str>>,
}

impl Shape {
    pub(super) fn rows(&self) -> Vec<Row> {
        self.rows.iter().map(ShapedRow::row).collect()
    }

    /// A member left: its rows go with it, and those behind it move up.
    pub(super) fn forget(&mut self, member: usize) {
        self.rows.retain(|row| row.member as usize != member);
        for row in &mut self.rows {
            row.member -= u32::from(row.member as usize > member);
        }
    }
}

impl ShapedRow {
    pub fn row(&self) -> Row {
        Row { member: self.member as usize, reward: self.reward, weight: 1.0, copy: self.copy }
    }
}

/// What the functions said of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Not finished: more rollouts are wanted.
    Waiting,
    Use(Shape),
    Drop {
        reason: DropReason,
        why: Option<String>,
    },
}
