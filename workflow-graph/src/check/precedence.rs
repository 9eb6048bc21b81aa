//! `never-read-before`, `maybe-missing`: a node that an expression reads has run before, surely or perhaps.

use super::meaning::guard;
use super::reads::{Place, Reads};
use super::scope::{Meaning, Names};
use super::uses::{Phase, Use};
use super::ways::begun;
use crate::document::model::{Node, OnFailure, Otherwise};
use crate::expression::Read;
use crate::problem::Code;

impl Reads<'_, '_> {
    /// Whether what is read has run before.
    pub(super) fn order(
        &mut self,
        at: Option<(usize, &Node)>,
        used: Use<'_>,
        names: Names<'_>,
        read: &Read,
        place: Place<'_>,
    ) {
        let (meaning, _) = names.resolve(&read.root, &read.segments);
        match (meaning, at) {
            // How often a node ran is known also of one that did not.
            (Meaning::About(_, "visits"), _) => {}
            (Meaning::Data(first) | Meaning::About(first, _), _) => {
                let is_data = matches!(meaning, Meaning::Data(_));
                self.result(first, is_data, at, used.phase, read, place);
            }
            (Meaning::Error, Some((index, node))) => self.error(index, node, used, read, place),
            (Meaning::Joined, Some((index, node)))
                if self.history.as_ref().is_some_and(|it| !it.is_join(index) && !it.may_be_join(index)) =>
            {
                let message = format!("`{}` reads `joined`, and no branches meet there", node.id.value);
                let at = self.at(place);
                self.problems.add(Code::NeverReadBefore, at, message, "read it where they meet");
            }
            _ => {}
        }
    }

    pub(super) fn result(
        &mut self,
        first: usize,
        is_data: bool,
        at: Option<(usize, &Node)>,
        phase: Phase,
        read: &Read,
        place: Place<'_>,
    ) {
        let Some(history) = &self.history else { return };
        // A node that no route reaches is a problem of its own.
        if !history.may_be_reached(first) || at.is_some_and(|(index, _)| !history.may_be_reached(index)) {
            return;
        }
        let id = &self.graph.nodes[first].id.value;
        let Some((index, node)) = at else {
            let is_known = history.is_reached(first) && !history.is_open(first);
            if is_known && !history.is_sure_at_end(first, is_data) && !read.is_guarded {
                let message = format!("`{id}` need not have succeeded when the output is made");
                let at = self.at(place);
                self.problems.add(Code::MaybeMissing, at, message, guard(read));
            }
            return;
        };
        let is_own = first == index && phase != Phase::Before;
        if is_own && (phase == Phase::After || !is_data) {
            return;
        }
        if !is_own && history.is_doubtful(first, index) {
            return;
        }
        let reader = &node.id.value;
        if !is_own && history.is_open(first) && !history.is_possible(first, index) {
            return;
        }
        if !is_own && !history.is_possible(first, index) {
            let (message, remedy) = if first == index {
                let message = format!("`{reader}` reads its own result, and has none before it runs");
                (message, "read it in `ensure`, `set` or `next`".to_owned())
            } else if let Some((opener, join)) = history.beside(first, index) {
                let opener = &self.graph.nodes[opener].id.value;
                let message = format!(
                    "`{reader}` reads `{id}`, which runs in another branch of `{opener}`, and branches do not see each other"
                );
                let join = join.map(|join| &self.graph.nodes[join].id.value);
                let remedy = join
                    .map_or("let the branches meet, and read it behind that".to_owned(), |join| {
                        format!("read it at `{join}`, where the branches meet")
                    });
                (message, remedy)
            } else {
                let message = format!("`{reader}` reads `{id}`, which cannot have run before");
                (message, format!("lead `{id}` to `{reader}`, or read another node"))
            };
            let at = self.at(place);
            self.problems.add(Code::NeverReadBefore, at, message, remedy);
            return;
        }
        let point = match phase {
            Phase::Before | Phase::Failed => begun(index),
            Phase::After | Phase::Leaving => history.leaving(index),
        };
        let is_known = history.is_reached(first) && history.is_reached(index);
        if is_known && !read.is_guarded && !history.is_sure(first, is_data, point) {
            let verb = if is_data { "succeeded" } else { "run" };
            let message = format!("`{id}` need not have {verb} when `{reader}` reads it");
            let at = self.at(place);
            self.problems.add(Code::MaybeMissing, at, message, guard(read));
        }
    }

    fn error(&mut self, index: usize, node: &Node, used: Use<'_>, read: &Read, place: Place<'_>) {
        let goes_on = matches!(node.on_failure, Some(OnFailure::Continue))
            || node.requires.as_ref().is_some_and(|requires| requires.otherwise == Otherwise::Skip);
        let Some(history) = self.history.as_ref().filter(|_| used.phase != Phase::Failed) else { return };
        let (mut caught, mut others) = (used.phase == Phase::Leaving && goes_on, self.start == Some(index));
        caught |= history.is_caught_into(index);
        others |= history.is_led_into(index);
        let id = &node.id.value;
        if !caught && self.may_lead_to[index] {
            return;
        }
        if !caught {
            let message = format!("`{id}` reads `error`, and no failure leads there");
            let at = self.at(place);
            self.problems.add(Code::NeverReadBefore, at, message, "read it where `on_failure` leads");
        } else if others && !read.is_guarded {
            let message = format!("`error` is missing where no failure led to `{id}`");
            let at = self.at(place);
            self.problems.add(Code::MaybeMissing, at, message, guard(read));
        }
    }
}
