//! Agents ask here as they would ask a provider, and every token of the answers is recorded.
//!
//! A request comes in one of four [`dialect`]s and becomes an [`Ask`](ask::Ask); the answer is [told](tell) in the
//! dialect of the caller. [`gateway`] has the sessions; [`session`] is what is known of one, to the token. `answer` finds
//! the place of a request in its session and begins what is asked for: a `drive` has the engine make it, a `flight` tells
//! whoever listens. In between, [`parse`] tells thoughts, words and calls apart in what the model wrote. `handing` brings
//! the rollouts of closed sessions to a [yard](delivery), and a [`journal`] keeps what must survive a crash. [`routes`]
//! are all of it over HTTP, and [`look`] is what people see. An [`agent`] is run by an executor with a gateway of its own,
//! and `taking` gives the rollouts of its session to whoever opened it.

pub mod ask;
pub mod tell;

pub mod refusal;

pub mod dialect;
pub mod parse;

pub mod session;

pub mod delivery;
pub mod journal;
pub mod model;
pub mod settings;

mod groups;
pub mod live;

pub mod gateway;

mod answer;
mod drive;
mod flight;
mod words;

mod handing;
pub mod taking;

pub mod look;
pub mod routes;

pub mod agent;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
