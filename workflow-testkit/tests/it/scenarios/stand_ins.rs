//! A stand-in takes its step's inputs, and is refused if it does not fit.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{ErrorClass, Retries, RetryPolicy};
use workflow_testkit::Scenario;

use crate::support::{Answer, Fact, Looking, Outline, Question, Research, panic_of, question};

#[tokio::test]
async fn a_function_stands_in_for_a_step() {
    let scenario = Scenario::new(Research)
        .replace("look_up", |question: &Question| Fact(question.0.to_uppercase()))
        .replace("outline", |_: &Question| Outline { points: 7 });
    let run = scenario.start(question()).await;
    run.assert_output(&Answer("WHY, 7 points".into()));
    assert_eq!(run.elapsed(), Duration::from_hours(1));
}

#[tokio::test]
async fn a_stand_in_takes_parameters_in_its_own_order_and_way_or_leaves_them_out() {
    let scenario = Scenario::new(Research)
        .replace("look_up", |display: Display, question: Question| {
            display.show(Looking(3));
            Ok::<_, StepError>(Fact(question.0))
        })
        .replace("outline", |_: &Question| Outline { points: 1 })
        .replace("answer", |outline: Arc<Outline>, fact: &Fact| {
            Answer(format!("{} {}", outline.points, fact.0))
        });
    let run = scenario.start(question()).await;
    run.assert_output(&Answer("1 why".into()));
    run.assert_displayed(&[Looking(3)]);
}

#[tokio::test]
async fn a_stand_in_may_be_asynchronous() {
    let scenario = Scenario::new(Research).replace("look_up", |question: &Question| {
        let text = question.0.clone();
        async move {
            tokio::time::sleep(Duration::from_hours(9)).await;
            Fact(text)
        }
    });
    let run = scenario.start(question()).await;
    run.assert_executions("answer", 1);
    assert_eq!(run.elapsed(), Duration::from_hours(10));
}

