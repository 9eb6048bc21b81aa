//! Idempotency keys of runs whose workflow changes under them (S39, S84): a service that knew the key of an effect before
//! the change knows it after.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::errors::Incompatibility;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, Write};
use workflow_core::table::{RecordedTable, TableDifference};
use workflow_core::{RedriveError, ResumeError, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};

/// A store, and a bank that is asked under keys. Its answers come once it is open.
#[derive(Debug, Clone, Default)]
struct World {
    store: Arc<MemoryStore>,
    keys: Arc<Mutex<Vec<String>>>,
    /// The notes of attempts.
    notes: Arc<Mutex<Vec<bool>>>,
    is_open: bool,
}

impl World {
    /// The same bank, which answers now.
    fn open(&self) -> Self {
        Self { is_open: true, ..self.clone() }
    }

    async fn charge(&self, info: &RunInfo) {
        self.keys.lock().unwrap().push(info.idempotency_key());
        if !self.is_open {
            std::future::pending::<()>().await;
        }
    }

    /// The keys since the last call.
    fn keys(&self) -> Vec<String> {
        std::mem::take(&mut *self.keys.lock().unwrap())
    }

    fn note(&self, may_have_begun: bool) {
        self.notes.lock().unwrap().push(may_have_begun);
    }

    /// The notes since the last call.
    fn noted(&self) -> Vec<bool> {
        std::mem::take(&mut *self.notes.lock().unwrap())
    }

    fn engine<W: Workflow>(&self, workflow: W) -> Engine {
        let engine = Engine::builder().workflow(workflow).store(Arc::clone(&self.store));
        engine.clock(VirtualClock::new()).build().unwrap()
    }

    /// A process that begins the run or continues it, does this, and is killed.
    fn killed<W: Workflow, F: Future<Output = ()>>(&self, workflow: W, work: impl FnOnce(Engine) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        let engine = runtime.block_on(async {
            let engine = self.engine(workflow);
            if self.store.runs(&RunQuery::new().run("r")).await.unwrap().is_empty() {
                engine.start_with::<W>(Begin(1), RunOptions::new().id("r")).await.unwrap();
            }
            work(engine.clone()).await;
            engine
        });
        drop(runtime);
        drop(engine);
    }

    /// A process that has the run until nothing moves, and is killed.
    fn hangs<W: Workflow>(&self, workflow: W) {
        self.killed(workflow, async |engine| {
            engine.attach::<W>("r").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
    }

    /// A process that ends the run.
    fn ends<W: Workflow<Output = Done>>(&self, workflow: W) {
        self.killed(workflow, async |engine| {
            let run = engine.attach::<W>("r").await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(1));
        });
    }

    /// The differences for which the run is refused.
    fn refusal<W: Workflow>(&self, workflow: W) -> Vec<TableDifference> {
        let refused = Mutex::new(Vec::new());
        self.killed(workflow, async |engine| {
            let error = engine.attach::<W>("r").await.unwrap_err();
            let ResumeError::Incompatible { difference: Incompatibility::Table(found), .. } = error else {
                panic!("{error}");
            };
            *refused.lock().unwrap() = found;
        });
        refused.into_inner().unwrap()
    }

    /// Changes the journal of the run.
    fn rewrite(&mut self, change: impl FnOnce(&mut Vec<Record>)) {
        let rewritten = MemoryStore::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut records = self.store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
            let run = self.store.runs(&RunQuery::new().run("r")).await.unwrap().remove(0).run;
            change(&mut records);
            rewritten.append(&"r".into(), Position(0), Write { records, run }).await.unwrap();
        });
        self.store = Arc::new(rewritten);
    }
}

fn rekeyed(step: &str) -> TableDifference {
    TableDifference::KeysChanged { step: step.into() }
}

/// Workflows of one name, each with a step `pay`.
macro_rules! versions {
    ($($version:ident { $($steps:tt)* })*) => {
        $(mod $version {
            use super::*;

            pub(super) struct Shop(pub(super) World);

            #[workflow]
            impl Shop {
                $($steps)*
            }
        })*
    };
}

mod begun;

