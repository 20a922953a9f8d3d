//! A session as people see it.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::flight::{Flight, Told};
use crate::live::{Inner, Live};
use crate::session::export::cut_words;
use crate::session::tree::Tree;
use crate::session::turn::{Ending, Turn, TurnNo};
use crate::tell::Piece;

/// What is known of a session besides its turns.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SessionFacts {
    pub session: String,
    pub run: String,
    pub instance_id: String,
    pub slot: u32,
    pub group_size: Option<u32>,
    /// `open`, `ended`, `abandoned` or `expired`.
    pub state: &'static str,
    /// Why it was closed.
    pub reason: Option<String>,
    pub opened_ms: u64,
    pub expires_ms: u64,
    /// Answers under way.
    pub running: u32,
    pub sampled_tokens: u64,
    pub reward: Option<f64>,
    /// Its rollouts are in the yard.
    pub is_delivered: bool,
    /// Requests that the engine did not answer.
    pub failures: u32,
    pub last_error: Option<String>,
}

/// One line about a session.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SessionRow {
    #[serde(flatten)]
    pub facts: SessionFacts,
    /// How many.
    pub turns: usize,
}

/// A session with all its turns.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct SessionView {
    #[serde(flatten)]
    pub facts: SessionFacts,
    /// In the order in which they ended.
    pub turns: Vec<TurnView>,
    pub under_way: Vec<UnderWay>,
    /// Memory that it takes.
    pub size_bytes: usize,
}

#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct TurnView {
    /// As in the names of answers: `chatcmpl-SESSION-TURN`.
    pub turn: u32,
    /// The turn that the conversation goes on from.
    pub follows: Option<u32>,
    /// Why its tokens are not those of the turn that it follows, and then more.
    pub cut: Option<&'static str>,
    /// The turn that its prompt begins like, and for how many tokens.
    pub begins_like: Option<u32>,
    pub shared_tokens: u32,
    /// What was said since the turn before; everything, where the prompt was rendered anew.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Box<RawValue>>,
    #[schema(value_type = Object)]
    pub answer: Box<RawValue>,
    pub prompt_tokens: usize,
    pub sampled_tokens: usize,
    /// Version of the weights and number of tokens, in order.
    pub versions: Vec<(i32, usize)>,
    pub stop: &'static str,
    pub reward: Option<f64>,
    pub began_ms: u64,
    pub took_ms: f64,
    pub first_ms: f64,
    pub malformed: Vec<String>,
    pub lacks_call: bool,
    pub keeps_thoughts: bool,
    pub is_unheard: bool,
    /// Nothing goes on from its tokens.
    pub is_leaf: bool,
}

/// An answer that is not over.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct UnderWay {
    pub follows: Option<u32>,
    pub cut: Option<&'static str>,
    pub begins_like: Option<u32>,
    /// As those of a turn.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Box<RawValue>>,
    /// Until now.
    #[serde(flatten)]
    pub said: Said,
}

/// Some of what is said in an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Said {
    pub turn: u32,
    pub reasoning: String,
    pub content: String,
    /// Calls as they are written.
    pub calls: String,
    /// How often something was said, up to and with this: who has all of it already knows it by this.
    pub times: usize,
}

/// What happens in a session while somebody watches.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum News {
    /// An answer has begun.
    Began(Box<UnderWay>),
    /// More of it.
    Said(Said),
    Ended(Box<TurnView>),
    Failed {
        turn: u32,
        message: String,
    },
    /// The reward of one answer was set.
    Rewarded {
        turn: u32,
        reward: f64,
    },
    /// A reward was set, the session closed, or its rollouts are in the yard.
    Session(Box<SessionRow>),
}

impl Said {
    fn add(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Reasoning(text) => self.reasoning.push_str(text),
                Piece::Content(text) => self.content.push_str(text),
                Piece::CallBegun { name, .. } => {
                    // Not only between those of one piece of news: they are strung together by whoever hears them.
                    self.calls.push('\n');
                    self.calls.push_str(name);
                    self.calls.push(' ');
                }
                Piece::CallArguments { json, .. } => self.calls.push_str(json),
            }
        }
    }

    /// What was told from one time on.
    pub(crate) fn since(flight: &Flight, time: usize) -> Self {
        let told = flight.so_far(time);
        let mut said = Self { turn: flight.id, times: time + told.len(), ..Self::default() };
        for told in told {
            if let Told::Spoken(spoken) = told {
                said.add(&spoken.pieces);
            }
        }
        said
    }
}

