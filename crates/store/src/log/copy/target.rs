//! Where a run is copied to.

use super::super::contract::Log;
use super::super::error::LogError;
use super::error::CopyError;
use super::source::Source;

/// A place for a run that is not there yet.
///
/// Until [`Target::finish`] nobody must take what is there for a run, whatever happens to the process.
pub trait Target {
    type Log: Log;
    /// Reads back what was written.
    type View: Source;

    /// Refuses if there is a run already.
    fn check(&self) -> Result<(), CopyError>;

    /// An empty log. What an interrupted copy has left is removed.
    fn begin(&mut self) -> Result<Self::Log, CopyError>;

    /// What has been written since it was begun.
    fn view(&self) -> Result<Self::View, CopyError>;

    /// From here on it is a run like any other.
    fn finish(&mut self) -> Result<(), CopyError>;

    /// Removes what was written.
    fn abandon(&mut self) -> Result<(), LogError>;
}
