//! Errors of reading a run from its records alone.

use crate::id::RunId;
use crate::outcome::Incompatibility;
use crate::spec::TableError;
use crate::store::Position;

/// Why the records of a run do not make a [`RecordedRun`](crate::RecordedRun).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedRunError {
    /// The first record does not begin a run, there is no record, or no record opens or ends the run.
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
        /// The record that names the format.
        position: Position,
        /// The format.
        format: u32,
        /// The latest supported format.
        known: u32,
    },
    /// The latest table of the records is damaged.
    #[error("the table in record {position} of run `{run}` cannot be read")]
    UnreadableTable {
        /// The run.
        run: RunId,
        /// The record that has it.
        position: Position,
        /// The problem.
        source: serde_json::Error,
    },
    /// No workflow can have the latest table of the records.
    #[error("the table in record {position} of run `{run}` is of no workflow")]
    UnsoundTable {
        /// The run.
        run: RunId,
        /// The record that has it.
        position: Position,
        /// The problem.
        source: TableError,
    },
    /// A workflow of this table does not lead to these records: they were changed, or some are missing.
    #[error("run `{run}` cannot be followed: {difference}")]
    Contradiction {
        /// The run.
        run: RunId,
        /// The record and the difference.
        difference: Incompatibility,
    },
}
