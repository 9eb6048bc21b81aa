//! No random run is stalled that could continue: no possible arrival makes a step run.

use std::sync::Arc;

use workflow_core::Seq;
use workflow_core::scheduler::{End, Fact};
use workflow_testkit::model::{Line, Model};

use super::play::{Moment, Play};

/// The number of times each possible event arrives: the largest fixed list takes four.
const ROUNDS: usize = 5;

impl Play<'_> {
    pub(super) fn is_stalled(&self) -> bool {
        self.model.end() == Some(&End::Stalled)
    }

    /// Plays a stalled run again with a model that never stalls, and then sends every possible event.
    pub(super) fn check_stall(&self) -> Result<(), String> {
        // A model that never stalls takes what the rules refuse between a stall and its redrive.
        let is_redrive = |moment: &Moment| matches!(moment, Moment::Told(Fact::Redriven));
        if !self.is_stalled() || self.history.iter().any(is_redrive) {
            return Ok(());
        }
        let mut model = self.as_it_stalled();
        for _ in 0..ROUNDS {
            for fact in self.can_arrive(&model) {
                self.tell_patient(&mut model, &fact)?;
            }
        }
        Ok(())
    }

    /// The external events and the replies to open requests, as facts.
    pub(super) fn can_arrive(&self, model: &Model) -> Vec<Fact> {
        let external = (0..self.plan.events.len()).filter(|event| self.plan.events[*event].external);
        let replies = model.open_requests().into_iter();
        let replies = replies.map(|seq| Fact::ReplyReceived { request: Seq(seq) });
        external.map(|event| self.received(event)).chain(replies).collect()
    }

    fn as_it_stalled(&self) -> Model {
        let mut model = Model::patient(Arc::clone(&self.plan));
        for moment in &self.history {
            match moment {
                Moment::Told(fact) => model.apply(fact),
                Moment::Said(Line::Ends(_) | Line::CleansUp { .. }) | Moment::Stalled => break,
                Moment::Said(_) | Moment::Quiet => drop(model.next_line()),
            }
        }
        model
    }

    fn tell_patient(&self, model: &mut Model, fact: &Fact) -> Result<(), String> {
        model.apply(fact);
        while let Some(line) = model.next_line() {
            match line {
                Line::Asks { .. } | Line::Starts { .. } => {
                    let line = line.text(&self.table);
                    return Err(format!("a stalled run went on after {fact:?}: {line}\n{}", self.story()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
