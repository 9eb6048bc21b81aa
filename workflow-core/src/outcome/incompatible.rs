//! The difference between a changed workflow and a run's journal (S41).

use std::fmt;

use crate::store::Position;
use crate::table::TableDifference;

/// Why a run's journal does not fit its changed workflow. The journal stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incompatibility {
    /// The table differs in facts that the journal depends on: all of them.
    Table(Vec<TableDifference>),
    /// The journal has a record that this workflow would not lead to, or an event that it cannot decode.
    Journal {
        /// The first such record.
        position: Position,
        /// The difference.
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
