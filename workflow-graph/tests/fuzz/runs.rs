//! What is done with a text: it is read, and if it can be, drawn, bound and run. Then another engine resumes the run.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{RunOptions, RunStatus, RuntimeWorkflow};
use workflow_graph::{
    CheckError, Document, Format, GraphError, GraphOptions, GraphRun, Registry, ScriptedExecutor,
};
use workflow_testkit::VirtualClock;

/// The limit of a run, in virtual time.
const LIFE: Duration = Duration::from_hours(24 * 400);

/// The most executions of a run: a document may allow more visits.
const EXECUTIONS: u64 = 400;

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The panics of the work on this thread, including those that become failures of steps.
fn panics_of(work: impl FnOnce()) -> Vec<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
    PANICS.take();
    work();
    PANICS.take()
}

fn check(error: &CheckError) {
    assert!(!error.problems.is_empty());
    for problem in &error.problems {
        assert!(problem.location.line > 0 && problem.location.column > 0, "{problem}");
        assert!(!problem.message.is_empty() && !problem.remedy.is_empty(), "{problem:?}");
    }
    drop(serde_json::to_string(&error.problems).unwrap());
    drop(error.to_string());
}

pub(crate) fn read(text: &str, format: Option<Format>) -> Option<Document> {
    let read = match format {
        Some(format) => Document::parse_as(text, "fuzz", format),
        None => Document::parse(text, "fuzz"),
    };
    let document = read.inspect_err(check).ok()?;
    let drawing = document.draw();
    drop((drawing.to_mermaid(), drawing.to_dot(), drawing.to_json()));
    drop((document.metadata(), format!("{:?}", document.warnings())));
    Some(document)
}

/// Reads a text, and runs it with the input and the script of a case. Returns whether there was a run.
pub(crate) fn try_text(text: &str, format: Option<Format>, case: &Value) -> bool {
    let Some(document) = read(text, format) else { return false };
    let of_case = |key: &str| case.get(key).cloned().unwrap_or(json!({}));
    let script = of_case("script");
    let script = ScriptedExecutor::from_json(&script).unwrap();
    let registry = Registry::new().script(script.clone());
    let bind = || document.bind(&registry).inspect_err(check).ok();
    let (Some(first), Some(second)) = (bind(), bind()) else { return false };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let mut is_run = false;
    let panics =
        panics_of(|| is_run = runtime.block_on(run(&document, [first, second], &script, of_case("input"))));
    assert!(panics.is_empty(), "{panics:?}\n{text}");
    is_run
}

fn hosting(workflows: Vec<RuntimeWorkflow>, store: &Arc<MemoryStore>) -> Engine {
    let engine = Engine::builder().workflows(workflows).clock(VirtualClock::new());
    let engine = engine.max_executions_per_run(EXECUTIONS);
    engine.store(store.clone()).build().unwrap()
}

async fn run(
    document: &Document,
    [first, second]: [Vec<RuntimeWorkflow>; 2],
    script: &ScriptedExecutor,
    input: Value,
) -> bool {
    let store = Arc::new(MemoryStore::default());
    let engine = hosting(first, &store);
    let options = GraphOptions::new().run(RunOptions::new().timeout(LIFE / 2));
    let run = match GraphRun::start_with(&engine, document.name(), input, options).await {
        Ok(run) => run,
        Err(GraphError::Unfit { .. }) => return false,
        Err(error) => panic!("{error}"),
    };
    let played = timeout(LIFE, run.play(script)).await;
    let status = match played {
        Ok(Ok(status)) => status,
        // The script's answer does not fit.
        Ok(Err(GraphError::UnfitAnswer { .. })) => RunStatus::Waiting,
        Ok(Err(error)) => panic!("{error}"),
        Err(_) => RunStatus::Running,
    };
    let ended = timeout(LIFE, run.outcome()).await;
    match &ended {
        Ok(Err(error @ GraphError::Failed(_))) => drop(error.to_string()),
        Ok(Ok(result)) => drop(serde_json::to_string(result).unwrap()),
        Ok(Err(error)) => panic!("{error}"),
        Err(_) => assert!(!status.is_ended()),
    }
    let shown = seen(&run).await;
    engine.shut_down(Duration::from_mins(1)).await;

    let engine = hosting(second, &store);
    let resumed = GraphRun::attach(&engine, run.id().clone()).await.unwrap();
    if ended.is_ok() {
        assert_eq!(seen(&resumed).await, shown);
    }
    engine.cancel_all("the engine is shutting down", LIFE).await;
    true
}

/// The run as its handle shows it.
async fn seen(run: &GraphRun) -> String {
    let explanation = run.explain().await.unwrap();
    drop(serde_json::to_string(&explanation).unwrap());
    let trace = serde_json::to_string(&run.trace().await.unwrap()).unwrap();
    format!("{trace}\n{explanation}\n{}", run.draw().await.unwrap().to_mermaid())
}
