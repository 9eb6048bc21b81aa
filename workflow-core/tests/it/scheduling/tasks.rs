//! Where executions are polled: in their run's task, or in tasks of their own (S72). Tests look at the ids of tasks, or let
//! threads meet that block. None measures time.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task;
use workflow_core::prelude::*;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepPolicy};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunOptions, RuntimeWorkflow};

use crate::fixtures::{Begin, Done, Item, Part};

/// Starts that make steps compute for long, that let them meet, and that let them return at once.
const LONG: Begin = Begin(2);
const MEETS: Begin = Begin(1);
const SHORT: Begin = Begin(0);

/// Computes for far longer than a short poll.
fn compute() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1) {
        std::hint::spin_loop();
    }
}

/// Lets threads meet, each of which blocks.
#[derive(Debug, Clone, Default)]
struct Meeting(Arc<(Mutex<usize>, Condvar)>);

impl Meeting {
    /// Blocks until two have come. Fails the step if the other one cannot come while this one blocks.
    fn meet(&self) -> Result<(), StepError> {
        let (come, changed) = &*self.0;
        let mut come = come.lock().unwrap();
        *come += 1;
        changed.notify_all();
        let watchdog = Duration::from_mins(1);
        let (_come, waited) = changed.wait_timeout_while(come, watchdog, |come| *come < 2).unwrap();
        if waited.timed_out() { Err(StepError::permanent("nobody came")) } else { Ok(()) }
    }
}

/// The tasks in which steps were polled, in the order of their executions.
#[derive(Debug, Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Option<task::Id>>>>);

impl Tasks {
    fn note(&self) {
        self.0.lock().unwrap().push(task::try_id());
    }

    /// Whether each execution but the first was in the task of the first one, which nothing spawns.
    fn were_shared(&self) -> Vec<bool> {
        let tasks = std::mem::take(&mut *self.0.lock().unwrap());
        tasks[1..].iter().map(|task| *task == tasks[0]).collect()
    }
}

fn work(begin: &Begin, meeting: &Meeting) -> Result<(), StepError> {
    match *begin {
        LONG => compute(),
        MEETS => meeting.meet()?,
        _ => {}
    }
    Ok(())
}

/// Two steps that are ready together.
#[derive(Default)]
struct Halves(Meeting);

#[workflow]
impl Halves {
    #[step]
    async fn left(&self, begin: &Begin) -> Result<Item, StepError> {
        work(begin, &self.0).map(|()| Item(1))
    }