#[tokio::test]
async fn a_stand_in_may_take_nothing() {
    fn outline() -> Outline {
        Outline { points: 2 }
    }
    let scenario = Scenario::new(Research)
        .replace("look_up", || async { Ok::<_, StepError>(Fact("so".into())) })
        .replace("outline", outline)
        .replace("answer", || Answer("done".into()));
    let run = scenario.start(question()).await;
    run.assert_output(&Answer("done".into()));
    run.assert_emitted_events(&[Fact("so".into())]);
    run.assert_emitted_events(&[Outline { points: 2 }]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Source(u32);

#[derive(Debug, EventSet)]
enum Told {
    Fact(Fact),
    Outline(Outline),
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Depth {
    most: u32,
}

/// Takes and emits in every possible way.
struct Wide;

#[workflow]
impl Wide {
    #[step]
    async fn split(&self, _question: &Question, _depth: &Config<Depth>) -> FanOut<Source> {
        FanOut::new(vec![Source(1)])
    }

    #[step]
    async fn read(&self, source: &Source, facts: &Emitter<Fact>) -> Result<(), StepError> {
        facts.emit(Fact(source.0.to_string()))?;
        Ok(())
    }

    #[step]
    async fn outline(&self, facts: &Gather<Fact>) -> Outline {
        Outline { points: facts.len() }
    }

    #[step(reruns)]
    async fn answer(&self, told: &Told, question: Option<&List<Question>>) -> Option<Answer> {
        Some(Answer(format!("{told:?} {}", question.map_or(0, List::len))))
    }
}

#[tokio::test]
async fn stand_ins_take_and_emit_in_every_way_that_steps_do() {
    let scenario = Scenario::new(Wide)
        .config(Depth { most: 2 })
        .replace("split", |depth: &Config<Depth>| (1..=depth.most).map(Source).collect::<FanOut<Source>>())
        .replace("read", |source: &Source| Some(Fact(source.0.to_string())))
        .replace("outline", |facts: &Gather<Fact>| Outline { points: facts.ok().count() })
        .replace("answer", |questions: Option<&List<Question>>, told: &Told| {
            let Told::Outline(outline) = told else { return None };
            Some(Answer(format!("{} {}", questions.map_or(0, List::len), outline.points)))
        });
    scenario.start(question()).await.assert_output(&Answer("1 2".into()));
}

#[tokio::test]
async fn the_first_calls_of_a_step_fail_and_then_comes_the_step() {
    let failing =
        |calls| Scenario::new(Research).fail_first("look_up", calls, || StepError::transient("busy"));
    let run = failing(4).start(question()).await;
    let Err(RunError::StepFailed { class, attempts, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    assert_eq!((&*class.to_string(), *attempts), ("transient", 4));
    assert!(run.transcript().contains("x1 look_up: failed (transient): busy\n"));
    let run = failing(3).start(question()).await;
    run.assert_executions("look_up", 1);
    run.assert_executions("answer", 1);
    assert!(run.transcript().contains("\n   attempt 3 failed (transient): busy; retried after 90s\n"));
    failing(0).start(question()).await.assert_executions("answer", 1);
}

#[tokio::test]
async fn a_scenario_has_a_retry_policy_and_classes_for_errors_like_an_engine() {
    let policy = RetryPolicy::none().on(ErrorClass::Model, Retries::fixed(1, Duration::from_hours(5)));
    let scenario = Scenario::new(Research)
        .fail_first("look_up", 1, || std::fmt::Error.into())
        .classify(|_: &std::fmt::Error| ErrorClass::Model)
        .retry(policy);
    let run = scenario.start(question()).await;
    run.assert_executions("answer", 1);
    assert_eq!(run.elapsed(), Duration::from_hours(7));
}

#[tokio::test]
async fn failures_are_counted_over_all_executions_of_a_step() {
    let scenario = Scenario::new(Wide)
        .replace("split", |_: &Question| FanOut::new((1..=3).map(Source).collect()).continue_others())
        .replace("read", |source: &Source| Fact(source.0.to_string()))
        .fail_first("read", 2, || StepError::permanent("busy"));
    let run = scenario.start(question()).await;
    run.assert_executions("read", 3);
    assert_eq!(run.emitted::<Fact>(), [Arc::new(Fact("3".into()))]);
    run.assert_quality(Quality::Degraded);
}

#[test]
fn a_stand_in_that_does_not_fit_is_refused_before_the_run() {
    let (research, wide) = (|| Scenario::new(Research), || Scenario::new(Wide));
    let one = || FanOut::new(vec![Source(1)]);
    let refusals = [
        panic_of(|| drop(research().replace("lookup", |_: &Question| Fact(String::new())))),
        panic_of(|| drop(research().fail_first("rank", 1, || StepError::tool("no")))),
        panic_of(|| drop(research().replace("look_up", |fact: &Fact| fact.clone()))),
        panic_of(|| drop(wide().replace("answer", |_: &List<Question>| Answer(String::new())))),
        panic_of(|| drop(wide().replace("split", |_: &Question| Source(1)))),
        panic_of(|| drop(wide().replace("read", |source: Source| source))),
        panic_of(|| drop(wide().replace("split", move |_: &Config<u32>| one()))),
        panic_of(|| drop(wide().replace("read", |_: &Source, _: Source| ()))),
    ];
    expect_test::expect![[r"
        `Research` has no step `lookup`: did you mean `look_up`?
        `Research` has no step `rank`: its steps are `look_up`, `outline`, `answer`
        the stand-in does not fit: `look_up` does not take `Fact`: it takes `Question`, `Display`
        the stand-in does not fit: `answer` does not take `List<Question>`: it takes `Fact or Outline`, `Option<List<Question>>`
        the stand-in does not fit: `split` does not return `Source`: it returns `FanOut<Source>`
        the stand-in does not fit: `read` does not return `Source`: it returns `()`, and emits `Fact`
        the stand-in does not fit: `split` does not take `Config<u32>`: it takes `Question`, `Config<it::scenarios::stand_ins::Depth>`
        the stand-in does not fit: `read` does not take `Source` as often
    "]].assert_eq(&(refusals.join("\n") + "\n"));
}

#[derive(Debug, EventSet)]
enum Either {
    Source(Source),
    Outline(Outline),
}

/// Returns every possible shape.
struct Shapes;

#[workflow]
impl Shapes {
    #[step]
    async fn one(&self, _: &Question) -> Fact {
        Fact(String::new())
    }

    #[step]
    async fn maybe(&self, _: &Question) -> Result<Option<Fact>, StepError> {
        Ok(None)
    }

    #[step]
    async fn many(&self, _: &Question) -> Vec<Source> {
        Vec::new()
    }

    #[step]
    async fn either(&self, _: &Question) -> Either {
        Either::Source(Source(1))
    }

    #[step]
    async fn pair(&self, _: &Question) -> (Source, Option<Outline>) {
        (Source(1), None)
    }

    #[step]
    async fn maybe_pair(&self, _: &Question) -> Option<(Source, Outline)> {
        None
    }

    #[step]
    async fn pairs(&self, _: &Question) -> Vec<(Source, Outline)> {
        Vec::new()
    }

    #[step]
    async fn emits(&self, _: &Question, facts: &Emitter<Fact>) -> Result<Source, StepError> {
        facts.emit(Fact(String::new()))?;
        Ok(Source(1))
    }

    #[step]
    async fn later(&self, _: &Question) -> Option<Timer<Fact>> {
        None
    }

    #[step]
    async fn asks(&self, _: &Question) -> Expiring<Consult> {
        Consult.expires_in(Duration::from_hours(1))
    }

    #[step]
    async fn unanswered(&self, _: &Expired<Consult>) {}

    #[step]
    async fn answered(&self, _: &Reply<Consult>) {}

    #[step(reruns)]
    async fn answer(&self, _: &Fact, _: Option<&Outline>, _: Option<&Source>) -> Answer {
        Answer(String::new())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Consult;

fn soon<E>(event: E) -> Timer<E> {
    Timer::after(Duration::from_secs(1), event)
}

fn fact() -> Fact {
    Fact("x".into())
}

#[test]
fn a_stand_in_may_leave_out_what_its_step_might_return() {
    let shapes = || Scenario::new(Shapes);
    drop(shapes().replace("one", |_: &Question| Ok::<_, StepError>(fact())));
    drop(shapes().replace("maybe", |_: &Question| fact()));
    drop(shapes().replace("maybe", |_: &Question| ()));
    drop(shapes().replace("many", |_: &Question| Source(1)));
    drop(shapes().replace("many", |_: &Question| Some(Source(1))));
    drop(shapes().replace("many", |_: &Question| (Source(1), vec![Source(2)])));
    drop(shapes().replace("either", |_: &Question| Outline { points: 1 }));
    drop(shapes().replace("pair", |_: &Question| Source(1)));
    drop(shapes().replace("pair", |_: &Question| (Source(1), Outline { points: 1 })));
    drop(shapes().replace("maybe_pair", |_: &Question| (Source(1), Outline { points: 1 })));
    drop(shapes().replace("maybe_pair", |_: &Question| Some((Source(1), Outline { points: 1 }))));
    drop(shapes().replace("maybe_pair", |_: &Question| ()));
    drop(shapes().replace("pairs", |_: &Question| (Source(1), Outline { points: 1 })));
    drop(shapes().replace("pairs", |_: &Question| Some((Source(1), Outline { points: 1 }))));
    drop(shapes().replace("pairs", |_: &Question| vec![(Source(1), Outline { points: 1 })]));
    drop(shapes().replace("pairs", |_: &Question| {
        ((Source(1), Outline { points: 1 }), (Source(2), Outline { points: 2 }))
    }));
    drop(shapes().replace("emits", |_: &Question| Source(1)));
    drop(shapes().replace("emits", |_: &Question| (vec![fact()], Source(1))));
    drop(shapes().replace("later", |_: &Question| soon(fact())));
    drop(shapes().replace("asks", |_: &Question| Consult.expires_in(Duration::from_secs(1))));
    drop(shapes().replace("asks", |_: &Question| Consult));
}

#[tokio::test]
async fn all_of_a_tuple_that_a_step_might_return_may_be_returned() {
    let scenario = Scenario::new(Shapes)
        .replace("maybe_pair", || (Source(7), Outline { points: 7 }))
        .replace("pairs", || Some((Source(8), Outline { points: 8 })))
        .replace("emits", || Source(9))
        .replace("one", || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fact()
        });
    let run = scenario.start(question()).await;
    run.assert_emitted_events(&[Outline { points: 7 }, Outline { points: 8 }]);
}

#[test]
fn a_stand_in_that_returns_what_its_step_cannot_is_refused_before_the_run() {
    let shapes = || Scenario::new(Shapes);
    let refusals = [
        panic_of(|| {
            drop(shapes().replace("one", |_: &Question| {
                fact();
            }));
        }),
        panic_of(|| drop(shapes().replace("one", |_: &Question| vec![fact(), fact(), fact()]))),
        panic_of(|| drop(shapes().replace("one", |_: &Question| Some(fact())))),
        panic_of(|| drop(shapes().replace("maybe", |_: &Question| (fact(), fact())))),
        panic_of(|| drop(shapes().replace("maybe", |_: &Question| vec![fact()]))),
        panic_of(|| drop(shapes().replace("many", |_: &Question| FanOut::new(vec![Source(1)])))),
        panic_of(|| drop(shapes().replace("either", |_: &Question| (Source(1), Outline { points: 1 })))),
        panic_of(|| drop(shapes().replace("either", |_: &Question| ()))),
        panic_of(|| drop(shapes().replace("pair", |_: &Question| Outline { points: 1 }))),
        panic_of(|| drop(shapes().replace("pair", |_: &Question| (Outline { points: 1 }, Source(1))))),
        panic_of(|| drop(shapes().replace("maybe_pair", |_: &Question| Source(1)))),
        panic_of(|| drop(shapes().replace("maybe_pair", |_: &Question| (Outline { points: 1 }, Source(1))))),
        panic_of(|| drop(shapes().replace("pairs", |_: &Question| vec![Source(1)]))),
        panic_of(|| drop(shapes().replace("pairs", |_: &Question| (Outline { points: 1 }, Source(1))))),
        panic_of(|| drop(shapes().replace("emits", |_: &Question| fact()))),
        panic_of(|| drop(shapes().replace("later", |_: &Question| fact()))),
        panic_of(|| drop(shapes().replace("one", |_: &Question| soon(fact())))),
        panic_of(|| drop(shapes().replace("asks", |_: &Question| soon(fact())))),
    ];
    expect_test::expect![[r"
        the stand-in does not fit: `one` does not return `()`: it returns `Fact`
        the stand-in does not fit: `one` does not return `Vec<Fact>`: it returns `Fact`
        the stand-in does not fit: `one` does not return `Option<Fact>`: it returns `Fact`
        the stand-in does not fit: `maybe` does not return `(Fact, Fact)`: it returns `Option<Fact>`
        the stand-in does not fit: `maybe` does not return `Vec<Fact>`: it returns `Option<Fact>`
        the stand-in does not fit: `many` does not return `FanOut<Source>`: it returns `Vec<Source>`
        the stand-in does not fit: `either` does not return `(Source, Outline)`: it returns `Source or Outline`
        the stand-in does not fit: `either` does not return `()`: it returns `Source or Outline`
        the stand-in does not fit: `pair` does not return `Outline`: it returns `(Source, Option<Outline>)`
        the stand-in does not fit: `pair` does not return `(Outline, Source)`: it returns `(Source, Option<Outline>)`
        the stand-in does not fit: `maybe_pair` does not return `Source`: it returns `Option<(Source, Outline)>`
        the stand-in does not fit: `maybe_pair` does not return `(Outline, Source)`: it returns `Option<(Source, Outline)>`
        the stand-in does not fit: `pairs` does not return `Vec<Source>`: it returns `Vec<(Source, Outline)>`
        the stand-in does not fit: `pairs` does not return `(Outline, Source)`: it returns `Vec<(Source, Outline)>`
        the stand-in does not fit: `emits` does not return `Fact`: it returns `Source`, and emits `Fact`
        the stand-in does not fit: `later` does not return `Fact`: it returns `Option<Timer<Fact>>`
        the stand-in does not fit: `one` does not return `Timer<Fact>`: it returns `Fact`
        the stand-in does not fit: `asks` does not return `Timer<Fact>`: it returns `Expiring<Consult>`
    "]]
    .assert_eq(&(refusals.join("\n") + "\n"));
}

#[tokio::test]
async fn a_named_function_with_aliases_stands_in_for_a_step() {
    type Asked<'a> = &'a Question;
    fn look_up(question: Asked<'_>) -> Fact {
        Fact(question.0.to_uppercase())
    }
    let run = Scenario::new(Research).replace("look_up", look_up).start(question()).await;
    assert_eq!(*run.emitted::<Fact>()[0], Fact("WHY".into()));
}
