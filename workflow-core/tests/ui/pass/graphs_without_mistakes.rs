//! Graphs that come close to a mistake and make none.

#![deny(warnings)]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hint;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Never;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refusal;

#[derive(EventSet)]
enum Outcome {
    Answer(Answer),
    Refusal(Refusal),
}

#[derive(EventSet)]
enum Reviewed {
    Review(Review),
    Approve(Approve),
}

#[derive(EventSet)]
enum Begun {
    Question(Question),
    Review(Review),
}

/// A loop with a way out, a reply, an event from outside, an optional input that nothing produces, and two
/// ways to end.
struct Writer;

#[workflow(output = Outcome)]
impl Writer {
    #[step]
    async fn write(&self, _begun: &Begun) -> Draft {
        Draft
    }

    #[step]
    async fn review(&self, _draft: &Draft) -> Reviewed {
        Reviewed::Approve(Approve)
    }

    #[step]
    async fn publish(&self, reply: Reply<Approve>) -> Outcome {
        if *reply { Outcome::Answer(Answer) } else { Outcome::Refusal(Refusal) }
    }

    #[step(reruns)]
    async fn listen(&self, _hint: &Hint, _never: Option<&Never>) {}
}

/// An intended loop that runs until another step ends the run.
struct Clock;

#[workflow]
impl Clock {
    #[step]
    async fn start(&self, _question: &Question) -> Tick {
        Tick
    }

    #[step(loops)]
    async fn tick(&self, _tick: &Tick) -> Tick {
        std::future::pending().await
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

/// Branches below branches: the inner ones end in a gather, the outer ones in a stop.
struct Reader;

#[workflow]
impl Reader {
    #[step]
    async fn split(&self, _question: &Question) -> FanOut<Part> {
        [Part].into_iter().collect()
    }

    #[step]
    async fn cut(&self, _part: &Part) -> FanOut<Line> {
        [Line].into_iter().collect()
    }

    #[step]
    async fn join(&self, _part: &Part, _lines: Gather<Line>) -> Answer {
        Answer
    }
}

#[tokio::test]
async fn compiles_and_runs() -> Result<(), RunError> {
    let Answer = Clock.run(Question).await?;
    let Answer = Reader.run(Question).await?;
    assert_eq!(Writer::TABLE.steps().len(), 4);
    Ok(())
}
