//! Lines appended to a file, for loggers that have no yard.
