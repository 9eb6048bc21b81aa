//! The type of a parameter decides, not its name.

#![deny(warnings)]

use std::sync::Arc;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Fact;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

type Asked<'a> = &'a Question;
type Shared = Arc<Fact>;
type Maybe<T> = Option<T>;
type Facts = List<Fact>;
type Three = FixedList<Fact, 3>;
type Outcome<T> = Result<T, StepError>;

struct Research;

#[workflow]
impl Research {
    #[precondition]
    fn complete(facts: Facts) -> bool {
        facts.len() == 3
    }

    #[step]
    async fn look_up(&self, _question: Asked<'_>) -> Outcome<Vec<Fact>> {
        Ok(vec![Fact; 3])
    }

    #[step]
    async fn file(&self, _fact: Shared) {}

    #[step(reruns)]
    async fn note(&self, _question: Maybe<Asked<'_>>, _facts: Maybe<Facts>) {}

    #[step]
    async fn count(&self, _three: Three) {}

    #[step(precondition = complete)]
    async fn answer(&self, _facts: Facts) -> Outcome<Answer> {
        Ok(Answer)
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!(Research::TABLE.steps().len(), 5);
}
