//! Checks the reads of expressions (G7), and reports `type-mismatch`. `meaning` checks names, and
//! `precedence` the order of nodes.

use super::Flow;
use super::history::History;
use super::region::Regions;
use super::scope::{Facts, Names, Outputs};
use super::uses::{self, Phase, Use};
use crate::document::Source;
use crate::document::model::{Graph, Node, Rule, Segment as Step};
use crate::document::template::Expression;
use crate::expression::{Read, Segment};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check(
    graph: &Graph,
    flow: &Flow,
    regions: Option<&Regions>,
    source: Source<'_>,
    problems: &mut Problems,
) {
    let history = match (regions, flow.start()) {
        (Some(regions), Some(start)) => Some(History::of(graph, flow, regions, start)),
        _ => None,
    };
    let facts = Facts::of(graph);
    let may_lead_to = (0..flow.nodes()).map(|node| flow.unread().may_lead_to(node)).collect();
    all(Reads { graph, facts: &facts, history, start: flow.start(), may_lead_to, source, problems });
}

/// The same where it is known what functions return, and the order of nodes is not asked for.
pub(super) fn described(graph: &Graph, outputs: &Outputs<'_>, source: Source<'_>, problems: &mut Problems) {
    let facts = Facts::of(graph).with_outputs(outputs);
    let (start, may_lead_to) = (graph.start(), Vec::new());
    all(Reads { graph, facts: &facts, history: None, start, may_lead_to, source, problems });
}

fn all(mut reads: Reads<'_, '_>) {
    let graph = reads.graph;
    for (index, node) in graph.nodes.iter().enumerate() {
        for used in uses::of(node) {
            reads.expression(Some((index, node)), used);
        }
        reads.required_paths(node);
        reads.of_agent(index, node);
    }
    let mut found = Vec::new();
    graph.output.iter().for_each(|output| output.expressions(&mut found));
    for expression in found {
        reads.expression(None, Use::of(expression, Phase::After, false));
    }
}

/// Where a problem of a read stands. Places within texts take a search, so they are found only for problems.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'e> {
    At(At),
    Within(&'e Expression, usize),
}

pub(super) struct Reads<'a, 'p> {
    pub(super) graph: &'a Graph,
    pub(super) facts: &'a Facts<'a>,
    /// Absent where the order of nodes is not known, because routes are wrong.
    pub(super) history: Option<History<'a>>,
    pub(super) start: Option<usize>,
    /// By node, whether a route that could not be read may lead there.
    pub(super) may_lead_to: Vec<bool>,
    source: Source<'a>,
    pub(super) problems: &'p mut Problems,
}

impl<'a> Reads<'a, '_> {
    fn expression(&mut self, at: Option<(usize, &Node)>, used: Use<'_>) {
        if used.expression.is_unread {
            return;
        }
        let names = Names { of_item: used.of_item, ..self.names_at(at.map(|(_, node)| node)) };
        for read in used.expression.parsed.reads() {
            let place = Place::Within(used.expression, read.offset);
            if self.is_named(names, &read, place) {
                self.order(at, used, names, &read, place);
            }
        }
        self.types(names, used);
        self.never_equal(names, used);
    }

    fn names_at<'n>(&self, node: Option<&'n Node>) -> Names<'n>
    where
        'a: 'n,
    {
        Names { graph: self.graph, facts: self.facts, node, of_item: false }
    }

    pub(super) fn at(&self, place: Place<'_>) -> At {
        match place {
            Place::At(at) => at,
            Place::Within(expression, offset) => expression.locate(self.source, offset, self.problems),
        }
    }

    fn types(&mut self, names: Names<'_>, used: Use<'_>) {
        let Expression { parsed, .. } = used.expression;
        let found =
            if used.is_condition { parsed.check_condition_types(&names) } else { parsed.check_types(&names) };
        for problem in found {
            let place = self.at(Place::Within(used.expression, problem.offset));
            self.problems.add(
                Code::TypeMismatch,
                place,
                problem.message,
                "convert one of them, or correct the schema",
            );
        }
    }

    /// `reads` of an agent: a result that cannot be there is none to read. One that may be missing is left out.
    fn of_agent(&mut self, index: usize, node: &Node) {
        let crate::document::model::Reads::Only(names) = &node.reads else { return };
        for name in names {
            let Some(first) = self.graph.find(&name.value) else { continue };
            let root = name.value.to_string();
            let read = Read { root, segments: Vec::new(), offset: 0, is_guarded: true };
            self.result(first, true, Some((index, node)), Phase::Before, &read, Place::At(name.at));
        }
    }

    /// Paths of `requires` begin like expressions. Nothing that they name has to be there.
    fn required_paths(&mut self, node: &Node) {
        let checks = node.requires.iter().flat_map(|requires| &requires.all);
        let paths = checks.flat_map(|check| match &check.rule {
            Rule::Required(paths) => paths.as_slice(),
            Rule::Path { path, .. } => std::slice::from_ref(path),
            Rule::Expression(_) | Rule::Called { .. } | Rule::Judge { .. } => &[],
        });
        for path in paths {
            let mut steps = path.segments.iter();
            let Some(Step::Key(root)) = steps.next() else { continue };
            let segments = steps
                .map_while(|step| match step {
                    Step::Key(name) => Some(Segment::Field(name.to_string())),
                    Step::Index(index) => i64::try_from(*index).ok().map(Segment::Index),
                    Step::Every => None,
                })
                .collect();
            let read = Read { root: root.to_string(), segments, offset: 0, is_guarded: true };
            self.is_named(self.names_at(Some(node)), &read, Place::At(path.at));
        }
    }
}
