//! Problems of branches, in the words of their nodes. Which route is one is found in the walk.

use super::{BranchOf, Walk};
use crate::check::flow::{Edge, EdgeKind};
use crate::document::model::Next;
use crate::problem::Code;

impl Walk<'_> {
    fn id(&self, node: usize) -> &str {
        &self.graph.nodes[node].id.value
    }

    /// The id of the node that a branch begins with.
    fn begins(&self, branch: BranchOf) -> &str {
        match &self.graph.nodes[branch.node].next {
            Next::Parallel(parallel) => &parallel.branches[branch.number].to.value,
            _ => "",
        }
    }

    pub(super) fn no_common_join(&mut self, edge: Edge, first: BranchOf, second: BranchOf) {
        if std::mem::replace(&mut self.is_apart[first.node], true) {
            return;
        }
        // That both begin with one node is a problem of their list.
        if self.begins(first) == self.begins(second) {
            return;
        }
        let (node, to) = (self.id(first.node), self.id(edge.to));
        let (one, other) = (self.begins(first), self.begins(second));
        let apart = self.apart(first.node, edge.to);
        let message = match apart {
            // The branch that is different is the one to look at.
            Some(apart) => format!(
                "the branches of `{node}` that begin with `{one}` and `{other}` lead to `{to}`, and the one that begins with \
                 `{apart}` does not, so they do not meet"
            ),
            None => format!(
                "the branches of `{node}` that begin with `{one}` and `{other}` both lead to `{to}`, which would run in each"
            ),
        };
        let remedy = match (self.graph.hive().is_some(), apart) {
            (true, _) => "let all branches meet in one node, or end them before".to_owned(),
            (false, Some(apart)) => {
                format!(
                    "lead `{apart}` there, too, or let the others meet there: add `join: {to}` beside `parallel`"
                )
            }
            (false, None) => format!("let them meet there: add `join: {to}` beside `parallel`"),
        };
        let at = match &self.graph.nodes[first.node].next {
            Next::Parallel(parallel) => parallel.at,
            _ => edge.at,
        };
        self.problems.add(Code::NoCommonJoin, at, message, remedy);
    }

    /// The begin of the only branch of a parallel node that does not lead to `to`.
    fn apart(&self, node: usize, to: usize) -> Option<&str> {
        let Next::Parallel(parallel) = &self.graph.nodes[node].next else { return None };
        let begins = parallel.branches.iter().map(|branch| &branch.to.value);
        let mut apart = begins.filter(|begin| {
            self.flow.find(self.graph, begin).is_some_and(|begin| !self.leads_without(Some(node), begin, to))
        });
        let first = apart.next()?;
        apart.next().is_none().then_some(&**first)
    }

    /// `edge` leads into the branch, to a node to which `within` leads from inside of it.
    pub(super) fn entered(&mut self, edge: Edge, inside: BranchOf, within: Option<Edge>) {
        if std::mem::replace(&mut self.is_told[edge.to], true) {
            return;
        }
        if let (Some(within), Some(join)) = (within, self.regions.joins[inside.node])
            && within.kind == EdgeKind::Route
            && !self.leads(edge.to, join)
            && !self.leads(join, edge.from)
        {
            return self.leads_out(within, edge, inside, join);
        }
        if let (Some(join), Some(past)) = (self.regions.joins[inside.node], self.entered_by[edge.to])
            && self.leads(join, edge.from)
            && self.regions.scope_of[past.from] != self.regions.scope_of[edge.from]
        {
            return self.past_the_join(past, inside, join);
        }
        let (from, to, node) = (self.id(edge.from), self.id(edge.to), self.id(inside.node));
        let message = format!(
            "`{from}` leads to `{to}` from outside, into the branch of `{node}` that begins with `{}`",
            self.begins(inside)
        );
        let scope = self.regions.scope_of[edge.from].map(|scope| &self.regions.scopes[scope]);
        let is_beside = scope.and_then(|scope| scope.branch).is_some_and(|of| of.node == inside.node);
        let remedy = match self.regions.joins[inside.node] {
            Some(join) if is_beside => {
                let join = self.id(join);
                format!(
                    "lead it to `{join}`, where the branches meet, or let them meet at `{to}`: `join: {to}`"
                )
            }
            Some(join) => format!("lead it to `{node}`, or to `{}`, where the branches meet", self.id(join)),
            None if self.graph.hive().is_some() => format!("lead it to `{node}`"),
            None => format!("lead it to `{node}`, or let the branches meet before `{to}` by `join:`"),
        };
        self.report(edge, message, remedy);
    }

    /// Whether a walk can come from `from` to `to`.
    fn leads(&self, from: usize, to: usize) -> bool {
        self.leads_without(None, from, to)
    }

    /// The same on ways that do not pass a node.
    fn leads_without(&self, without: Option<usize>, from: usize, to: usize) -> bool {
        let (mut seen, mut open) = (vec![false; self.flow.nodes()], vec![from]);
        if let Some(node) = without {
            seen[node] = true;
        }
        while let Some(node) = open.pop() {
            if node == to {
                return true;
            }
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(self.flow.from(node).iter().map(|edge| edge.to));
            }
        }
        false
    }

    /// A route of a branch leads to a node that runs outside of it, and from which no way leads to the join.
    fn leads_out(&mut self, edge: Edge, outside: Edge, inside: BranchOf, join: usize) {
        let (from, to, outside) = (self.id(edge.from), self.id(edge.to), self.id(outside.from));
        let (node, join) = (self.id(inside.node), self.id(join));
        let message = format!(
            "`{from}`, in the branch of `{node}` that begins with `{}`, leads to `{to}`, to which `{outside}` leads from \
             outside",
            self.begins(inside)
        );
        let remedy = format!("lead it to `{join}`, where the branches meet, or end the branch there");
        self.report(edge, message, remedy);
    }

    /// `entered-from-outside`
    fn report(&mut self, edge: Edge, message: String, remedy: impl Into<String>) {
        self.wrong.insert((edge.from, edge.to));
        self.problems.add(Code::EnteredFromOutside, edge.at, message, remedy);
    }

    /// A route of a branch leads to a node behind the join.
    fn past_the_join(&mut self, edge: Edge, inside: BranchOf, join: usize) {
        let (from, to) = (self.id(edge.from), self.id(edge.to));
        let (node, join) = (self.id(inside.node), self.id(join));
        let message = format!(
            "`{from}`, in the branch of `{node}` that begins with `{}`, leads to `{to}`, which lies behind `{join}`, where \
             the branches meet",
            self.begins(inside)
        );
        let remedy = format!("lead it to `{join}`, end the branch there, or name another `join`");
        self.report(edge, message, remedy);
    }

    pub(super) fn leads_back(&mut self, edge: Edge, inside: BranchOf) {
        if std::mem::replace(&mut self.is_told[edge.to], true) {
            return;
        }
        let (from, to, node) = (self.id(edge.from), self.id(edge.to), self.id(inside.node));
        let message = format!(
            "`{from}`, in the branch of `{node}` that begins with `{}`, leads back to `{to}` outside of it",
            self.begins(inside)
        );
        let remedy = "let the cycle begin where the branches meet, or stay inside of the branch";
        self.report(edge, message, remedy);
    }
}
