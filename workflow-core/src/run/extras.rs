//! State that only few runs have. It is allocated only for those.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use crate::id::{ParentRun, TraceParent};
use crate::run::ParentLink;

/// Configuration, labels, deadline, parent, and whether the run was resumed.
#[derive(Default)]
pub(crate) struct RunExtras {
    pub(crate) configs: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) trace_parent: Option<TraceParent>,
    pub(crate) deadline: Option<SystemTime>,
    /// The link to the parent in this process, if the run is a child.
    pub(crate) link: Option<ParentLink>,
    /// The parent by the run's journal.
    pub(crate) parent: Option<ParentRun>,
    /// Whether this process resumed the run after an earlier one.
    pub(crate) resumed: bool,
}

impl RunExtras {
    /// Boxed; `None` if nothing is set.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        let Self { configs, metadata, trace_parent, deadline, link, parent, resumed } = &self;
        let is_plain =
            configs.is_empty() && metadata.is_empty() && trace_parent.is_none() && deadline.is_none();
        let is_empty = is_plain && link.is_none() && parent.is_none() && !resumed;
        (!is_empty).then(|| Box::new(self))
    }

    pub(super) fn config(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.configs.get(&of).map(Arc::clone)
    }

    /// The parent of the run, if it is a child.
    pub(super) fn parent(&self) -> Option<&ParentRun> {
        self.link.as_ref().map(|link| &link.parent).or(self.parent.as_ref())
    }

    /// Whether this run or one above it was resumed. Its children may then have journals already.
    pub(super) fn may_have_earlier_children(&self) -> bool {
        self.resumed || self.link.as_ref().is_some_and(|link| link.may_have_earlier_children)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ExecutionId;

    fn parent() -> ParentRun {
        ParentRun { run: "a".into(), step: "s".into(), execution: ExecutionId(1), attempt: 1 }
    }

    #[test]
    fn a_run_without_extras_has_no_room_for_them() {
        assert!(RunExtras::default().boxed().is_none());
        assert!(RunExtras { resumed: true, ..RunExtras::default() }.boxed().is_some());
        let metadata = [("kind".to_owned(), "test".to_owned())].into();
        assert!(RunExtras { metadata, ..RunExtras::default() }.boxed().is_some());
    }

    #[test]
    fn a_configuration_is_found_by_its_type() {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(7_u8);
        let configs = [(TypeId::of::<u8>(), value)].into();
        let extras = RunExtras { configs, ..RunExtras::default() };
        let found = extras.config(TypeId::of::<u8>()).and_then(|config| config.downcast::<u8>().ok());
        assert_eq!(found.map(|config| *config), Some(7));
        assert!(extras.config(TypeId::of::<u16>()).is_none());
    }

    #[test]
    fn a_resumed_run_knows_its_parent_from_its_journal() {
        let extras = RunExtras { parent: Some(parent()), resumed: true, ..RunExtras::default() };
        assert_eq!(extras.parent(), Some(&parent()));
        assert!(extras.may_have_earlier_children() && !RunExtras::default().may_have_earlier_children());
    }
}
