//! Additions of Hive documents to tables: the events that write memory, and pauses behind nodes.

use std::sync::Arc;

use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef};

use super::{Compiler, Part, branches};

impl Compiler<'_> {
    /// Whether the run waits for people once the node has run.
    pub(super) fn pauses(&self, node: usize) -> bool {
        self.graph.nodes[node].hive().is_some_and(|hive| hive.is_pause)
    }

    pub(super) fn pause_events(&mut self, place: usize) {
        if !self.pauses(place) {
            return;
        }
        let (ask, answer) = (self.part(place, "ask"), self.part(place, "answer"));
        self.add(EventDef::new(ask.clone(), Roles::NONE.request()));
        self.add(EventDef::reply_to(answer, ask).schema(serde_json::json!({ "type": "object" })));
    }

    /// The step that goes on after the reply to a pause.
    pub(super) fn pause_reply(&mut self, place: usize) {
        if !self.pauses(place) {
            return;
        }
        let reply = self.begin(place, Part::Reply, InputDef::reply(self.part(place, "answer")));
        let reply = self.sees(reply, place);
        let reply = self.leaves(reply, place);
        self.push(reply);
    }

    /// Adds the tokens of the branches of a node that write memory.
    pub(super) fn gathers_writes(&self, place: usize, gathered: &mut Vec<Arc<str>>) {
        for writer in self.layout.within(place).iter().copied().chain([place]) {
            for token in self.writing(writer) {
                // Its openings begin its own branches; those of nodes inside are in branches below.
                let is_here = (writer == place) == token.contains("=>");
                if is_here && !gathered.contains(&token) {
                    gathered.push(token);
                }
            }
        }
    }

    /// The tokens and openings of a node that write the memory of a Hive document.
    pub(super) fn writing(&self, from: usize) -> Vec<Arc<str>> {
        let node = &self.graph.nodes[from];
        let Some(hive) = node.hive() else { return Vec::new() };
        let maps = |to: &usize| hive.maps_to(self.id(*to));
        let tokens = self.tokens[from].iter().filter(|(to, _)| maps(to)).map(|(_, token)| token.clone());
        let openings = branches(self.graph, node).into_iter().filter(maps).map(|to| self.opening(from, to));
        tokens.chain(openings).collect()
    }

    /// The events that write the memory of a Hive document, and all results.
    pub(super) fn writers(&self) -> Vec<Arc<str>> {
        let mut writers: Vec<_> = self.graph.nodes.iter().map(|node| node.id.value.clone()).collect();
        for place in 0..self.graph.nodes.len() {
            writers.extend(self.writing(place));
            if self.has_join(place) {
                writers.extend([self.part(place, "joined"), self.part(place, "ended")]);
            }
        }
        writers
    }
}
