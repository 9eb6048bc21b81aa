//! The begin of a visit: its sight, its bounds, and the checks before its work. Then the work, and the end.

use std::sync::Arc;

use serde_json::Value;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::table::StepIndex;
use workflow_core::{AnyEvent, InputValue, JsonOutput, StepError};

use super::hive::Memory;
use super::leave::{End, Leave, Way};
use super::work::Worked;
use super::{Walk, read, unread};
use crate::context::NodeContext;
use crate::document::model::sweny::SwenyGraph;
use crate::document::model::{Dialect, Ensure, Extras, Node, Otherwise, Work};
use crate::node::judge::Judges;
use crate::node::{checks, render};
use crate::retried::Again;
use crate::sight::{Held, Sight};
use crate::state::{
    About, Came, Carried, Count, Done, GraphStatus, Joined, NodeResult, Verdict, VisitStatus, names, part_of,
};
use crate::table::Plan;
use crate::tool_call::{self, ToolCall};

/// A visit of a node, in one of its steps.
pub(super) struct Visit<'w> {
    pub(super) walk: &'w Walk,
    pub(super) plan: &'w Plan,
    pub(super) call: StepCall,
    pub(super) sight: Sight,
    /// With this visit counted.
    pub(super) carried: Carried,
    /// The work of the node before this visit.
    pub(super) done: Done,
    pub(super) is_dry: bool,
    /// A result of this visit is in the log already.
    pub(super) is_left: bool,
    /// The visit has failed before, and went on.
    pub(super) has_failed: bool,
    /// The branches that it opened, then.
    pub(super) opened: Vec<Arc<str>>,
    pub(super) warnings: Vec<Arc<str>>,
    /// Of Hive documents.
    pub(super) memory: Option<Memory>,
}

/// The checks of a result that all hold.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) verdicts: Vec<Verdict>,
    /// Judges that were asked again.
    pub(super) again: Vec<Again>,
    /// Questions to judges.
    pub(super) judged: u32,
}