impl UnderWay {
    pub(crate) fn of(flight: &Flight) -> Self {
        let asked = &flight.asked;
        Self {
            follows: asked.follows,
            cut: asked.cut.map(cut_words),
            begins_like: asked.begins_like,
            messages: asked.messages.iter().map(|message| message.json.clone()).collect(),
            said: Said::since(flight, 0),
        }
    }
}

impl Live {
    pub fn row(&self) -> SessionRow {
        self.row_of(&self.inner())
    }

    fn row_of(&self, inner: &Inner) -> SessionRow {
        SessionRow { facts: self.facts_of(inner), turns: inner.state.tree.len() }
    }

    fn facts_of(&self, inner: &Inner) -> SessionFacts {
        let state = &inner.state;
        SessionFacts {
            session: self.id.to_string(),
            run: self.opening.run.clone(),
            instance_id: self.opening.instance_id.clone(),
            slot: self.opening.slot,
            group_size: self.opening.group_size,
            state: state.closed.as_ref().map_or("open", |closed| closed.how.name()),
            reason: state.closed.as_ref().map(|closed| closed.reason.clone()),
            opened_ms: self.opened_ms,
            expires_ms: self.expires_ms(),
            running: inner.running,
            sampled_tokens: state.sampled_tokens,
            reward: state.rewards.last.or_else(|| state.rewards.of_turns.values().last().copied()),
            is_delivered: state.is_delivered,
            failures: inner.failures,
            last_error: inner.last_error.clone(),
        }
    }

    pub fn view(&self) -> SessionView {
        let inner = self.inner();
        let leaves = inner.state.tree.leaves();
        let turns = inner.state.tree.turns();
        let turns = turns.map(|(no, turn)| turn_view(&inner, no, turn, leaves.contains(&no))).collect();
        let flights = inner.calls.values().flatten().flat_map(|called| called.flights());
        let running = flights.filter(|flight| inner.state.tree.by_id(flight.id).is_none());
        let under_way = running.map(|flight| UnderWay::of(&flight)).collect();
        SessionView { facts: self.facts_of(&inner), turns, under_way, size_bytes: inner.state.size_bytes() }
    }
}

pub(crate) fn turn_view(inner: &Inner, no: TurnNo, turn: &Turn, is_leaf: bool) -> TurnView {
    let tree: &Tree = &inner.state.tree;
    let id = |no: TurnNo| tree.get(no).map(|turn| turn.id);
    let versions = turn.segments.iter().map(|segment| (segment.version, segment.tokens)).collect();
    TurnView {
        turn: turn.id,
        follows: turn.follows.and_then(id),
        cut: turn.cut.map(cut_words),
        begins_like: turn.prefix.and_then(|prefix| id(prefix.turn)),
        shared_tokens: turn.prefix.map_or(0, |prefix| prefix.len),
        messages: turn.messages.iter().map(|message| message.json.clone()).collect(),
        answer: turn.answer.json.clone(),
        prompt_tokens: turn.prompt_len(),
        sampled_tokens: turn.sampled.len(),
        versions,
        stop: match turn.facts.stop {
            Ending::Stop => "stop",
            Ending::Length => "length",
            Ending::ToolCalls => "tool_calls",
            Ending::Abort => "abort",
        },
        reward: inner.state.rewards.of_turns.get(&no).copied(),
        began_ms: turn.facts.began_ms,
        took_ms: turn.facts.took_ms,
        first_ms: turn.facts.first_ms,
        malformed: turn.facts.malformed.clone(),
        lacks_call: turn.facts.lacks_call,
        keeps_thoughts: turn.facts.keeps_thoughts,
        is_unheard: turn.facts.is_unheard,
        is_leaf,
    }
}
