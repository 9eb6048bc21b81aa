//! The causes of failures: the error types that steps may return, the text of their chains, and their sources by type.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use workflow_core::errors::{BranchItem, BuildProblem, ConfigError, ContextError, UnfitValue, chain};
use workflow_core::prelude::*;
use workflow_core::store::{MemoryStore, Position, StoreError};
use workflow_core::{
    ConfigOrigin, ErrorClass, RedriveError, ResumeError, RetryPolicy, RunId, RunOptions, SendError,
    StartError, StepFailed,
};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Done, Item, Part, Saw, saw};

/// Its text ends with that of its source.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the index: {source}")]
struct Open {
    source: io::Error,
}

/// Its text is its own only.
#[derive(Debug, thiserror::Error)]
#[error("cannot search")]
struct Search {
    source: Open,
}

fn search() -> Search {
    Search { source: Open { source: io::Error::other("the disk is gone") } }
}

const CHAIN: &str = "cannot search: cannot open the index: the disk is gone";

/// A step that fails with an error of any type.
struct Fails<E>(fn() -> E);

#[workflow]
impl<E: Into<StepError> + Send + Debug + 'static> Fails<E> {
    #[step(retry = RetryPolicy::none())]
    async fn work(&self, _begin: &Begin) -> Result<Done, E> {
        Err((self.0)())
    }
}

/// The error of a run whose step returned this error.
async fn failed<E: Into<StepError> + Send + Debug + 'static>(error: fn() -> E) -> RunError {
    let run = Scenario::new(Fails(error)).start(Begin(1)).await;
    let error = run.outcome().unwrap_err().clone();
    let text = error.to_string();
    let own = text.strip_prefix("step `work` failed (x1, permanent): ").unwrap();
    let (report, explained) = (run.report().to_string(), run.explanation().unwrap().to_string());
    assert!(report.ends_with(&format!("x1 work: failed (permanent): {own}\n")), "{report}");
    assert!(explained.ends_with(&format!("failed (permanent): {own}")), "{explained}");
    assert_eq!(chain(&error), text, "the text of the run's error has its sources");
    error
}

fn source(error: &RunError) -> &workflow_core::errors::SharedError {
    let RunError::StepFailed { source, .. } = error else { panic!("{error}") };
    source
}

#[tokio::test]
async fn every_kind_of_error_converts_with_its_chain() {
    let context = || anyhow::Error::new(search()).context("no answer");
    let ends = |error: &RunError, chain: &str| error.to_string().ends_with(&format!(": {chain}"));
    for error in [
        failed(search).await,
        failed(|| anyhow::Error::new(search())).await,
        failed(|| eyre::Report::new(search())).await,
        failed(|| -> Box<dyn Error + Send + Sync> { Box::new(search()) }).await,
        failed(|| StepError::permanent(search())).await,
        failed(|| StepError::from_report(Arc::new(search()) as Arc<dyn Error + Send + Sync>)).await,
    ] {
        assert!(ends(&error, CHAIN), "{error}");
        assert!(source(&error).source_as::<io::Error>().is_some(), "{error}");
        assert!(source(&error).source_as::<std::fmt::Error>().is_none());
    }
    assert!(ends(&failed(context).await, &format!("no answer: {CHAIN}")));
    assert!(ends(&failed(|| anyhow::anyhow!("no luck")).await, "no luck"));
    assert!(ends(&failed(|| eyre::eyre!("no luck").wrap_err("no answer")).await, "no answer: no luck"));
    assert!(ends(&failed(|| "no luck").await, "no luck"));
    assert!(ends(&failed(|| String::from("no luck")).await, "no luck"));
}

/// Each kind of error by `?` in one step.
struct Converts;

#[workflow]
impl Converts {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        match begin.0 {
            1 => Err(anyhow::Error::new(search()))?,
            2 => Err(eyre::Report::new(search()))?,
            3 => Err(Box::<dyn Error + Send + Sync>::from(search()))?,
            4 => Err(CHAIN)?,
            5 => Err(CHAIN.to_owned())?,
            _ => Err(search())?,
        }
        Ok(Done(0))
    }
}