versions! {
    first {
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step] async fn pay(&self, _begin: &Begin, item: &Item, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
    }
    // Pays after an audit.
    audited {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step] async fn pay(&self, _part: &Part, _begin: &Begin, item: &Item, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
    }
    // Audits twice, and pays after the second one too.
    audited_again {
        #[step] async fn audit(&self, begin: &Begin) -> (Part, Option<Note>) { (Part(begin.0), None) }
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step(reruns)]
        async fn pay(&self, _note: Option<&Note>, item: &Item, _begin: &Begin, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
    }
    reordered {
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step] async fn pay(&self, info: &RunInfo, item: &Item, _items: Passive<List<Item>>, _begin: &Begin) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
    }
    shorter {
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step] async fn pay(&self, item: &Item, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
    }
    listed {
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step(reruns)] async fn pay(&self, _begin: &Begin, items: List<Item>, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(items.iter().map(|item| item.0).sum())
        }
    }
    named {
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step(key = payment)] async fn pay(&self, _begin: &Begin, item: &Item, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
        fn payment(item: &Item) -> String { format!("item-{}", item.0) }
    }
    named_and_audited {
        #[step] async fn audit(&self, begin: &Begin) -> Part { Part(begin.0) }
        #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
        #[step(key = payment)] async fn pay(&self, item: &Item, _part: &Part, info: &RunInfo) -> Done {
            self.0.charge(info).await;
            Done(item.0)
        }
        fn payment(item: &Item) -> String { format!("item-{}", item.0) }
    }
}

