//! The table of a journal in its serialised form: made once per workflow and shared by all its runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::TableShape;

/// The table of a workflow as a journal stores it: a fingerprint, and the shape as JSON.
///
/// Clones share the text, so that each further run costs only what its store does with it.
///
/// ```
/// use workflow_core::signature::Roles;
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, RecordedTable, StepDef};
///
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// let written = RecordedTable::new(&table.shape());
/// let read: RecordedTable = serde_json::from_str(&serde_json::to_string(&written)?)?;
/// assert_eq!(read.fingerprint(), table.shape().fingerprint());
/// assert_eq!(read.shape()?, table.shape());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RecordedTable(Arc<Text>);

#[derive(Serialize, Deserialize)]
struct Text {
    fingerprint: Arc<str>,
    shape: Box<RawValue>,
}

impl RecordedTable {
    /// Records a table of this shape. O(rows).
    pub fn new(shape: &TableShape) -> Self {
        Self(Arc::new(Text { fingerprint: shape.fingerprint().into(), shape: shape.json() }))
    }

    /// The recorded fingerprint, as [`TableShape::fingerprint`] computed it.
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }

    /// The fingerprint, shared with the table.
    pub(crate) fn shared_fingerprint(&self) -> Arc<str> {
        Arc::clone(&self.0.fingerprint)
    }

    /// Reads the shape. O(rows) at each call.
    ///
    /// # Errors
    /// The error of `serde_json`, if the recorded JSON is not a shape.
    pub fn shape(&self) -> Result<TableShape, serde_json::Error> {
        serde_json::from_str(self.0.shape.get())
    }
}

impl Serialize for RecordedTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordedTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Arc::new(Text::deserialize(deserializer)?)))
    }
}

impl fmt::Debug for RecordedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedTable({})", self.fingerprint())
    }
}
