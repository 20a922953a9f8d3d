//! Tells thoughts, words and calls apart in what a model writes.