    #[step]
    async fn right(&self, begin: &Begin) -> Result<Part, StepError> {
        work(begin, &self.0).map(|()| Part(1))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_computed_for_long_run_in_parallel_from_then_on() {
    let engine = Engine::builder().workflow(Halves::default()).build().unwrap();
    for start in [LONG, MEETS] {
        let run = engine.start::<Halves>(start).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
    }
}

/// A step of the run's task, and one that computes in each way.
struct Chain {
    tasks: Tasks,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    AtOnce,
    AfterAnAwait,
    BeforeManyAwaits,
    InASecondAttempt,
}

#[workflow]
impl Chain {
    #[step(spawn = false)]
    async fn first(&self, begin: &Begin) -> Item {
        self.tasks.note();
        Item(begin.0)
    }

    #[step(retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::ZERO)))]
    async fn second(&self, item: &Item, info: RunInfo) -> Result<Part, StepError> {
        if info.attempt() == 1 {
            self.tasks.note();
        }
        let is_long = item.0 == LONG.0;
        match self.how {
            How::InASecondAttempt if info.attempt() == 1 => return Err(StepError::transient("not yet")),
            How::AfterAnAwait => task::yield_now().await,
            _ => {}
        }
        if is_long {
            compute();
        }
        if matches!(self.how, How::BeforeManyAwaits) {
            for _ in 0..50 {
                task::yield_now().await;
            }
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

/// An engine of its own, which knows nothing yet.
struct Learning(Engine, Tasks);

impl Learning {
    fn new(how: How) -> Self {
        let tasks = Tasks::default();
        let engine = Engine::builder().workflow(Chain { tasks: tasks.clone(), how }).build().unwrap();
        Self(engine, tasks)
    }

    /// Whether `second` was in the run's task, as `first` is.
    async fn is_in_the_run(&self, start: Begin) -> bool {
        self.0.start::<Chain>(start).await.unwrap().outcome().await.unwrap();
        self.1.were_shared()[0]
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_computed_in_any_poll_has_a_task_of_its_own_in_the_next_run() {
    for how in [How::AtOnce, How::AfterAnAwait, How::BeforeManyAwaits, How::InASecondAttempt] {
        let engine = Learning::new(how);
        assert!(engine.is_in_the_run(LONG).await, "nothing is known, and nothing is beside it");
        assert!(!engine.is_in_the_run(SHORT).await);
        assert!(Learning::new(how).is_in_the_run(SHORT).await, "another engine does not know");
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_executions_alternate_keeps_tasks_of_its_own() {
    let engine = Learning::new(How::AtOnce);
    engine.is_in_the_run(LONG).await;
    for _ in 0..10 {
        assert!(!engine.is_in_the_run(SHORT).await);
        assert!(!engine.is_in_the_run(LONG).await);
    }
}

// S72
#[tokio::test]
async fn on_one_thread_a_step_that_computes_stays_in_its_run() {
    let engine = Learning::new(How::AtOnce);
    for _ in 0..5 {
        assert!(engine.is_in_the_run(LONG).await);
    }
}

struct OneLine(Tasks);

#[workflow]
impl OneLine {
    #[step(spawn = false)]
    async fn first(&self, begin: &Begin) -> Item {
        self.0.note();
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        self.0.note();
        compute();
        Done(item.0)
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_one_type_without_an_engine_learn_from_each_other() {
    let tasks = Tasks::default();
    OneLine(tasks.clone()).run(SHORT).await.unwrap();
    assert_eq!(tasks.were_shared(), [true]);
    OneLine(tasks.clone()).run(SHORT).await.unwrap();
    assert_eq!(tasks.were_shared(), [false]);
}

struct Chosen(Tasks);

#[workflow]
impl Chosen {
    #[step(spawn = false)]
    async fn first(&self, begin: &Begin) -> Item {
        self.0.note();
        compute();
        Item(begin.0)
    }

    #[step(spawn = false)]
    async fn stays(&self, _item: &Item) -> Part {
        self.0.note();
        compute();
        Part(0)
    }

    #[step(spawn = true)]
    async fn spawned(&self, part: &Part) -> Saw {
        self.0.note();
        Saw(part.0)
    }

    #[step(spawn)]
    async fn end(&self, saw: &Saw) -> Done {
        self.0.note();
        Done(saw.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Saw(u32);

/// Runs it often enough to learn anything.
async fn choose() {
    let tasks = Tasks::default();
    let engine = Engine::builder().workflow(Chosen(tasks.clone())).build().unwrap();
    for _ in 0..5 {
        engine.start::<Chosen>(SHORT).await.unwrap().outcome().await.unwrap();
        assert_eq!(tasks.were_shared(), [true, false, false]);
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_choice_of_a_step_counts_and_not_what_the_engine_learned() {
    choose().await;
}

// S72
#[tokio::test]
async fn the_choice_of_a_step_counts_on_one_thread_too() {
    choose().await;
}

/// Steps that are ready together, in branches and beside each other, with `spawn = false`.
struct Together(Tasks);

#[workflow]
impl Together {
    #[step(spawn = false)]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        self.0.note();
        (0..8).map(Item).collect()
    }

    #[step(spawn = false)]
    async fn branch(&self, item: &Item) -> Part {
        self.0.note();
        compute();
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S72
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_that_stay_in_their_run_share_its_task_although_they_are_ready_together() {
    let tasks = Tasks::default();
    let engine = Engine::builder().workflow(Together(tasks.clone())).build().unwrap();
    for _ in 0..3 {
        let run = engine.start::<Together>(LONG).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(28));
        assert_eq!(tasks.were_shared(), [true; 8]);
    }
}

// S72, S57
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_built_at_run_time_has_the_same_choice() {
    let step = |name, takes, spawn| {
        let step = StepDef::new(name).input(InputDef::one(takes));
        step.policy(StepPolicy::DEFAULT.spawn(spawn))
    };
    let table = DependencyTable::builder("chosen")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Item", Roles::NONE))
        .event(EventDef::new("Part", Roles::NONE))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(step("first", "Begin", false).output(OutputDef::event("Item")))
        .step(step("stays", "Item", false).output(OutputDef::event("Part")))
        .step(step("spawned", "Part", true).output(OutputDef::event("Done")));
    let tasks = Tasks::default();
    let noted = tasks.clone();
    let steps = move |mut call: StepCall| {
        let noted = noted.clone();
        async move {
            noted.note();
            compute();
            let next = match call.step() {
                "first" => "Item",
                "stays" => "Part",
                _ => "Done",
            };
            call.emit(next, json!(0))?;
            call.commit(())
        }
    };
    let workflow = RuntimeWorkflow::new(table.build().unwrap(), steps);
    let engine = Engine::builder().workflows([workflow]).build().unwrap();
    for _ in 0..3 {
        let run = engine.start_json("chosen", "Begin", json!(0), RunOptions::new()).await.unwrap();
        run.outcome_any().await.unwrap();
        assert_eq!(tasks.were_shared(), [true, false]);
    }
}
