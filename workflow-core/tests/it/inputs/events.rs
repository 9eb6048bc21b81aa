//! Events: their names, roles and matching (S1–S4).

use std::sync::Arc;

use workflow_core::AnyEvent;
use workflow_core::prelude::*;
use workflow_core::signature::{FromEvent as _, Pattern as _, Roles};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part, Saw, log_of, saw};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "shop.order.priced")]
struct Priced(u32);

// S1
#[test]
fn a_wire_name_is_the_types_own_name_or_the_one_that_is_given() {
    assert_eq!(Item::NAME, "Item");
    assert_eq!(Priced::NAME, "shop.order.priced");
}

struct Pricing;

#[workflow]
impl Pricing {
    #[step]
    async fn price(&self, begin: &Begin) -> Priced {
        Priced(begin.0)
    }

    #[step]
    async fn end(&self, priced: &Priced) -> Done {
        Done(priced.0)
    }
}

// S1, S4
#[tokio::test]
async fn the_log_names_events_by_their_wire_names_and_numbers_them_from_one_without_gaps() {
    let run = Scenario::new(Pricing).start(Begin(7)).await;
    let log: Vec<_> = run.report().log.iter().map(|logged| (logged.seq.0, &*logged.event)).collect();
    assert_eq!(log, [(1, "Begin"), (2, "shop.order.priced"), (3, "Done")]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, display)]
struct ShownStart;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(control, display)]
struct ShownControl;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, external, reply = u32)]
struct AskedFromOutside;

// S2
#[test]
fn roles_combine() {
    assert!(ShownStart::ROLES.is_start() && ShownStart::ROLES.is_display() && ShownStart::ROLES.is_control());
    assert!(ShownControl::ROLES.is_control() && ShownControl::ROLES.is_display());
    assert!(AskedFromOutside::ROLES.is_request() && AskedFromOutside::ROLES.is_external());
}

// S2
#[test]
fn an_event_without_roles_is_a_control_event_and_one_that_is_only_displayed_is_not() {
    assert_eq!(Item::ROLES, Roles::NONE);
    assert!(Item::ROLES.is_control());
    assert!(!Progress::ROLES.is_control());
}

// S2
#[test]
fn a_replys_wire_name_follows_from_its_requests() {
    assert_eq!(<AskedFromOutside as workflow_core::Request>::REPLY_NAME, "AskedFromOutside.reply");
}

struct ExactTypes;

#[workflow]
impl ExactTypes {
    #[step]
    async fn split(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn take_item(&self, item: &Item) -> Done {
        Done(item.0)
    }

    /// `Part` has the same fields as `Item`, but is another type.
    #[step]
    async fn take_part(&self, _part: &Part) {}

    /// Makes `Part` a producible event.
    #[step]
    async fn make_part(&self, _close: &Close) -> Part {
        Part(0)
    }
}

// S3
#[tokio::test]
async fn an_event_of_equal_shape_and_another_type_does_not_match() {
    let run = Scenario::new(ExactTypes).start(Begin(1)).await;
    run.assert_executions("take_item", 1);
    run.assert_executions("take_part", 0);
}

#[derive(Debug, EventSet)]
enum Letter {
    Alpha(Alpha),
    Beta(Arc<Beta>),
}

impl Letter {
    fn text(&self) -> String {
        match self {
            Self::Alpha(alpha) => format!("A{}", alpha.0),
            Self::Beta(beta) => format!("B{}", beta.0),
        }
    }
}

// S3
#[test]
fn a_set_declares_its_members_in_order() {
    let names: Vec<&str> = Letter::EVENTS.iter().map(workflow_core::signature::EventType::name).collect();
    assert_eq!(names, ["Alpha", "Beta"]);
    assert!(Letter::from_event(&AnyEvent::new(Item(1))).is_none());
}

fn is_a_set<T: workflow_core::EventSet>() {}

// S3
#[test]
fn a_derived_set_is_an_event_set() {
    is_a_set::<Letter>();
}

struct Single;

#[workflow]
impl Single {
    #[step]
    async fn take(&self, letter: Letter) -> Saw {
        Saw(letter.text())
    }