impl Walk {
    /// The visit of which `call` is a step.
    pub(super) fn open<'w>(&'w self, plan: &'w Plan, call: StepCall) -> Result<Box<Visit<'w>>, StepError> {
        let inputs = &plan.inputs;
        let event = |at: Option<usize>| match at.map(|at| call.input(at)) {
            Some(InputValue::Event(event)) => Some(AnyEvent::clone(event)),
            _ => None,
        };
        let (mut carried, mut error, mut joined) = (Carried::default(), None, None);
        if let Some(token) = event(Some(inputs.token)).as_ref() {
            let value = token.as_json().unwrap_or(&Value::Null);
            if token.name().ends_with(":joined") {
                let came: Joined = read(value)?;
                (carried, error) = (came.carried.clone(), came.error.clone());
                joined = Some(Arc::new(came));
            } else if token.name() != names::INPUT {
                let came: Came = read(value)?;
                (carried, error) = (came.carried, came.error);
            }
        }
        let start = event(inputs.start);
        let begin = start.as_ref().and_then(AnyEvent::as_json).unwrap_or(&Value::Null);
        let is_dry = begin.get("dry_run").and_then(Value::as_bool).unwrap_or_default();
        let played = begin.get("played").and_then(crate::state::count_of);
        let given = begin.get("input").unwrap_or(&Value::Null);
        let input = match &start {
            Some(start) if self.takes_as_given(given) => Held::Field(start.clone(), "input"),
            _ => Held::Made(Arc::new(self.input(given))),
        };
        let is_dry = is_dry || matches!(self.graph.dialect, Dialect::Sweny(_)) && SwenyGraph::is_dry(&input);
        let own = event(inputs.own);
        let about: About =
            own.as_ref().map_or(Ok(About::default()), |own| part_of(own).map_err(|error| unread(&error)))?;
        // A result of this visit would have counted it.
        let is_left = own.is_some() && about.walk.steps > carried.steps;
        let counts = super::join::counts(plan, &call)?;
        let own_count = counts.iter().find(|(node, _)| *node == plan.node).map(|(_, count)| *count);
        let before = Count { visit: about.visit, done: about.done }.or(own_count.unwrap_or_default());
        let visit = if is_left { about.visit } else { before.visit + 1 };
        let all = inputs.all.map(|all| call.input(all));
        let events = match &all {
            Some(InputValue::Events(events)) => events.clone(),
            _ => Vec::new(),
        };
        let memory = self.memory(&input, &events, carried.agent.as_deref());
        let mut results: Vec<_> = if inputs.all.is_some() {
            self.latest(&events)
        } else {
            let read = inputs.results.iter();
            read.filter_map(|(node, at)| Some((*node, Held::Event(event(Some(*at))?)))).collect()
        };
        if inputs.all.is_none() {
            results.extend(own.map(|own| (plan.node, Held::Event(own))));
        }
        let has_result = |place: &usize| results.iter().any(|(known, _)| known == place);
        let unseen = inputs.named.iter().copied().filter(|place| !has_result(place)).collect();
        let vars = inputs.vars.iter().filter_map(|(var, at)| Some((*var, event(Some(*at))?))).collect();
        carried.steps = carried.steps.saturating_add(1);
        let sight = Sight {
            graph: Arc::clone(&self.graph),
            input,
            results,
            vars,
            unseen,
            counts,
            node: plan.node,
            visit,
            own: None,
            set: Vec::new(),
            error,
            joined,
            item: None,
            built: crate::sight::Built::default(),
        };
        let mut done = before.done;
        if visit == 1 {
            done.runs = done.runs.max(played.unwrap_or_default());
        }
        let has_failed = is_left && about.status == VisitStatus::Failed && !about.kept;
        let opened = if is_left { about.opened } else { Vec::new() };
        Ok(Box::new(Visit {
            walk: self,
            plan,
            call,
            sight,
            carried,
            done,
            is_dry,
            is_left,
            has_failed,
            opened,
            warnings: Vec::new(),
            memory,
        }))
    }

    /// The last result of each node, in the order of the nodes.
    fn latest(&self, events: &[&AnyEvent]) -> Vec<(usize, Held)> {
        let mut latest = std::collections::BTreeMap::new();
        for event in events {
            if let Some(node) = self.graph.find(event.name()) {
                latest.insert(node, *event);
            }
        }
        latest.into_iter().map(|(node, event)| (node, Held::Event(event.clone()))).collect()
    }

    pub(super) async fn visit(
        self: Arc<Self>,
        step: StepIndex,
        call: StepCall,
    ) -> Result<Emitted, StepError> {
        let mut visit = self.open(self.plan(step)?, call)?;
        let node = visit.node();
        if visit.carried.steps > self.graph.limits.steps {
            // The visit does not happen, and does not count.
            visit.carried.steps -= 1;
            visit.stop(GraphStatus::StepLimit, Value::Null, Vec::new())?;
            return visit.call.commit(());
        }
        if let Extras::Sweny(extras) = &node.extras {
            return Box::pin(visit.sweny(extras)).await;
        }
        if node.max_visits.is_some_and(|most| visit.sight.visit > most) {
            return visit.keep();
        }
        if let Some(requires) = &node.requires
            && let Err(unmet) = checks::requires(requires, &visit.sight)
        {
            let message = format!("`{}` requires what does not hold: {}", node.id.value, unmet.join("; "));
            if requires.otherwise == Otherwise::Fail {
                return Err(StepError::permanent(message));
            }
            visit.warnings.push(message.into());
            let result = NodeResult { status: VisitStatus::Skipped, ..visit.result() };
            return visit.end(result, Leave::Next);
        }
        if node.for_each.is_some() {
            return visit.open_items();
        }
        if let Work::Human(human) = &node.work {
            return visit.ask(human);
        }
        let worked = visit.work()?.await?;
        visit.finish(worked).await
    }
}

