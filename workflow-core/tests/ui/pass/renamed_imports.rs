//! Imports by other names.

#![deny(warnings)]

use workflow_core::prelude::{
    Deserialize, Event as Message, FixedList as Exactly, List as Many, Serialize, StepError as Oops,
    Workflow as _, precondition, step, workflow as agent,
};

#[derive(Debug, Clone, Serialize, Deserialize, Message)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Message)]
struct Fact;

#[derive(Debug, Clone, Serialize, Deserialize, Message)]
#[event(stop)]
struct Answer;

struct Research;

#[agent]
impl Research {
    #[precondition]
    fn complete(facts: &Many<Fact>) -> bool {
        facts.len() == 3
    }

    #[step]
    async fn look_up(&self, _question: &Question) -> Result<Vec<Fact>, Oops> {
        Ok(vec![Fact; 3])
    }

    #[step]
    async fn count(&self, _three: Exactly<Fact, 3>) {}

    #[step(precondition = complete)]
    async fn answer(&self, _facts: &Many<Fact>) -> Answer {
        Answer
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!(Research::TABLE.name(), "Research");
}
