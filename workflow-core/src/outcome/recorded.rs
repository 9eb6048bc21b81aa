//! Why nothing can be said of a run by its records alone.

use crate::id::RunId;
use crate::outcome::Incompatibility;
use crate::spec::TableError;
use crate::store::Position;

/// Why the records of a run do not make a [`RecordedRun`](crate::RecordedRun).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedRunError {
    /// The first record does not say how the run began, or there is none; or neither an event nor an end is among them.
    #[error("the records of run `{run}` do not begin with how it began, and the event that opened it")]
    NoBeginning {
        /// The run.
        run: RunId,
    },
    /// A later release of this crate has written them.
    #[error(
        "the journal of run `{run}` has format {format} from record {position} on, and this reads up to {known}"
    )]
    NewerFormat {
        /// The run.
        run: RunId,
        /// The record that says so.
        position: Position,
        /// The format.
        format: u32,
        /// The latest that is read here.
        known: u32,
    },
    /// The table by which the last of them were written is no table.
    #[error("the table in record {position} of run `{run}` cannot be read")]
    UnreadableTable {
        /// The run.
        run: RunId,
        /// The record that has it.
        position: Position,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The table by which the last of them were written is one that no workflow has.
    #[error("the table in record {position} of run `{run}` is of no workflow")]
    UnsoundTable {
        /// The run.
        run: RunId,
        /// The record that has it.
        position: Position,
        /// What is wrong with it.
        source: TableError,
    },
    /// They tell what a workflow of this table does not do: they were changed, or some of them are missing.
    #[error("run `{run}` cannot be followed: {difference}")]
    Contradiction {
        /// The run.
        run: RunId,
        /// Where, and what.
        difference: Incompatibility,
    },
}
