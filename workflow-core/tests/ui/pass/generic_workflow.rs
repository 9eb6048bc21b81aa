//! Generic workflows, events and sets.

#![deny(warnings)]

use std::marker::PhantomData;
use std::sync::Arc;

use workflow_core::prelude::*;

trait Model: Send + Sync + 'static {
    type Kind: Send + Sync + 'static;

    fn ask(&self) -> u32;
}

struct Fixed(u32);

impl Model for Fixed {
    type Kind = u8;

    fn ask(&self) -> u32 {
        self.0
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Serialize, Deserialize, Event)]
#[serde(bound = "")]
struct Thought<K: Send + Sync + 'static> {
    depth: u32,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

#[derive(EventSet)]
enum Either<L: workflow_core::ControlEvent + Clone, R: workflow_core::ControlEvent> {
    Left(L),
    Right(Arc<R>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer(u32);

struct Agent<M, const DEEP: u32> {
    model: M,
}

#[workflow]
impl<M: Model, const DEEP: u32> Agent<M, DEEP>
where
    M::Kind: Clone,
{
    #[step]
    async fn think(&self, _question: &Question) -> Thought<M::Kind> {
        Thought { depth: DEEP + self.model.ask(), kind: PhantomData }
    }

    #[step]
    async fn note(&self, either: &Either<Question, Thought<M::Kind>>) {
        match either {
            Either::Left(Question) | Either::Right(_) => {}
        }
    }

    #[step]
    async fn answer(&self, thought: &Thought<M::Kind>) -> Answer {
        Answer(thought.depth)
    }
}

#[tokio::test]
async fn compiles_and_runs() -> Result<(), RunError> {
    assert_eq!(Agent::<_, 2> { model: Fixed(40) }.run(Question).await?, Answer(42));
    Ok(())
}