/// Asserts that a printer of errors with their sources prints each of them once.
fn is_printed_once(error: impl Error + Send + Sync + 'static) {
    let text = chain(&error);
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    for source in sources.map(ToString::to_string) {
        assert!(!error.to_string().contains(&source), "`{error}` has `{source}`, and returns it");
    }
    let error = anyhow::Error::new(error);
    assert_eq!(format!("{error:#}"), text);
    // As a program prints it that returns it.
    for part in ["the disk is gone", "invalid type"].into_iter().filter(|part| text.contains(part)) {
        assert_eq!(format!("{error:?}").matches(part).count(), 1, "{error:?}");
    }
}

#[tokio::test]
async fn a_printer_of_errors_with_their_sources_prints_each_once() {
    is_printed_once(failed(search).await);
    is_printed_once(failed(|| anyhow::Error::new(search()).context("no answer")).await);
    is_printed_once(failed(|| failing().unwrap_err()).await);
    let io = || io::Error::other("the disk is gone");
    let json = || Arc::new(serde_json::from_str::<u8>("true").unwrap_err());
    let lost = || Lost { source: io() };
    let run = || RunId::from("r");
    for store in [
        StoreError::unavailable(lost()),
        StoreError::unserialisable(lost()),
        StoreError::Corrupt { run: run(), position: Position(1), source: Arc::new(io()) },
    ] {
        is_printed_once(RunError::Store { source: store.clone() });
        is_printed_once(RunError::Start(StartError::Store(store.clone())));
        is_printed_once(StartError::Store(store.clone()));
        is_printed_once(SendError::Refused { run: run(), event: "Paid".into(), source: store.clone() });
        is_printed_once(SendError::NotLoaded { run: run(), source: store.clone() });
        is_printed_once(SendError::Stopped { run: run(), source: store.clone() });
        is_printed_once(ResumeError::Store(store.clone()));
        is_printed_once(RedriveError::Resume(ResumeError::Store(store.clone())));
        is_printed_once(RedriveError::Store(store.clone()));
        is_printed_once(RedriveError::Start { run: run(), source: StartError::Store(store.clone()) });
        is_printed_once(store);
    }
    let unfit = || UnfitValue::Serialize { source: json() };
    let (event, path): (Arc<str>, _) = ("Paid".into(), String::from("cents"));
    is_printed_once(unfit());
    is_printed_once(StartError::Unfit { event: event.clone(), path: path.clone(), problem: unfit() });
    is_printed_once(SendError::Unfit { event, path: path.clone(), problem: unfit() });
    is_printed_once(ContextError::Unfit { key: "k".into(), path: path.clone(), problem: unfit() });
    is_printed_once(ContextError::Unserialisable { key: "k".into(), source: json() });
    is_printed_once(ContextError::unavailable(io()));
    for config in [
        ConfigError::unavailable(lost()),
        ConfigError::Unfit { origin: ConfigOrigin::Run, path: path.clone(), problem: unfit() },
        ConfigError::Invalid { type_name: "app::Prices", path, origin: None, source: json() },
        ConfigError::NotJson { path: "prices.json".into(), source: json() },
    ] {
        let problem = BuildProblem::Config { workflow: "Shop".into(), source: config.clone() };
        is_printed_once(problem);
        is_printed_once(StartError::Config(config.clone()));
        is_printed_once(ResumeError::Config(config.clone()));
        is_printed_once(config);
    }
    let build = Engine::builder().max_concurrent_runs_named("Shop", 1).build().unwrap_err();
    is_printed_once(RunError::Build(build));
}

/// Asserts that an error is found by its type behind another one that a step returns.
fn is_behind<E: Error + 'static>(error: impl Error + Send + Sync + 'static) {
    let (text, error) = (format!("{error:?}"), StepError::from(error));
    assert!(error.source_as::<E>().is_some(), "{text}");
}

