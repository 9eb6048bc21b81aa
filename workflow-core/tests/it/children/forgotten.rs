//! Parents and children refer to each other, and are freed together.

use std::sync::{Arc, Weak};

use workflow_core::prelude::*;

use crate::fixtures::{Begin, Close, Done, until};

/// Shows that its log is still alive.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Kept(#[serde(skip)] Arc<()>);

struct Keeping(Arc<()>);

#[workflow]
impl Keeping {
    #[step]
    async fn keep(&self, _begin: &Begin) -> Kept {
        Kept(Arc::clone(&self.0))
    }
}

struct Knowing;

#[workflow]
impl Knowing {
    #[step]
    async fn know(&self, begin: &Begin, children: &Children) -> Result<(), StepError> {
        children.run::<Keeping>(begin.clone()).await?;
        children.start::<Keeping>(begin.clone()).await?.outcome().await?;
        Ok(())
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

fn is_kept(log: &Weak<()>) -> bool {
    log.strong_count() > 0
}

#[tokio::test]
async fn the_logs_of_children_are_kept_for_the_reports_of_parents_and_no_longer() {
    let mark = Arc::new(());
    let kept = Arc::downgrade(&mark);
    let engine = Engine::builder().workflow(Knowing).workflow(Keeping(mark)).build().unwrap();
    let run = engine.start::<Knowing>(Begin(0)).await.unwrap();
    run.settled().await;
    // The host holds the mark, and so does the log of the child that was awaited.
    assert_eq!(kept.strong_count(), 2);
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    drop(engine);
    assert!(is_kept(&kept));
    drop(run);
    until(|| !is_kept(&kept)).await;
}

struct Late;

#[workflow]
impl Late {
    #[step]
    async fn begin(&self, begin: &Begin, children: Children) -> Done {
        tokio::spawn(async move { children.start::<Keeping>(Begin(0)).await });
        Done(begin.0)
    }
}

#[tokio::test]
async fn an_engine_is_not_kept_by_runs_that_have_ended() {
    let mark = Arc::new(());
    let kept = Arc::downgrade(&mark);
    let engine = Engine::builder().workflow(Late).workflow(Keeping(mark)).build().unwrap();
    let run = engine.start::<Late>(Begin(0)).await.unwrap();
    run.outcome().await.unwrap();
    drop(engine);
    until(|| !is_kept(&kept)).await;
    assert!(run.report().await.unwrap().children.is_empty());
}
