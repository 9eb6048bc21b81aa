//! The library by another name: every macro takes `crate = ..`.

#![deny(warnings)]

/// As if `workflow-core` were declared under this name.
mod agents {
    pub(crate) use workflow_core::*;
}

use agents::prelude::{Deserialize, Event, EventSet, Serialize, Workflow as _};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, crate = agents)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = "agents")]
struct Fact;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop, crate = crate::pass::renamed_dependency::agents)]
struct Answer;

#[derive(EventSet)]
#[event_set(crate = agents)]
enum Either {
    Question(Question),
    Fact(Fact),
}

#[agents::precondition(crate = agents)]
fn ready(_fact: &Fact) -> bool {
    true
}

struct Research;

#[agents::workflow(crate = agents)]
impl Research {
    #[agents::step]
    async fn look_up(&self, _question: &Question) -> Fact {
        Fact
    }

    #[agents::step]
    async fn note(&self, either: &Either) {
        match either {
            Either::Question(Question) | Either::Fact(Fact) => {}
        }
    }

    #[agents::step(precondition = ready)]
    async fn answer(&self, _fact: &Fact) -> Answer {
        Answer
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!(Research::TABLE.steps().len(), 3);
}
