//! The gateway as agents meet it, before an engine that misbehaves on command.

mod asking;
mod hanging_up;
mod house;
mod recovering;
mod sessions;