// S35
#[test]
fn an_error_that_is_no_source_of_another_one_is_found_behind_it() {
    let _engine = Engine::builder().build().unwrap();
    let json = || Arc::new(serde_json::from_str::<u8>("true").unwrap_err());
    let store = || StoreError::unavailable(io::Error::other("the disk is gone"));
    let (run, event, path) = (|| RunId::from("r"), || Arc::<str>::from("Paid"), || String::from("cents"));
    let stopped = || SendError::Stopped { run: run(), source: store() };
    is_behind::<StoreError>(stopped());
    is_behind::<StoreError>(ResumeError::Store(store()));
    is_behind::<StoreError>(RedriveError::Store(store()));
    is_behind::<StoreError>(RedriveError::Resume(ResumeError::Store(store())));
    is_behind::<StartError>(RedriveError::Start { run: run(), source: StartError::Store(store()) });

    let unfit = || UnfitValue::Serialize { source: json() };
    is_behind::<serde_json::Error>(unfit());
    let start = || StartError::Unfit { event: event(), path: path(), problem: unfit() };
    is_behind::<UnfitValue>(start());
    is_behind::<serde_json::Error>(RunError::Start(start()));
    is_behind::<UnfitValue>(SendError::Unfit { event: event(), path: path(), problem: unfit() });
    is_behind::<serde_json::Error>(ContextError::Unfit { key: "k".into(), path: path(), problem: unfit() });

    let away = || ConfigError::unavailable(io::Error::other("the disk is gone"));
    is_behind::<io::Error>(StartError::Config(away()));
    is_behind::<io::Error>(ResumeError::Config(away()));
    is_behind::<io::Error>(BuildProblem::Config { workflow: "Shop".into(), source: away() });
    let invalid =
        || ConfigError::Invalid { type_name: "app::Prices", path: path(), origin: None, source: json() };
    is_behind::<serde_json::Error>(invalid());
    is_behind::<UnfitValue>(ConfigError::Unfit { origin: ConfigOrigin::Run, path: path(), problem: unfit() });
    let build = || Engine::builder().max_concurrent_runs_named("Shop", 1).build().unwrap_err();
    is_behind::<BuildProblem>(build());
    is_behind::<BuildProblem>(RunError::Build(build()));
}

/// Its text is its own only, as that of its source is.
#[derive(Debug, thiserror::Error)]
#[error("cannot search")]
struct Lost {
    source: io::Error,
}

fn failing() -> Result<(), Open> {
    Err(search().source)
}

/// Fails as its child does.
struct Above;

#[workflow]
impl Above {
    #[step(retry = RetryPolicy::none())]
    async fn work(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Fails<Search>>(begin.clone()).await
    }
}

#[tokio::test]
async fn the_error_of_a_childs_step_is_found_by_its_type() {
    let builder = Engine::builder().workflow(Fails(search)).workflow(Above);
    let engine = builder.build().unwrap();
    let error = engine.start::<Above>(Begin(1)).await.unwrap().outcome().await.unwrap_err();
    let child = format!("step `work` failed (x1, permanent): {CHAIN}");
    assert_eq!(error.to_string(), format!("step `work` failed (x1, permanent): {child}"));
    assert!(source(&error).source_as::<Search>().is_some());
    assert_eq!(source(&error).source_as::<io::Error>().unwrap().to_string(), "the disk is gone");
    let cause = error.cause().unwrap();
    assert_eq!(cause.to_string(), child);
    is_printed_once(error);
}

#[tokio::test]
async fn every_kind_of_error_converts_by_the_question_mark() {
    for kind in 1..=6 {
        let error = Converts.run(Begin(kind)).await.unwrap_err();
        assert_eq!(error.to_string(), format!("step `work` failed (x1, permanent): {CHAIN}"));
    }
}

#[tokio::test]
async fn the_outermost_error_of_a_report_is_found_under_a_context_and_if_it_is_given_as_a_report() {
    let with_context = failed(|| anyhow::Error::new(search()).context("no answer")).await;
    let as_report = failed(|| StepError::from_report(anyhow::Error::new(search()))).await;
    let of_eyre = failed(|| StepError::from_report(eyre::Report::new(search()))).await;
    for error in [with_context, as_report, of_eyre] {
        assert!(source(&error).source_as::<Search>().is_some(), "{error}");
    }
}

