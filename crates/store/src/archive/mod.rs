//! Every rollout, kept.
