//! Sends what a lease holds, and settles the lease by what became of it.
//!
//! The answer is made a few groups at a time, as the reader takes it, so neither a large read nor a slow reader
//! costs memory or a thread. What becomes of the lease is the matter of its [`receipt`].

mod receipt;

pub(crate) use receipt::{FollowedBody, Receipt};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use rollyard_core::ids::{LeaseNo, Place};
use rollyard_core::ledger::{Command, LeasedGroup, LeasedRow, SampledRow, Uid};
use rollyard_core::wire::row::{self, Drawn};
use rollyard_store::log::ReadError;
use rollyard_store::yard::Yard;
use std::collections::VecDeque;
use std::io;

/// The size at which a piece of the answer is sent off.
const PIECE_BYTES: usize = 128 << 10;

/// The JSON around and between the groups.
#[derive(Clone, Debug)]
pub(crate) struct Frameset {
    pub(crate) before: String,
    pub(crate) after: &'static str,
    pub(crate) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows of all groups in one list.
    Rows,
    /// A list of groups, each with its rows.
    Groups,
}

/// A piece of an answer that is written whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Group(LeasedGroup),
    /// A rollout that was drawn.
    Drawn(SampledRow),
}

/// These groups, or rollouts that were drawn, as a JSON answer.
///
/// `lease` is theirs; without one (a peek) damaged rows are left out instead of dropped.
pub(crate) fn answer(
    yard: Yard,
    lease: Option<LeaseNo>,
    parts: impl IntoIterator<Item = Part>,
    frameset: Frameset,
) -> Response {
    let parts = parts.into_iter().collect();
    let writer = Writer { yard, lease, parts, shape: frameset.shape, first: true, out: Vec::new() };
    let state = State { writer: Some(writer), before: Some(frameset.before), after: frameset.after };
    let pieces = futures_util::stream::unfold(state, |mut state| async move {
        let piece = state.next_piece().await?;
        Some((piece, state))
    });
    // Who packs the answer may ask once more after its end, which a bare unfold does not stand.
    let mut response = Response::new(Body::from_stream(pieces.fuse()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

struct State {
    writer: Option<Writer>,
    before: Option<String>,
    after: &'static str,
}

impl State {
    async fn next_piece(&mut self) -> Option<io::Result<Bytes>> {
        let mut writer = self.writer.take()?;
        writer.out.extend(self.before.take().unwrap_or_default().bytes());
        loop {
            // The disk may be slow, and this thread serves others.
            let (back, outcome) = match tokio::task::spawn_blocking(move || writer.fill()).await {
                Ok(done) => done,
                Err(panicked) => return Some(Err(io::Error::other(panicked))),
            };
            writer = back;
            match outcome {
                Filled::More => {
                    let piece = std::mem::replace(&mut writer.out, Vec::with_capacity(PIECE_BYTES));
                    self.writer = Some(writer);
                    return Some(Ok(piece.into()));
                }
                Filled::Done => {
                    writer.out.extend(self.after.bytes());
                    return Some(Ok(writer.out.into()));
                }
                Filled::Damaged(uid) => {
                    if let Err(error) = writer.discard(uid).await {
                        return Some(Err(error));
                    }
                }
                Filled::Failed(error) => return Some(Err(error)),
            }
        }
    }
}

struct Writer {
    yard: Yard,
    lease: Option<LeaseNo>,
    parts: VecDeque<Part>,
    shape: Shape,
    first: bool,
    out: Vec<u8>,
}

enum Filled {
    More,
    Done,
    /// A rollout's bytes are not what was written.
    Damaged(Uid),
    Failed(io::Error),
}

impl Writer {
    /// Writes parts until there is a piece to send.
    fn fill(mut self) -> (Self, Filled) {
        while let Some(part) = self.parts.pop_front() {
            let (mark, first) = (self.out.len(), self.first);
            let written = match &part {
                Part::Group(group) => self.write_group(group),
                Part::Drawn(row) => self.write_drawn(row),
            };
            match written {
                Ok(()) => {}
                Err(Trouble::Damaged(uid)) => {
                    self.out.truncate(mark);
                    self.first = first;
                    self.parts.push_front(part);
                    return (self, Filled::Damaged(uid));
                }
                Err(Trouble::Failed(error)) => return (self, Filled::Failed(error)),
            }
            if self.out.len() >= PIECE_BYTES {
                return (self, Filled::More);
            }
        }
        (self, Filled::Done)
    }

    fn write_group(&mut self, group: &LeasedGroup) -> Result<(), Trouble> {
        if self.shape == Shape::Groups {
            self.separate();
            self.out.extend(group_head(group).bytes());
        }
        let mut first_row = true;
        for leased in &group.rows {
            let payload = self.payload(leased.place, leased.uid)?;
            match self.shape {
                Shape::Rows => self.separate(),
                Shape::Groups if first_row => {}
                Shape::Groups => self.out.push(b','),
            }
            first_row = false;
            let LeasedRow { row, raw_reward, .. } = leased;
            let written = match &leased.changes {
                None => row::write(&mut self.out, &payload, row, *raw_reward),
                Some(changes) => row::write_changed(&mut self.out, &payload, changes, row, *raw_reward),
            };
            written.map_err(|error| {
                tracing::error!("a stored rollout is not the JSON it was: {error}");
                Trouble::Damaged(leased.uid)
            })?;
        }
        if self.shape == Shape::Groups {
            self.out.extend(b"]}");
        }
        Ok(())
    }

    fn write_drawn(&mut self, row: &SampledRow) -> Result<(), Trouble> {
        let payload = self.payload(row.place, row.uid)?;
        self.separate();
        let SampledRow { advantage, used, version, .. } = *row;
        row::write_drawn(&mut self.out, &payload, &Drawn { advantage, used, version }).map_err(|error| {
            tracing::error!("a stored rollout is not the JSON it was: {error}");
            Trouble::Damaged(row.uid)
        })
    }

    fn payload(&self, place: Place, uid: Uid) -> Result<Bytes, Trouble> {
        self.yard.payload(place).map_err(|error| match error {
            ReadError::Corrupt { .. } | ReadError::Gone { .. } => {
                tracing::error!("{error}");
                Trouble::Damaged(uid)
            }
            ReadError::Io { .. } => Trouble::Failed(io::Error::other(error)),
        })
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    /// Drops a damaged rollout, with its reason on the books, and shows the rest of its group as it is now.
    async fn discard(&mut self, uid: Uid) -> io::Result<()> {
        let Some(part) = self.parts.pop_front() else { return Ok(()) };
        let mut group = match part {
            Part::Group(group) => group,
            Part::Drawn(_) => {
                self.yard.run(Command::Discard { uid }).await.map_err(io::Error::other)?;
                return Ok(());
            }
        };
        match self.lease {
            None => group.rows.retain(|row| row.uid != uid),
            Some(lease) => {
                self.yard.run(Command::Discard { uid }).await.map_err(io::Error::other)?;
                let groups = self.yard.ask(move |ledger| ledger.leased_groups(lease)).await;
                let found = groups.map_err(io::Error::other)?.into_iter().find(|g| g.group == group.group);
                group.rows = found.map(|group| group.rows).unwrap_or_default();
            }
        }
        self.parts.push_front(Part::Group(group));
        Ok(())
    }
}

enum Trouble {
    Damaged(Uid),
    Failed(io::Error),
}

fn group_head(group: &LeasedGroup) -> String {
    let versions = group.versions.map(|(oldest, newest)| [oldest, newest]);
    let head = serde_json::json!({
        "group": group.group, "instance_id": group.instance, "round": group.round, "versions": versions,
    });
    let mut head = head.to_string();
    head.pop();
    head.push_str(",\"rollouts\":[");
    head
}
