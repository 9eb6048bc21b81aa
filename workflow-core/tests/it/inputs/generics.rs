//! Input to the macros besides the plain form: generics, fields, descriptions, other attributes, and another path to
//! the library.

use std::fmt;
use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::table::DependencyTable;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Part};

/// The model that an agent asks.
trait Model: Send + Sync + 'static {
    fn answer(&self, question: u32) -> impl Future<Output = Result<u32, ModelError>> + Send;
}

#[derive(Debug)]
struct ModelError;

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the model is gone")
    }
}

impl std::error::Error for ModelError {}

struct Doubles;

impl Model for Doubles {
    async fn answer(&self, question: u32) -> Result<u32, ModelError> {
        tokio::task::yield_now().await;
        Ok(question * 2)
    }
}

struct Fails;

impl Model for Fails {
    async fn answer(&self, _: u32) -> Result<u32, ModelError> {
        Err(ModelError)
    }
}

struct Agent<M> {
    model: Arc<M>,
    offset: Arc<u32>,
}

#[workflow]
impl<M: Model> Agent<M> {
    #[step]
    async fn ask(&self, begin: &Begin) -> Result<Item, ModelError> {
        Ok(Item(self.model.answer(begin.0).await?))
    }

    #[step(precondition = plausible)]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0 + *self.offset)
    }

    #[precondition]
    fn plausible(&self, item: &Item) -> bool {
        item.0 >= *self.offset
    }
}

fn agent<M>(model: M) -> Agent<M> {
    Agent { model: Arc::new(model), offset: Arc::new(1) }
}

// S22
#[tokio::test]
async fn a_workflow_may_be_generic_over_what_it_depends_on() {
    assert_eq!(agent(Doubles).run(Begin(4)).await.unwrap(), Done(9));
    let error = agent(Fails).run(Begin(4)).await.unwrap_err();
    assert!(error.to_string().contains("the model is gone"), "{error}");
}

// S22
#[tokio::test]
async fn the_fields_of_a_workflow_are_dropped_when_its_run_is_over() {
    let offset = Arc::new(1);
    let workflow = Agent { model: Arc::new(Doubles), offset: Arc::clone(&offset) };
    workflow.run(Begin(1)).await.unwrap();
    assert_eq!(Arc::strong_count(&offset), 1);
}

struct Batches<T, const N: usize>(Arc<T>);

#[workflow(name = "batches")]
impl<T, const N: usize> Batches<T, N>
where
    T: Fn(u32) -> u32 + Send + Sync + 'static,
{
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, N>) -> Done {
        Done(items.iter().map(|item| (self.0)(item.0)).sum())
    }
}

#[tokio::test]
async fn a_workflow_may_be_generic_over_a_number_and_a_closure() {
    let three: Batches<_, 3> = Batches(Arc::new(|number| number * 10));
    assert_eq!(three.run(Begin(5)).await.unwrap(), Done(30));
    let two: Batches<_, 2> = Batches(Arc::new(|number| number + 1));
    assert_eq!(two.run(Begin(5)).await.unwrap(), Done(3));
}

/// Answers what is asked.
///
/// In a second paragraph.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Wrapped<T>(T);

/// An event with every kind of bound and parameter.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external, stop)]
#[serde(bound = "")]
struct Bounded<T: Clone + Serialize + serde::de::DeserializeOwned + Send + Sync + 'static, const N: usize>
where
    T: fmt::Debug,
{
    value: T,
}

/// Asks for a value of any type.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = T)]
struct AskFor<T> {
    #[serde(skip)]
    asked: std::marker::PhantomData<T>,
}

struct GenericEvents;

/// Wraps a number.
///
/// And takes it out again.
#[workflow]
impl GenericEvents {
    /// Puts the number in.
    #[step]
    async fn wrap(&self, begin: &Begin) -> Wrapped<u32> {
        Wrapped(begin.0)
    }

    #[step]
    async fn end(&self, wrapped: &Wrapped<u32>, by_value: Wrapped<u32>) -> Done {
        Done(wrapped.0 + by_value.0)
    }
}

#[tokio::test]
async fn an_event_may_be_generic() {
    assert_eq!(GenericEvents.run(Begin(2)).await.unwrap(), Done(4));
}

struct GenericRequests;

#[workflow]
impl GenericRequests {
    #[step]
    async fn ask(&self, _begin: &Begin) -> AskFor<u32> {
        AskFor { asked: std::marker::PhantomData }
    }

    #[step]
    async fn end(&self, reply: &Reply<AskFor<u32>>) -> Bounded<u32, 2> {
        Bounded { value: **reply }
    }
}

#[tokio::test]
async fn a_request_and_a_stop_event_may_be_generic() {
    let engine = Engine::builder().workflow(GenericRequests).build().unwrap();
    let run = engine.start::<GenericRequests>(Begin(1)).await.unwrap();
    run.settled().await;
    let request = run.requests().await.unwrap()[0].id::<AskFor<u32>>().unwrap();
    run.reply(request, 7).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().value, 7);
}

#[test]
fn doc_comments_are_the_descriptions_of_a_table() {
    let table = DependencyTable::from_spec(GenericEvents::TABLE).unwrap();
    assert_eq!(table.description(), "Wraps a number.\n\nAnd takes it out again.");
    assert_eq!(table.steps()[0].description(), "Puts the number in.");
    assert_eq!(table.steps()[1].description(), "");
}