// S39
#[test]
fn a_step_that_takes_more_now_pays_under_the_key_of_the_killed_process() {
    let world = World::default();
    world.hangs(first::Shop(world.clone()));
    assert_eq!(world.keys(), ["r/0/pay/1.2"]);
    world.hangs(audited::Shop(world.clone()));
    assert_eq!(world.keys(), ["r/0/pay/1.2"], "the audit is no part of it");
    world.hangs(audited_again::Shop(world.clone()));
    world.ends(audited_again::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/1.2", "r/0/pay/1.2"]);
}

// S39
#[test]
fn a_run_that_began_with_the_input_has_it_in_its_keys() {
    let world = World::default();
    world.hangs(audited::Shop(world.clone()));
    world.hangs(audited_again::Shop(world.clone()));
    world.ends(audited_again::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/2.1.3"; 3]);
}

// S39, S58
#[test]
fn parameters_in_another_order_and_passive_ones_change_no_key() {
    let world = World::default();
    world.hangs(first::Shop(world.clone()));
    world.hangs(reordered::Shop(world.clone()));
    world.ends(first::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/1.2"; 3]);
    assert!(
        first::Shop::shape()
            .differences(&reordered::Shop::shape())
            .iter()
            .all(TableDifference::is_compatible)
    );
}

/// Pays for an item, and once more for each note. A run of it waits then.
mod rerun {
    use super::*;

    versions! {
        first {
            #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
            #[step] async fn pay(&self, _item: &Item, info: &RunInfo) { self.0.charge(info).await; }
            #[step] async fn end(&self, _part: &Part) -> Done { Done(1) }
            #[step] async fn note(&self, note: &Note) -> Option<Part> { (note.0 == 0).then_some(Part(1)) }
        }
        second {
            #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
            #[step(reruns)]
            async fn pay(&self, _item: &Item, _note: Option<&Note>, info: &RunInfo) { self.0.charge(info).await; }
            #[step] async fn end(&self, _part: &Part) -> Done { Done(1) }
            #[step] async fn note(&self, note: &Note) -> Option<Part> { (note.0 == 0).then_some(Part(1)) }
        }
        third {
            #[step] async fn check(&self, begin: &Begin) -> Item { Item(begin.0) }
            #[step(reruns)]
            async fn pay(&self, _part: Option<&Part>, _item: &Item, _note: Option<&Note>, info: &RunInfo) {
                self.0.charge(info).await;
            }
            #[step] async fn end(&self, _part: &Part) -> Done { Done(1) }
            #[step] async fn note(&self, note: &Note) -> Option<Part> { (note.0 == 0).then_some(Part(1)) }
        }
    }

    /// The keys since the last call. Executions under which two processes ended take turns.
    fn sorted(world: &World) -> Vec<String> {
        let mut keys = world.keys();
        keys.sort_unstable();
        keys
    }

    // S39
    #[test]
    fn executions_that_differ_in_added_inputs_alone_have_keys_of_their_own_which_stay() {
        let world = World::default();
        world.hangs(first::Shop(world.clone()));
        assert_eq!(world.keys(), ["r/0/pay/2"]);
        world.killed(second::Shop(world.clone()), async |engine| {
            let run = engine.attach::<second::Shop>("r").await.unwrap();
            sleep(Duration::from_secs(1)).await;
            for note in [7, 8] {
                run.send(Note(note)).await.unwrap();
                sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(sorted(&world), ["r/0/pay/2", "r/0/pay/2+3", "r/0/pay/2+4"]);
        world.hangs(third::Shop(world.clone()));
        assert_eq!(sorted(&world), ["r/0/pay/2", "r/0/pay/2+3", "r/0/pay/2+4"]);
        // The paid event stays in the log, and the next execution still differs from it.
        world.hangs(second::Shop(world.open()));
        assert_eq!(sorted(&world), ["r/0/pay/2", "r/0/pay/2+3", "r/0/pay/2+4"]);
        world.killed(second::Shop(world.open()), async |engine| {
            let run = engine.attach::<second::Shop>("r").await.unwrap();
            run.send(Note(9)).await.unwrap();
            sleep(Duration::from_secs(1)).await;
            run.send(Note(0)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(1));
        });
        assert!(world.keys().contains(&"r/0/pay/2+5".to_owned()));
    }
}

// S39
#[test]
fn a_run_that_an_earlier_release_resumed_has_the_keys_that_it_gave() {
    let mut world = World::default();
    world.hangs(first::Shop(world.clone()));
    world.hangs(audited::Shop(world.clone()));
    let _ = world.keys();
    let mut marked = 0;
    world.rewrite(|records| {
        for record in records {
            if let Record::RunResumed { table: Some(_), stable_keys, .. } = record {
                marked += u32::from(std::mem::take(stable_keys));
            }
        }
    });
    assert_eq!(marked, 1, "the journal says whose keys these are");
    world.hangs(audited::Shop(world.clone()));
    assert_eq!(world.keys(), ["r/0/pay/3.1.2"]);
    world.ends(audited_again::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/3.1.2"], "from there on they stay");
}

// S39
#[test]
fn a_table_that_leaves_the_keys_alone_is_journaled_as_before() {
    let store = {
        let world = World::default();
        world.hangs(named::Shop(world.clone()));
        world.hangs(named_and_audited::Shop(world.clone()));
        world.store
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let records = runtime.block_on(store.read(&"r".into(), Position(0), usize::MAX)).unwrap();
    let resumed = records.iter().filter(|record| matches!(record, Record::RunResumed { table: Some(_), .. }));
    let lines: Vec<String> = resumed.map(|record| serde_json::to_string(record).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    assert!(!lines[0].contains("stable_keys"), "{lines:?}");
}

// S39, S41
#[test]
fn a_change_of_the_keys_is_told_before_the_run_resumes() {
    for (is, as_well) in [(shorter::Shop::shape(), 2), (listed::Shop::shape(), 2), (named::Shop::shape(), 1)]
    {
        let differences = first::Shop::shape().differences(&is);
        assert!(differences.contains(&rekeyed("pay")), "{differences:?}");
        assert_eq!(differences.len(), as_well);
        assert!(differences.iter().all(|difference| !difference.is_compatible()));
    }
    assert_eq!(rekeyed("pay").to_string(), "executions of step `pay` have other idempotency keys now");

    let world = World::default();
    world.hangs(first::Shop(world.clone()));
    // The journal has nothing of the execution, but it may have begun.
    assert_eq!(world.refusal(shorter::Shop(world.open())), [rekeyed("pay")]);
    assert_eq!(world.refusal(listed::Shop(world.open())), [rekeyed("pay")]);
    assert_eq!(world.refusal(named::Shop(world.open())), [rekeyed("pay")]);
    world.ends(first::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/1.2"; 2]);
}

// S39, S41
#[test]
fn an_execution_that_cannot_have_begun_does_not_keep_the_keys() {
    let mut world = World::default();
    world.hangs(first::Shop(world.clone()));
    let _ = world.keys();
    world.rewrite(|records| records.truncate(2));
    // Only `check` may have begun.
    world.ends(shorter::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/2"]);
}

// S84
#[test]
fn a_key_of_the_events_own_fields_stays_whatever_the_step_takes() {
    let world = World::default();
    world.hangs(named::Shop(world.clone()));
    world.hangs(named_and_audited::Shop(world.clone()));
    world.ends(named_and_audited::Shop(world.open()));
    assert_eq!(world.keys(), ["r/0/pay/=item-1"; 3]);
    let differences = named::Shop::shape().differences(&named_and_audited::Shop::shape());
    assert!(!differences.contains(&rekeyed("pay")), "{differences:?}");
}

// S84
#[test]
fn the_shape_of_a_table_has_the_method_of_a_key() {
    let shape = named::Shop::shape();
    assert_eq!(shape.step("pay").unwrap().key.as_deref(), Some("payment"));
    assert_eq!(shape.step("check").unwrap().key, None);
    let read = RecordedTable::new(&shape).shape().unwrap();
    assert_eq!(read, shape);
    let table = workflow_core::table::DependencyTable::from_shape(&shape).unwrap();
    assert_eq!((table.shape(), table.steps()[1].key()), (shape, Some("payment")));
}

/// Fails to pay at first.
mod failing {
    use super::*;

    versions! {
        first {
            #[step] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
                self.0.keys.lock().unwrap().push(info.idempotency_key());
                if self.0.is_open { Ok(Done(begin.0)) } else { Err(StepError::rejected("closed")) }
            }
        }
        second {
            #[step(reruns)]
            async fn pay(&self, _note: Option<&Note>, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
                self.0.keys.lock().unwrap().push(info.idempotency_key());
                if self.0.is_open { Ok(Done(begin.0)) } else { Err(StepError::rejected("closed")) }
            }
        }
        named {
            #[step(key = payment)] async fn pay(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
                self.0.charge(info).await;
                Ok(Done(begin.0))
            }
            fn payment(begin: &Begin) -> u32 { begin.0 }
        }
    }

    // S39
    #[test]
    fn a_redrive_with_a_changed_table_has_the_same_key_or_is_refused() {
        let world = World::default();
        world.killed(first::Shop(world.clone()), async |engine| {
            engine.attach::<first::Shop>("r").await.unwrap().outcome().await.unwrap_err();
        });
        world.killed(named::Shop(world.open()), async |engine| {
            let refused = engine.redrive::<named::Shop>("r").await.unwrap_err();
            let RedriveError::Resume(ResumeError::Incompatible { difference, .. }) = &refused else {
                panic!("{refused}");
            };
            assert_eq!(difference.to_string().matches("other idempotency keys").count(), 1, "{difference}");
        });
        world.killed(second::Shop(world.open()), async |engine| {
            let run = engine.redrive::<second::Shop>("r").await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(1));
        });
        assert_eq!(world.keys(), ["r/0/pay/1"; 2]);
    }
}

/// Pays in branches.
mod branches {
    use super::*;

    versions! {
        first {
            #[step] async fn open(&self, _begin: &Begin) -> FanOut<Item> { [1, 2].map(Item).into_iter().collect() }
            #[step] async fn pay(&self, item: &Item, info: &RunInfo) -> Part {
                self.0.charge(info).await;
                Part(item.0)
            }
            #[step] async fn end(&self, parts: &Gather<Part>) -> Done { Done(u32::from(parts.len() == 2)) }
        }
        second {
            #[step] async fn open(&self, _begin: &Begin) -> FanOut<Item> { [1, 2].map(Item).into_iter().collect() }
            #[step] async fn audit(&self, item: &Item) -> Note { Note(item.0) }
            #[step] async fn pay(&self, _begin: &Begin, item: &Item, _note: &Note, info: &RunInfo) -> Part {
                self.0.charge(info).await;
                Part(item.0)
            }
            #[step] async fn end(&self, parts: &Gather<Part>) -> Done { Done(u32::from(parts.len() == 2)) }
        }
    }

    // S39, S44
    #[test]
    fn each_branch_has_its_own_key_which_stays() {
        let world = World::default();
        world.hangs(first::Shop(world.clone()));
        let keys = world.keys();
        assert_eq!(keys, ["r/1/pay/2", "r/2/pay/3"]);
        world.ends(second::Shop(world.open()));
        let mut after = world.keys();
        after.sort_unstable();
        assert_eq!(after, keys);
    }
}

/// Starts a child that waits.
mod families {
    use super::*;
    use crate::fixtures::Waits;

    versions! {
        first {
            #[step] async fn call(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
                assert!(!self.0.is_open);
                Ok(children.run::<Waits>(begin.clone()).await?)
            }
        }
        second {
            #[step] async fn audit(&self, begin: &Begin) -> Item { Item(begin.0) }
            #[step(reruns)]
            async fn call(&self, _part: Option<&Part>, begin: &Begin, children: &Children) -> Result<Done, StepError> {
                assert!(!self.0.is_open);
                Ok(children.run::<Waits>(begin.clone()).await?)
            }
            #[step] async fn spare(&self, _item: &Item, note: &Note) -> Part { Part(note.0) }
        }
    }

    // S39
    #[test]
    fn an_execution_finds_its_child_after_the_change() {
        let world = World::default();
        let engine = |world: &World| {
            let engine = Engine::builder().workflow(Waits).store(Arc::clone(&world.store));
            engine.clock(VirtualClock::new())
        };
        let runtime = || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            { runtime }.enable_all().start_paused(true).build().unwrap()
        };
        let killed = runtime();
        killed.block_on(async {
            let engine = engine(&world).workflow(first::Shop(world.clone())).build().unwrap();
            engine.start_with::<first::Shop>(Begin(1), RunOptions::new().id("r")).await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
        drop(killed);
        runtime().block_on(async {
            let engine = engine(&world).workflow(second::Shop(world.clone())).build().unwrap();
            let run = engine.attach::<second::Shop>("r").await.unwrap();
            sleep(Duration::from_secs(1)).await;
            let stored = world.store.runs(&RunQuery::new()).await.unwrap();
            let children: Vec<_> = stored.iter().filter(|run| run.run.parent.is_some()).collect();
            assert_eq!(children.len(), 1, "no second one was started");
            assert_ne!(children[0].run.status, RunStatus::Cancelled);
            let child = engine.attach::<Waits>(children[0].id.clone()).await.unwrap();
            child.send(Note(0)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(1));
        });
    }
}
