//! The events of a table, with their roles and schemas.

use std::sync::Arc;

use workflow_core::signature::Roles;
use workflow_core::table::EventDef;

use super::Compiler;
use super::ways::{asks_model, branches, counts};
use crate::document::model::{Next, Work};
use crate::state::names;

impl Compiler<'_> {
    pub(super) fn events(&mut self) {
        self.add(
            EventDef::new(self.input.clone(), Roles::NONE.start()).schema(crate::begin::schema(self.graph)),
        );
        self.add(EventDef::new(self.output.clone(), Roles::NONE.stop()));
        if self.graph.nodes.iter().any(|node| node.on_failure.is_some()) {
            self.add(EventDef::failure(names::FAILURE));
        }
        for var in &self.graph.vars {
            self.control(names::variable(&var.name.value));
        }
        for (place, node) in self.graph.nodes.iter().enumerate() {
            self.control(node.id.value.clone());
            for at in 0..self.tokens[place].len() {
                let (_, token) = &self.tokens[place][at];
                self.once(token.clone());
            }
            for to in branches(self.graph, node) {
                self.once(self.opening(place, to));
            }
            let part = |name: &str| names::of(&node.id.value, name);
            if counts(node) {
                self.control(part("taken"));
            }
            if self.layout.is_counted(self.graph, place) {
                self.control(part("count"));
            }
            if asks_model(node) {
                self.control(part("choose"));
            }
            if let Next::Parallel(_) = &node.next {
                self.controls(["item", "joined", "ended"].map(part));
            }
            self.pause_events(place);
            if node.for_each.is_some() {
                self.controls(["each-item", "done"].map(part));
            }
            if let Work::Human(human) = &node.work {
                self.add(EventDef::new(part("ask"), Roles::NONE.request()));
                let answer = EventDef::reply_to(part("answer"), part("ask"));
                self.add(match &human.reply {
                    Some(schema) => answer.schema(serde_json::Value::clone(&schema.value)),
                    None => answer,
                });
                if human.expires.is_some() {
                    self.add(EventDef::expiry_of(part("expired"), part("ask")));
                }
            }
        }
    }

    fn once(&mut self, token: Arc<str>) {
        if self.known.insert(token.clone()) {
            self.control(token);
        }
    }
}