#[test]
fn a_table_says_how_its_steps_are_connected() {
    let table = DependencyTable::from_spec(Agent::<Doubles>::TABLE).unwrap();
    let names: Vec<&str> = table.steps().iter().map(workflow_core::table::StepRow::name).collect();
    assert_eq!((table.name(), &names[..]), ("Agent", &["ask", "end"][..]));
    assert_eq!(table.steps()[1].precondition(), Some("plausible"));
    let item = table.event_named("Item").unwrap();
    assert_eq!(table.steps()[0].outputs()[0].event(), item);
    assert_eq!(table.steps()[1].inputs()[0].events(), [item]);
}

struct Attributed;

#[workflow]
impl Attributed {
    const OFFSET: u32 = 1;

    /// A method that is no step stays what it is.
    fn offset(number: u32) -> u32 {
        number + Self::OFFSET
    }

    #[tracing::instrument(skip_all)]
    #[step(name = "first-step")]
    #[doc(alias = "start")]
    async fn first(&self, begin: &Begin) -> Item {
        Item(Self::offset(begin.0))
    }

    #[inline]
    #[step]
    #[tracing::instrument(skip_all, err)]
    async fn end(&self, r#type: &Item) -> Result<Done, ModelError> {
        Ok(Done(r#type.0))
    }

    #[must_use]
    #[precondition]
    #[cfg_attr(test, inline)]
    fn sensible(item: &Item) -> bool {
        item.0 > 0
    }

    #[step(precondition = sensible)]
    async fn aside(&self, _item: &Item) {}
}

#[tokio::test]
async fn other_attributes_and_other_items_of_the_block_keep_their_meaning() {
    let run = Scenario::new(Attributed).start(Begin(1)).await;
    let steps: Vec<&str> = run.report().steps.iter().map(|row| &*row.step).collect();
    assert_eq!(steps, ["first-step", "end", "aside"]);
    run.assert_output(&Done(2));
}

/// Re-exports the library, as a crate that is built on it would.
mod house {
    pub(crate) mod flows {
        pub(crate) use workflow_core::*;
    }
}

mod elsewhere {
    use serde::{Deserialize, Serialize};

    use super::house::flows;
    use super::house::flows::{Event, EventSet, precondition, workflow};

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(start, crate = super::house::flows)]
    pub(super) struct Open(pub(super) u32);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(crate = flows)]
    pub(super) struct Small(u32);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(crate = "super::house::flows")]
    pub(super) struct Large(u32);

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    #[event(stop, crate = crate::inputs::generics::house::flows)]
    pub(super) struct Closed(pub(super) u32);

    #[derive(Debug, EventSet)]
    #[event_set(crate = flows)]
    pub(super) enum Sized {
        Small(Small),
        Large(Large),
    }

    #[precondition(crate = flows)]
    fn positive(open: &Open) -> bool {
        open.0 > 0
    }

    pub(super) struct Sizes;

    #[workflow(crate = flows)]
    impl Sizes {
        #[flows::step(precondition = positive)]
        async fn size(&self, open: &Open) -> Sized {
            if open.0 < 10 { Sized::Small(Small(open.0)) } else { Sized::Large(Large(open.0)) }
        }

        #[flows::step]
        async fn end(&self, sized: Sized) -> Closed {
            match sized {
                Sized::Small(small) => Closed(small.0),
                Sized::Large(large) => Closed(large.0 + 1_000),
            }
        }
    }
}

#[tokio::test]
async fn the_library_may_be_reached_by_another_path() {
    assert_eq!(elsewhere::Sizes.run(elsewhere::Open(3)).await.unwrap(), elsewhere::Closed(3));
    assert_eq!(elsewhere::Sizes.run(elsewhere::Open(30)).await.unwrap(), elsewhere::Closed(1_030));
    assert!(elsewhere::Sizes.run(elsewhere::Open(0)).await.is_err());
}

/// Names that generated code might use too must not get in its way.
mod hostile {
    use workflow_core::prelude::*;

    use crate::fixtures::{Begin, Done};

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Option;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Result(pub(super) u32);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) enum Box {
        Some(u32),
        None,
    }

    pub(super) struct Arc;

    #[workflow]
    impl Arc {
        #[step]
        async fn call(&self, this: &Begin) -> (Option, Result, Box) {
            (Option, Result(this.0), if this.0 == 0 { Box::None } else { Box::Some(this.0) })
        }

        #[step]
        async fn check(&self, step: &Option, call: &Result, output: &Box) -> Done {
            let Option = step;
            Done(call.0 + if let Box::Some(number) = output { *number } else { 0 })
        }
    }
}

#[tokio::test]
async fn a_users_names_do_not_get_in_the_way_of_generated_code() {
    assert_eq!(hostile::Arc.run(Begin(2)).await.unwrap(), Done(4));
}

macro_rules! passing_on {
    ($name:ident, $event:ty) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn pass(&self, begin: &Begin) -> $event {
                <$event>::from(Part(begin.0))
            }
        }
    };
}

impl From<Part> for Done {
    fn from(part: Part) -> Self {
        Self(part.0)
    }
}

passing_on!(MadeByAMacro, Done);

#[tokio::test]
async fn a_workflow_may_be_written_by_a_macro() {
    assert_eq!(MadeByAMacro.run(Begin(6)).await.unwrap(), Done(6));
}

#[tokio::test]
async fn a_workflow_may_be_defined_inside_a_function() {
    struct Local;

    #[workflow]
    impl Local {
        #[step]
        async fn end(&self, begin: &Begin) -> Done {
            Done(begin.0)
        }
    }

    Scenario::new(Local).start(Begin(1)).await.assert_output(&Done(1));
}
