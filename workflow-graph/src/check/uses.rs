//! Every expression of a node, and when it is evaluated. It checks none.

use crate::document::model::{Check, Guidance, Next, Node, OnFailure, Route, Rule, Work};
use crate::document::template::{Expression, Template};

/// When an expression of a node is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before the node's work: its own result is one of a former visit.
    Before,
    /// After success.
    After,
    /// When the node is left: after success, or where `continue` or `skip` goes on without it.
    Leaving,
    /// After a failure, which it sees as `error`.
    Failed,
}

/// An expression of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) expression: &'a Expression,
    pub(super) phase: Phase,
    /// Whether its value has to be true or false.
    pub(super) is_condition: bool,
    /// Whether it sees the result of one item of the node as that of the node.
    pub(super) of_item: bool,
}

impl<'a> Use<'a> {
    pub(super) fn of(expression: &'a Expression, phase: Phase, is_condition: bool) -> Self {
        Self { expression, phase, is_condition, of_item: false }
    }
}

pub(super) fn of(node: &Node) -> Vec<Use<'_>> {
    let mut uses = Uses { found: Vec::new() };
    if let Some(requires) = &node.requires {
        uses.checks(&requires.all, Phase::Before);
    }
    if let Some(each) = &node.for_each {
        uses.found.push(Use::of(&each.list, Phase::Before, false));
    }
    uses.templates(&node.with, Phase::Before);
    uses.work(&node.work);
    if let Some(ensure) = &node.ensure {
        let first = uses.found.len();
        uses.checks(&ensure.all, Phase::After);
        if let Some(Guidance::Text(text)) = &ensure.guidance {
            uses.templates([text], Phase::After);
        }
        uses.found[first..].iter_mut().for_each(|used| used.of_item = node.for_each.is_some());
    }
    uses.templates(node.set.iter().map(|(_, value)| value), Phase::After);
    match &node.next {
        Next::End | Next::To(_) | Next::Sweny(_) => {}
        Next::Routes(routes) => uses.routes(routes, Phase::Leaving),
        Next::Parallel(parallel) => {
            let conditions = parallel.branches.iter().filter_map(|branch| branch.when.as_ref());
            uses.conditions(conditions, Phase::Leaving);
        }
        Next::Decide(decide) => uses.templates([&decide.question], Phase::Leaving),
    }
    if let Some(OnFailure::Routes(routes)) = &node.on_failure {
        uses.routes(routes, Phase::Failed);
    }
    uses.found
}

struct Uses<'a> {
    found: Vec<Use<'a>>,
}

impl<'a> Uses<'a> {
    fn templates(&mut self, templates: impl IntoIterator<Item = &'a Template>, phase: Phase) {
        let mut found = Vec::new();
        templates.into_iter().for_each(|template| template.expressions(&mut found));
        self.found.extend(found.into_iter().map(|expression| Use::of(expression, phase, false)));
    }

    fn conditions(&mut self, conditions: impl Iterator<Item = &'a Expression>, phase: Phase) {
        self.found.extend(conditions.map(|expression| Use::of(expression, phase, true)));
    }

    fn routes(&mut self, routes: &'a [Route], phase: Phase) {
        self.conditions(routes.iter().filter_map(|route| route.when.as_ref()), phase);
    }

    fn checks(&mut self, checks: &'a [Check], phase: Phase) {
        for check in checks {
            match &check.rule {
                Rule::Expression(expression) => self.conditions([expression].into_iter(), phase),
                Rule::Judge { rubric, .. } => self.templates([rubric], phase),
                Rule::Required(_) | Rule::Path { .. } | Rule::Called { .. } => {}
            }
        }
    }

    fn work(&mut self, work: &'a Work) {
        let phase = Phase::Before;
        match work {
            Work::Function(_) | Work::Tool(_) | Work::Graph(_) | Work::Workflow { .. } => {}
            Work::Agent(agent) => {
                self.templates([&agent.instruction], phase);
                self.templates(agent.rules.iter().chain(&agent.background), phase);
            }
            Work::Command(command) => {
                self.templates(command.run.iter().chain(&command.stdin), phase);
                self.templates(command.env.iter().map(|(_, value)| value), phase);
            }
            Work::Human(human) => self.templates([&human.ask], phase),
            Work::Value(value) => self.templates([value], phase),
        }
    }
}
