//! Items of nodes with `for_each`, as messages name them.

use serde_json::Value;
use workflow_core::report::{ExecutionTrace, RunReport};
use workflow_core::{ScopeId, Seq};

use super::{Log, StepName};
use crate::expression::short;

/// An item and its place, as `n:each-item` has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemOf<'a> {
    pub(crate) index: u64,
    value: &'a Value,
}

impl<'a> ItemOf<'a> {
    /// The item that an event of the log is, if it is one.
    pub(crate) fn at(report: &'a RunReport, seq: Seq) -> Option<Self> {
        let event = report.log.get(usize::try_from(seq.0).ok()?.checked_sub(1)?)?;
        event.event.ends_with(":each-item").then(|| Self::of(event.value.as_json()))?
    }

    /// The item of such an event's data.
    pub(crate) fn of(data: Option<&'a Value>) -> Option<Self> {
        let data = data?;
        Some(Self { index: data.get("index")?.as_u64()?, value: data.get("item").unwrap_or(&Value::Null) })
    }

    /// The item with its number from 1, its place from 0, and its value: `item 3 (index 2, "c.png")`.
    pub(crate) fn name(self) -> String {
        format!("item {} (index {}, {})", self.index.saturating_add(1), self.index, short(self.value))
    }
}

impl<'a> Log<'a> {
    /// The item that an execution works for, if its node has `for_each` and this is the work of one.
    pub(crate) fn item(&self, execution: &ExecutionTrace) -> Option<ItemOf<'a>> {
        self.item_of(StepName::of(&execution.step)?.node, execution.scope)
    }

    fn item_of(&self, node: &str, scope: ScopeId) -> Option<ItemOf<'a>> {
        let branch = self.branch_report(scope)?;
        let is_own = StepName::of(&branch.step).is_some_and(|opener| opener.node == node);
        is_own.then(|| ItemOf::at(self.report, branch.item))?
    }
}
