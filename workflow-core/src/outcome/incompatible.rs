//! Why the workflow as it is now is not the one that wrote a run's journal (S41).

use std::fmt;

use crate::store::Position;
use crate::table::TableDifference;

/// Why a run cannot go on with its workflow as that is now. The run is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incompatibility {
    /// The table is another, in things that the run's journal tells of: each of them.
    Table(Vec<TableDifference>),
    /// The journal says what the workflow would not have led to, or has an event that it cannot read.
    Journal {
        /// The first such record.
        position: Position,
        /// What is different.
        what: String,
    },
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(differences) => {
                f.write_str("what its journal tells of has changed")?;
                differences.iter().try_for_each(|difference| write!(f, "\n- {difference}"))
            }
            Self::Journal { position, what } => write!(f, "at record {position} of its journal, {what}"),
        }
    }
}
