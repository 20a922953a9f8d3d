//! The dialects that agents speak.