impl<'w> Visit<'w> {
    pub(super) fn node(&self) -> &'w Node {
        &self.walk.graph.nodes[self.plan.node]
    }

    /// The latest result of a node, without its data.
    pub(super) fn about(&self, node: usize) -> Result<About, StepError> {
        self.sight
            .result(node)
            .map_or(Ok(About::default()), |result| result.part().map_err(|error| unread(&error)))
    }

    /// A result of this visit, without data.
    pub(super) fn result(&self) -> NodeResult {
        NodeResult {
            visit: self.sight.visit,
            done: self.done,
            carried: self.carried.clone(),
            ..NodeResult::default()
        }
    }

    pub(super) fn render(&self, template: &crate::document::template::Template) -> Result<Value, StepError> {
        render::render(template, &self.sight).map_err(|error| StepError::permanent(error.to_string()))
    }

    /// A visit beyond `max_visits`: the result before it stays.
    fn keep(self: Box<Self>) -> Result<Emitted, StepError> {
        let result = self.sight.result(self.plan.node).and_then(|before| before.part().ok());
        let mut result =
            result.unwrap_or_else(|| NodeResult { status: VisitStatus::Skipped, ..self.result() });
        result.visit = self.sight.visit;
        result.kept = true;
        result.opened = Vec::new();
        result.retries = Vec::new();
        // Memory stays, and nothing is written again.
        result.writes.clear();
        self.end(result, Leave::Next)
    }

    /// The end of a visit whose work is done: checks, variables, and the way on.
    pub(super) async fn finish(mut self: Box<Self>, mut worked: Worked) -> Result<Emitted, StepError> {
        let node = self.node();
        if let Some(hive) = node.hive() {
            return Box::pin(self.finish_hive(hive, worked)).await;
        }
        let (is_skipped, is_checked) = (worked.status == VisitStatus::Skipped, worked.is_checked);
        let dry = worked.dry.take();
        let (mut result, saved) = self.worked(worked);
        if let Some(candidates) = dry {
            let way = self.dry_end(candidates);
            return self.leave_by(Arc::unwrap_or_clone(result), way);
        }
        if !is_skipped && !is_checked {
            let checked = self.check(&result).await?;
            let result = Arc::make_mut(&mut result);
            (result.verdicts, result.retries) = (checked.verdicts, checked.again);
            result.done.judged = result.done.judged.saturating_add(checked.judged);
        }
        self.sight.leave(Arc::clone(&result));
        for (name, value) in node.set.iter().filter(|_| !is_skipped) {
            let value = self.render(value)?;
            if let Some(place) = self.walk.graph.vars.iter().position(|var| var.name.value == name.value) {
                self.sight.set(place, value);
            }
        }
        // A route without a value fails the visit, and the work that it saved is there for the next attempt.
        let way = self.way(Leave::Next, result.done.decided)?;
        forget(saved).await?;
        // Nothing reads it here any more, so that it moves into the log.
        self.sight.own = None;
        self.leave_by(Arc::unwrap_or_clone(result), way)
    }

    /// The result of the work, and what it may have saved.
    fn worked(&mut self, worked: Worked) -> (Arc<NodeResult>, Option<NodeContext>) {
        let mut result = NodeResult { status: worked.status, data: worked.data, ..self.result() };
        result.done.runs = result.done.runs.saturating_add(worked.runs);
        result.done.judged = result.done.judged.saturating_add(worked.judged);
        result.conversation = worked.conversation;
        result.calls = self.bounded(worked.calls);
        result.retries = worked.again;
        result.verdicts = worked.verdicts;
        self.carried.prompts = self.carried.prompts.saturating_add(worked.prompts);
        self.warnings.extend(worked.warnings);
        (Arc::new(result), worked.saved)
    }

    /// The calls of the work as its result has them.
    pub(super) fn bounded(&mut self, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let (calls, warning) = tool_call::bounded(calls);
        self.warnings.extend(warning);
        calls
    }

    /// The schema and the checks of nodes that have one attempt for them. The result is shared with nothing afterwards.
    pub(super) async fn check(&mut self, result: &Arc<NodeResult>) -> Result<Checked, StepError> {
        let node = self.node();
        if let Some(schema) = &node.output {
            checks::output(schema, &result.data).map_err(StepError::permanent)?;
        }
        match &node.ensure {
            Some(ensure) => Box::pin(self.ensure(ensure, result)).await,
            None => Ok(Checked::default()),
        }
    }

    async fn ensure(&mut self, ensure: &Ensure, result: &Arc<NodeResult>) -> Result<Checked, StepError> {
        let sight = self.sight.with_own(Arc::clone(result));
        let executor = self.walk.executors.agents().map(|agents| &**agents);
        let model = self.walk.graph.defaults.judge_model.as_deref();
        let context = if checks::has_judge(ensure) { self.sight.everything() } else { Value::Null };
        let mut judges = Judges::new(&self.node().id.value, executor, model, &context, result.done.judged);
        if checks::has_judge(ensure) {
            judges.show_by(self.context()?);
        }
        let verdicts = checks::ensure(ensure, &result.data, &sight, &[], &mut judges).await;
        match checks::failure_text(&verdicts) {
            Some(failure) => Err(StepError::permanent(failure)),
            None => Ok(Checked { verdicts, again: judges.take_again(), judged: judges.asked() }),
        }
    }

    /// Leaves the result, new values of variables, and the way on, in one batch.
    pub(super) fn end(mut self: Box<Self>, result: NodeResult, leave: Leave) -> Result<Emitted, StepError> {
        let result = Arc::new(result);
        self.sight.leave(Arc::clone(&result));
        self.leave(result, leave)
    }

    /// The same where the sight has the result already.
    fn leave(mut self: Box<Self>, result: Arc<NodeResult>, leave: Leave) -> Result<Emitted, StepError> {
        let way = self.way(leave, result.done.decided)?;
        // Nothing reads it here any more, so that it moves into the log.
        self.sight.own = None;
        self.leave_by(Arc::unwrap_or_clone(result), way)
    }

    /// The same with the way on.
    pub(super) fn leave_by(
        mut self: Box<Self>,
        mut result: NodeResult,
        way: Way,
    ) -> Result<Emitted, StepError> {
        match &way {
            Way::Choose(_) => result.done.decided += 1,
            Way::Open(opened, _) => result.opened = opened.iter().map(|branch| branch.to.clone()).collect(),
            _ => {}
        }
        self.leave_result(result)?;
        let mut set = std::mem::take(&mut self.sight.set);
        set.dedup_by_key(|(place, _)| *place);
        for (place, value) in set {
            self.call.emit(&names::variable(&self.walk.graph.vars[place].name.value), value)?;
        }
        self.take(way)?;
        self.call.commit(())
    }

    /// Leaves the result alone.
    pub(super) fn leave_result(&mut self, mut result: NodeResult) -> Result<(), StepError> {
        result.carried = self.carried.clone();
        result.warnings = std::mem::take(&mut self.warnings);
        // JSON does not tell a conversation that is null from none.
        result.conversation = result.conversation.filter(|conversation| !conversation.is_null());
        Ok(self.call.emit(&self.node().id.value, JsonOutput::typed(result))?)
    }

    /// Ends the run, or the branch.
    pub(super) fn stop(
        &mut self,
        status: GraphStatus,
        output: Value,
        candidates: Vec<Arc<str>>,
    ) -> Result<(), StepError> {
        let end = End { status, at: self.node().id.value.clone(), output, candidates, warnings: Vec::new() };
        super::leave::stop(&mut self.call, end, &self.carried)
    }
}

/// Removes what the work of a visit has saved. It comes last, so that an attempt that fails in its checks finds it again.
pub(super) async fn forget(saved: Option<NodeContext>) -> Result<(), StepError> {
    match saved.filter(NodeContext::may_have_saved) {
        Some(context) => Ok(Box::pin(context.forget()).await?),
        None => Ok(()),
    }
}