#[tokio::test]
async fn a_classifier_finds_the_error_in_a_report() {
    let workflow = Fails(|| StepError::from_report(anyhow::Error::new(search())));
    let scenario =
        Scenario::new(workflow).engine(|engine| engine.classify(|_: &Search| ErrorClass::Rejected));
    let run = scenario.start(Begin(1)).await;
    assert_eq!(run.outcome().unwrap_err().to_string(), format!("step `work` failed (x1, rejected): {CHAIN}"));
}

/// The second branch fails, twice.
struct Pages;

#[workflow]
impl Pages {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let pages = (1..=2).map(Item).collect();
        if begin.0 == 1 { FanOut::new(pages).wait_all() } else { FanOut::new(pages) }
    }

    #[step]
    async fn read(&self, page: &Item) -> Part {
        Part(page.0)
    }

    #[step]
    async fn check(&self, part: &Part) -> Result<Saw, StepError> {
        if part.0 == 1 { Ok(Saw(String::new())) } else { Err(StepError::model(search())) }
    }

    #[step]
    async fn end(&self, checked: &Gather<Saw>) -> Done {
        Done(u32::try_from(checked.len()).unwrap())
    }
}

#[tokio::test]
async fn a_failure_in_a_branch_names_the_item_of_the_branch() {
    let run = Scenario::new(Pages).start(Begin(0)).await;
    let error = run.outcome().unwrap_err();
    let RunError::StepFailed { item: Some(item), execution, .. } = error else { panic!("{error}") };
    let BranchItem { seq, event, step, .. } = &**item;
    assert_eq!((seq.0, &**event, &**step), (3, "Item", "split"));
    let text = error.to_string();
    let expected = format!(
        "step `check` failed after 2 attempts in the branch of #3 `Item` of `split` ({execution}, model): {CHAIN}"
    );
    assert_eq!(text, expected);
    let report = run.report().to_string();
    let line = report.lines().find(|line| line.contains(" check in the branch")).unwrap();
    let begins =
        format!("{execution} check in the branch of #3 `Item` of `split` failed once (model: {CHAIN})");
    assert!(line.starts_with(&begins), "{line}");
    let explained = run.explanation().unwrap().to_string();
    let line = format!("{execution} in scope 2, the branch of #3 `Item` of `split`, triggered by");
    assert!(explained.contains(&line), "{explained}");
}

#[tokio::test]
async fn every_failure_of_a_group_names_its_branch() {
    let run = Scenario::new(Pages).start(Begin(1)).await;
    let error = run.outcome().unwrap_err().to_string();
    assert!(error.contains("in the branch of #3 `Item` of `split`") && error.ends_with(CHAIN), "{error}");
}

/// Takes the failure of a step as an event, at once and after `Alpha`.
struct Catches;

#[workflow]
impl Catches {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Item, Search> {
        Err(search())
    }

    #[step(catches = [work])]
    async fn note(&self, failed: &StepFailed) -> Saw {
        Saw(format!("{}; {:?}", failed.error, failed.source_as::<io::Error>().map(io::Error::kind)))
    }

    #[step(catches = [work])]
    async fn end(&self, failed: &StepFailed, alpha: &Alpha) -> Result<Done, StepError> {
        let is_known = failed.source_as::<Search>().is_some();
        if &*failed.error == CHAIN {
            Ok(Done(alpha.0 + u32::from(is_known)))
        } else {
            Err(&*failed.error.to_string())?
        }
    }

    #[step]
    async fn unread(&self, _item: &Item) {}
}

#[tokio::test]
async fn a_caught_failure_has_its_source_while_the_process_lives() {
    let run = Scenario::new(Catches).send(Alpha(10)).start(Begin(1)).await;
    assert_eq!(saw(&run), [format!("{CHAIN}; Some(Other)")]);
    run.assert_output(&Done(11));
}

#[tokio::test]
async fn a_caught_failure_has_only_its_text_after_a_resume() {
    let store = Arc::new(MemoryStore::default());
    let engine = || Engine::builder().workflow(Catches).store(Arc::clone(&store)).build().unwrap();
    let first = engine();
    let run = first.start_with::<Catches>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    first.shut_down(Duration::from_mins(1)).await;
    let second = engine();
    let run = second.attach::<Catches>("r").await.unwrap();
    run.send(Alpha(10)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(10));
}
