//! Nodes with `for_each`: one branch per item, and the step that collects them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{FanOut, InputValue, StepError};

use super::visit::{Visit, forget};
use super::work::Worked;
use super::{Walk, read};
use crate::document::model::{Failures, Work};
use crate::retried::Again;
use crate::state::{Done, NodeResult, VisitStatus, names};
use crate::table::Plan;
use crate::tool_call::ToolCall;

/// `n:done`: an item whose work is done, without its data.
#[derive(Debug, Default, Deserialize)]
struct ItemDone {
    #[serde(default)]
    done: Done,
    #[serde(default)]
    prompts: u32,
    #[serde(default)]
    warnings: Vec<Arc<str>>,
    #[serde(default)]
    calls: Vec<ToolCall>,
    #[serde(default)]
    again: Vec<Again>,
    /// The routes of a child that ended before a choice, in a dry run.
    dry: Option<Vec<Arc<str>>>,
}

/// `n:each-item`: an item and its place.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) item: Value,
    pub(super) index: u32,
}

impl Item {
    pub(super) fn of(value: &Value) -> Self {
        let index = value.get("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok());
        Self { item: value.get("item").cloned().unwrap_or_default(), index: index.unwrap_or_default() }
    }
}

impl Visit<'_> {
    /// Opens a branch per item.
    pub(super) fn open_items(mut self: Box<Self>) -> Result<Emitted, StepError> {
        let node = self.node();
        let Some(each) = &node.for_each else { return Err(StepError::permanent("the node has no items")) };
        let list = each
            .list
            .parsed
            .evaluate(&self.sight)
            .map_err(|error| StepError::permanent(error.to_string()))?;
        let source = each.list.parsed.source();
        let Value::Array(items) = list else {
            let found = crate::expression::short(&list);
            return Err(StepError::permanent(format!("`for_each` needs a list, and `{source}` is {found}")));
        };
        let most = usize::try_from(self.walk.graph.limits.items).unwrap_or(usize::MAX);
        if items.len() > most {
            let count = items.len();
            let message = format!("`{source}` has {count} items, and `limits.items` allows {most}");
            return Err(StepError::permanent(message));
        }
        let items =
            items.into_iter().enumerate().map(|(index, item)| json!({ "item": item, "index": index }));
        let fan_out = FanOut::new(items.collect()).concurrency(each.concurrency.max(1));
        let fan_out = match each.failures {
            Failures::FailAll => fan_out,
            Failures::ContinueOthers => fan_out.continue_others(),
            Failures::WaitAll => fan_out.wait_all(),
        };
        self.call.emit(&names::of(&node.id.value, "each-item"), fan_out)?;
        self.call.commit(())
    }

    /// Checks the data of an item, and leaves it.
    pub(super) async fn done(mut self: Box<Self>, worked: Worked) -> Result<Emitted, StepError> {
        let mut done = Done { runs: worked.runs, judged: worked.judged, decided: 0 };
        let (prompts, warnings, saved, dry) = (worked.prompts, worked.warnings, worked.saved, worked.dry);
        let (calls, mut again) = (self.bounded(worked.calls), worked.again);
        let result = Arc::new(NodeResult { data: worked.data, ..self.result() });
        let data = match worked.status {
            VisitStatus::Skipped => Value::Null,
            VisitStatus::Success | VisitStatus::Failed => {
                if !worked.is_checked && dry.is_none() {
                    let checked = self.check(&result).await?;
                    done.judged = done.judged.saturating_add(checked.judged);
                    again.extend(checked.again);
                }
                Arc::unwrap_or_clone(result).data
            }
        };
        forget(saved).await?;
        let warnings: Vec<_> = warnings.into_iter().chain(std::mem::take(&mut self.warnings)).collect();
        let mut value = json!({ "done": done, "prompts": prompts, "warnings": warnings });
        if !calls.is_empty() {
            value["calls"] = json!(calls);
        }
        if !again.is_empty() {
            value["again"] = json!(again);
        }
        if let Some(dry) = dry {
            value["dry"] = json!(dry);
        }
        value["data"] = data;
        self.call.emit(&names::of(&self.node().id.value, "done"), value)?;
        self.call.commit(())
    }
}

impl Walk {
    pub(super) async fn each(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let item = call.input(0).json().map(Item::of).unwrap_or_default();
        let mut visit = self.open(plan, call)?;
        let Item { item, index } = item;
        visit.sight.item = Some((item, index));
        // Scripts play one entry per item, in the order of the items.
        visit.done.runs = visit.done.runs.saturating_add(index);
        if let Work::Human(human) = &visit.node().work {
            return visit.ask(human);
        }
        let work = visit.work()?;
        let worked = work.await?;
        visit.done(worked).await
    }

    pub(super) async fn collect(&self, plan: &Plan, call: StepCall) -> Result<Emitted, StepError> {
        let InputValue::Gather(branches) = call.input(0) else {
            return Err(StepError::permanent("the step has no branches"));
        };
        let (mut items, mut failed, mut done) = (Vec::new(), Vec::new(), Done::default());
        let (mut prompts, mut warnings, mut dry) = (0_u32, Vec::new(), None::<Vec<Arc<str>>>);
        let (mut calls, mut again) = (Vec::new(), Vec::new());
        for (index, branch) in branches.iter().enumerate() {
            let value = branch.events().last().and_then(|event| event.as_json());
            let of_item: ItemDone = value.map_or(Ok(ItemDone::default()), read)?;
            done.runs = done.runs.saturating_add(of_item.done.runs);
            done.judged = done.judged.saturating_add(of_item.done.judged);
            prompts = prompts.saturating_add(of_item.prompts);
            warnings.extend(of_item.warnings);
            let item = u32::try_from(index).ok();
            calls.extend(of_item.calls.into_iter().map(|call| ToolCall { item, ..call }));
            again.extend(of_item.again.into_iter().map(|again| Again { item, ..again }));
            // Items that end before the same choice have the same routes.
            for route in of_item.dry.into_iter().flatten() {
                let dry = dry.get_or_insert_default();
                if !dry.contains(&route) {
                    dry.push(route);
                }
            }
            match branch.failure() {
                Some(failure) => {
                    done.runs = done.runs.saturating_add(failure.attempts());
                    items.push(Value::Null);
                    failed.push(json!({ "index": index, "error": failure.error().to_string() }));
                }
                None => items.push(value.and_then(|value| value.get("data")).cloned().unwrap_or_default()),
            }
        }
        drop(branches);
        let mut visit = self.open(plan, call)?;
        visit.carried.degraded |= !failed.is_empty();
        let data = json!({ "items": items, "failed": failed });
        let Some(_) = &visit.node().for_each else {
            return Err(StepError::permanent("the node has no items"));
        };
        // Each item was checked on its own.
        let worked = Worked {
            is_checked: true,
            runs: done.runs,
            judged: done.judged,
            prompts,
            warnings,
            calls,
            again,
            dry,
            ..Worked::of(data)
        };
        visit.finish(worked).await
    }
}