    #[step]
    async fn borrow(&self, letter: &Letter) -> Saw {
        Saw(format!("&{}", letter.text()))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S3
#[tokio::test]
async fn a_set_as_the_only_input_takes_any_of_its_members() {
    let run = Scenario::new(Single).send(Alpha(1)).send(Beta(2)).send(Close).start(Begin(0)).await;
    run.assert_output(&Done(0));
    assert_eq!(saw(&run), ["A1", "&A1", "B2", "&B2"]);
}

struct Secondary;

#[workflow]
impl Secondary {
    #[step]
    async fn join(&self, begin: &Begin, letter: Letter) -> Saw {
        Saw(format!("{} {}", begin.0, letter.text()))
    }

    #[step(reruns)]
    async fn join_optionally(&self, _close: &Close, letter: Option<Letter>) -> (Saw, Done) {
        (Saw(letter.map_or_else(|| "none".to_owned(), |letter| letter.text())), Done(0))
    }
}

// S3
#[tokio::test]
async fn a_set_as_a_secondary_input_is_the_latest_of_any_member() {
    let run = Scenario::new(Secondary).send(Beta(1)).send(Alpha(2)).send(Close).start(Begin(7)).await;
    assert_eq!(saw(&run), ["7 B1", "7 A2", "A2"]);
}

struct Listed;

#[workflow]
impl Listed {
    #[step(reruns)]
    async fn collect(&self, letters: List<Letter>) -> Saw {
        let texts: Vec<String> = letters.iter().map(|letter| letter.text()).collect();
        Saw(texts.join(" "))
    }

    #[step]
    async fn collect_two(&self, letters: &FixedList<Letter, 2>) -> Saw {
        let [first, second] = letters.to_array();
        Saw(format!("two: {} {}", first.text(), second.text()))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S3
#[tokio::test]
async fn a_set_as_a_list_element_mixes_its_members_in_the_logs_order() {
    let run = Scenario::new(Listed).send(Beta(1)).send(Alpha(2)).send(Beta(3)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["B1", "B1 A2", "two: B1 A2", "B1 A2 B3"]);
}

#[derive(Debug, EventSet)]
enum Made {
    Item(Item),
    Part(Arc<Part>),
}

struct Making;

#[workflow]
impl Making {
    #[step]
    async fn make(&self, begin: &Begin) -> Made {
        if begin.0 == 0 { Made::Item(Item(10)) } else { Made::Part(Arc::new(Part(20))) }
    }

    #[step]
    async fn end_with_item(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[step]
    async fn end_with_part(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S3
#[tokio::test]
async fn a_set_as_an_output_logs_the_one_member_that_was_returned() {
    for (begin, made) in [(0, "Item"), (1, "Part")] {
        let run = Scenario::new(Making).start(Begin(begin)).await;
        assert_eq!(log_of(run.report()), ["Begin", made, "Done"]);
    }
}

struct MakingMany;

#[workflow]
impl MakingMany {
    #[step]
    async fn make(&self, begin: &Begin) -> Result<(Vec<Made>, Option<Made>), StepError> {
        let parts = (0..begin.0).map(|number| Made::Part(Arc::new(Part(number)))).collect();
        Ok((parts, Some(Made::Item(Item(begin.0)))))
    }

    #[step(reruns)]
    async fn end(&self, all: Option<List<Made>>, _parts: FixedList<Part, 2>, item: &Item) -> Done {
        Done(item.0 * 10 + all.map_or(0, |all| u32::try_from(all.len()).unwrap()))
    }
}

// S3
#[tokio::test]
async fn a_set_may_stand_inside_other_outputs_and_inputs() {
    assert_eq!(MakingMany.run(Begin(2)).await.unwrap(), Done(23));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct GaveUp;

#[derive(Debug, PartialEq, EventSet)]
enum Outcome {
    Done(Done),
    GaveUp(GaveUp),
}

struct TwoStops;

#[workflow(output = Outcome)]
impl TwoStops {
    #[step]
    async fn decide(&self, begin: &Begin) -> Outcome {
        if begin.0 == 0 { Outcome::GaveUp(GaveUp) } else { Outcome::Done(Done(begin.0)) }
    }
}

// S3
#[tokio::test]
async fn a_workflow_with_two_stop_events_ends_with_the_set_that_is_named() {
    assert_eq!(TwoStops.run(Begin(0)).await.unwrap(), Outcome::GaveUp(GaveUp));
    assert_eq!(TwoStops.run(Begin(3)).await.unwrap(), Outcome::Done(Done(3)));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(start)]
struct Resume(u32);

struct TwoStarts;

#[workflow]
impl TwoStarts {
    #[step]
    async fn begin(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn resume(&self, resume: &Resume) -> Done {
        Done(resume.0 + 100)
    }
}

// S2
#[tokio::test]
async fn a_workflow_can_be_opened_by_several_start_events() {
    assert_eq!(TwoStarts.run(Begin(1)).await.unwrap(), Done(1));
    assert_eq!(TwoStarts.run(Resume(1)).await.unwrap(), Done(101));
}
