//! Runs whose workflow has changed since their journal was written: which changes block them (S41). Each pair of
//! workflows has one name; their difference is the subject of the test.

use workflow_core::errors::Incompatibility;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, Position, Record, RunQuery, StoreError, Write};
use workflow_core::table::TableDifference;
use workflow_core::{ResumeError, RunOptions};
use workflow_testkit::CrashStore;

use crate::fixtures::{Begin, Done, Item, Note};

mod pairs;

/// A copy of the store's present content, without later writes.
async fn copied(store: &CrashStore) -> CrashStore {
    let copy = CrashStore::default();
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        let records = store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
        let batch = Write { records, run: stored.run };
        copy.append(&stored.id, Position(0), batch).await.unwrap();
    }
    copy
}

async fn journal(store: &CrashStore) -> Vec<String> {
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    records.iter().map(|record| serde_json::to_string(record).unwrap()).collect()
}

/// A run that waits for its note, whose process is gone.
async fn left<W: Workflow<Output = Done>>(workflow: W) -> CrashStore {
    let store = CrashStore::default();
    let engine = Engine::builder().workflow(workflow).store(store.clone()).build().unwrap();
    let run = engine.start_with::<W>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    copied(&store).await
}

/// The differences that block the run; without any, the run continues to its end.
async fn resumed<W: Workflow<Output = Done>>(workflow: W, store: &CrashStore) -> Result<(), Incompatibility> {
    let before = journal(store).await;
    let engine = Engine::builder().workflow(workflow).store(store.clone()).build().unwrap();
    let run = match engine.attach::<W>("r").await {
        Ok(run) => run,
        Err(ResumeError::Incompatible { run, difference }) => {
            assert_eq!((run, journal(store).await), ("r".into(), before), "it is left as it was");
            assert!(engine.running().is_empty());
            return Err(difference);
        }
        Err(error) => panic!("{error}"),
    };
    run.settled().await;
    run.send(Note(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    Ok(())
}

fn told(resumed: Result<(), Incompatibility>) -> Vec<String> {
    match resumed {
        Ok(()) => vec!["it goes on".into()],
        Err(Incompatibility::Table(differences)) => {
            assert!(differences.iter().all(|difference| !difference.is_compatible()));
            differences.iter().map(ToString::to_string).collect()
        }
        Err(other) => vec![other.to_string()],
    }
}

/// The same workflow twice, the second with additions: runs can change to it, but not back.
mod grows {
    use super::*;

    pub(super) mod first {
        use super::*;

        pub(in super::super) struct Shop;

        #[workflow]
        impl Shop {
            #[step]
            async fn end(&self, _begin: &Begin, note: &Note) -> Done {
                Done(note.0)
            }
        }
    }

    pub(super) mod second {
        use super::*;

        pub(in super::super) struct Shop;

        #[workflow]
        impl Shop {
            #[step]
            async fn count(&self, begin: &Begin) -> Item {
                Item(begin.0)
            }

            #[step]
            async fn end(&self, _begin: &Begin, note: &Note) -> Done {
                Done(note.0)
            }
        }
    }
}

async fn goes_on_until_it_waits<W: Workflow<Output = Done>>(workflow: W, store: &CrashStore) {
    let engine = Engine::builder().workflow(workflow).store(store.clone()).build().unwrap();
    let run = engine.attach::<W>("r").await.unwrap();
    run.settled().await;
}

// S41
#[tokio::test]
async fn a_journal_says_by_which_table_each_part_of_it_was_written() {
    let store = left(grows::first::Shop).await;
    let first = table::<grows::first::Shop>();
    let second = table::<grows::second::Shop>();
    goes_on_until_it_waits(grows::first::Shop, &store).await;
    goes_on_until_it_waits(grows::second::Shop, &store).await;
    goes_on_until_it_waits(grows::second::Shop, &store).await;
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    let tables: Vec<Option<String>> = records
        .iter()
        .filter_map(|record| match record {
            Record::RunStarted { table, .. } => Some(Some(table.fingerprint().to_owned())),
            Record::RunResumed { table, .. } => {
                Some(table.as_ref().map(|table| table.fingerprint().to_owned()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(tables, [Some(first), None, Some(second), None]);
    // The additions have run, so there is no way back, and the latest table counts.
    let refused = resumed(grows::first::Shop, &store).await.unwrap_err();
    let gone = TableDifference::StepRemoved { step: "count".into() };
    assert!(matches!(&refused, Incompatibility::Table(all) if all.contains(&gone)), "{refused}");
    assert_eq!(told(resumed(grows::second::Shop, &store).await), ["it goes on"]);
}

fn table<W: Workflow>() -> String {
    workflow_core::table::DependencyTable::from_spec(W::TABLE).unwrap().shape().fingerprint()
}

// S41
#[tokio::test]
async fn an_ended_run_is_read_with_the_table_that_it_was_written_by() {
    let store = left(grows::second::Shop).await;
    assert_eq!(told(resumed(grows::second::Shop, &store).await), ["it goes on"]);
    let reports = async |engine: Engine| {
        let run = engine.attach_any("r").await.unwrap();
        assert_eq!(run.outcome_any().await.unwrap().name(), "Done");
        (run.report().await.unwrap().to_string(), run.explain().await.unwrap().to_string())
    };
    let engine = Engine::builder().workflow(grows::first::Shop).store(store.clone());
    let (report, explanation) = reports(engine.build().unwrap()).await;
    assert!(report.contains("count"), "{report}");
    let engine = Engine::builder().workflow(grows::second::Shop).store(store.clone());
    assert_eq!(reports(engine.build().unwrap()).await, (report, explanation));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Said(String);

/// Reports what blocks its child.
struct Calls<W>(std::marker::PhantomData<fn() -> W>);

#[workflow(name = "Calls")]
impl<W: Workflow<Output = Done>> Calls<W> {
    #[step]
    async fn call(&self, begin: &Begin, children: &Children) -> Said {
        match children.run::<W>(begin.clone()).await {
            Err(RunError::Incompatible { difference, .. }) => Said(difference.to_string()),
            other => Said(format!("{other:?}")),
        }
    }
}

fn calls<W>() -> Calls<W> {
    Calls(std::marker::PhantomData)
}

// S41
#[tokio::test(start_paused = true)]
async fn a_parent_of_an_incompatible_child_is_detached_and_resumes_with_the_right_program() {
    use grows::{first, second};

    let store = CrashStore::default();
    let engine = Engine::builder().workflow(calls::<second::Shop>()).workflow(second::Shop);
    let engine = engine.store(store.clone()).build().unwrap();
    let options = RunOptions::new().id("r");
    let run = engine.start_with::<Calls<second::Shop>>(Begin(3), options).await.unwrap();
    // Until the child has counted, and waits.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    drop(run);
    let store = copied(&store).await;
    assert_eq!(store.runs(&RunQuery::new()).await.unwrap().len(), 2);

    let engine = Engine::builder().workflow(calls::<first::Shop>()).workflow(first::Shop);
    let engine = engine.store(store.clone()).build().unwrap();
    assert_eq!(engine.resume_open_runs().await.unwrap().runs, ["r".into()]);
    let run = engine.attach::<Calls<first::Shop>>("r").await.unwrap();
    let RunError::Store { source: StoreError::Unavailable { source } } = run.outcome().await.unwrap_err()
    else {
        panic!("its step is told nothing");
    };
    assert!(source.to_string().contains("step `count` is gone"), "{source}");

    let engine = Engine::builder().workflow(calls::<first::Shop>()).store(store.clone()).build().unwrap();
    let run = engine.attach::<Calls<first::Shop>>("r").await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(
        matches!(error, RunError::Store { .. }),
        "its child is of a workflow that is not hosted: {error}"
    );

    let engine = Engine::builder().workflow(calls::<second::Shop>()).workflow(second::Shop);
    let engine = engine.store(store).build().unwrap();
    let run = engine.attach::<Calls<second::Shop>>("r").await.unwrap();
    assert_eq!(run.status(), workflow_core::RunStatus::Running);
    // With the right program both continue.
    crate::fixtures::until(async || engine.running().len() == 2).await;
}
