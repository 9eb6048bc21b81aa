use proptest::prelude::{ProptestConfig, any, proptest};

use super::naive;
use crate::event::Roles;
use crate::spec::StepPolicy;
use crate::table::{
    DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepIndex, random,
};

const CONTROL: Roles = Roles::NONE;

/// The forecast of every step, one a line.
fn forecasts(events: &[(&str, Roles)], steps: impl IntoIterator<Item = StepDef>) -> Vec<String> {
    let mut builder = DependencyTable::builder("forecast")
        .event(EventDef::new("Start", Roles::NONE.start()))
        .event(EventDef::new("Stop", Roles::NONE.stop()));
    for (name, roles) in events {
        builder = builder.event(EventDef::new(*name, *roles));
    }
    let table = steps.into_iter().fold(builder, super::super::TableBuilder::step).build().unwrap();
    let line = |step| format!("{}: {}", table.step(step).name(), table.forecast(step));
    (0..table.steps.len()).map(|step| line(crate::table::StepIndex::at(step))).collect()
}

fn step(name: &str, inputs: &[InputDef], outputs: &[OutputDef]) -> StepDef {
    let step = inputs.iter().cloned().fold(StepDef::new(name), StepDef::input);
    outputs.iter().cloned().fold(step, StepDef::output)
}

fn one(event: &str) -> InputDef {
    InputDef::one(event)
}

fn emits(event: &str) -> OutputDef {
    OutputDef::event(event)
}

#[test]
fn steps_of_a_chain_run_once() {
    let steps = [step("first", &[one("Start")], &[emits("A")]), step("last", &[one("A")], &[emits("Stop")])];
    assert_eq!(forecasts(&[("A", CONTROL)], steps), ["first: 1", "last: 1"]);
}

#[test]
fn a_join_of_two_runs_once_and_of_a_second_producer_once_more() {
    let (a, b) = (step("a", &[one("Start")], &[emits("A")]), step("b", &[one("Start")], &[emits("B")]));
    let join = step("join", &[one("A"), one("B")], &[emits("Stop")]);
    let events = [("A", CONTROL), ("B", CONTROL)];
    assert_eq!(forecasts(&events, [a.clone(), b.clone(), join.clone()]), ["a: 1", "b: 1", "join: 1"]);
    let again = step("again", &[one("Start")], &[emits("A")]);
    assert_eq!(forecasts(&events, [a, again, b, join]), ["a: 0-1", "again: 0-1", "b: 1", "join: 1-2"]);
}

#[test]
fn a_step_beside_the_way_to_the_stop_may_come_too_late() {
    let steps = [step("log", &[one("Start")], &[]), step("answer", &[one("Start")], &[emits("Stop")])];
    assert_eq!(forecasts(&[], steps), ["log: 0-1", "answer: 1"]);
}

#[test]
fn an_optional_input_runs_its_step_once_more() {
    let a = step("a", &[one("Start")], &[OutputDef::optional("A")]);
    let end = step("end", &[one("Start"), one("A").optional()], &[emits("Stop")]);
    assert_eq!(forecasts(&[("A", CONTROL)], [a, end]), ["a: 0-1", "end: 1-2"]);
}

#[test]
fn many_events_run_a_step_once_each() {
    let split = step("split", &[one("Start")], &[OutputDef::many("A")]);
    let each = step("each", &[one("A"), one("Start")], &[]);
    let list = step("list", &[InputDef::list(["A"])], &[]);
    let fixed = step("fixed", &[InputDef::fixed(3, ["A"])], &[emits("Stop")]);
    assert_eq!(
        forecasts(&[("A", CONTROL)], [split, each, list, fixed]),
        ["split: 1", "each: 0-1 per `A`", "list: 0-1 per `A`", "fixed: 1"]
    );
}

#[test]
fn an_optional_fixed_list_runs_its_step_before_and_after_it_is_complete() {
    let split = step("split", &[one("Start")], &[OutputDef::many("A")]);
    let fixed = step("fixed", &[InputDef::fixed(3, ["A"]).optional()], &[]);
    let end = step("end", &[one("A")], &[OutputDef::optional("Stop")]);
    let forecasts = forecasts(&[("A", CONTROL)], [split, fixed, end]);
    assert_eq!(forecasts, ["split: 1", "fixed: 0-2", "end: 0-1 per `A`"]);
}

#[test]
fn external_events_have_no_bound() {
    let hear = step("hear", &[one("Said")], &[]);
    let both = step("both", &[one("Said"), one("Typed")], &[emits("Stop")]);
    let go = step("go", &[one("Start")], &[]);
    let events = [("Said", CONTROL.external()), ("Typed", CONTROL.external())];
    assert_eq!(forecasts(&events, [go, hear, both]), ["go: 0-1", "hear: 0-1 per `Said`", "both: 1-n"]);
}

#[test]
fn a_loop_is_bounded_by_its_limit_only() {
    let write = step("write", &[InputDef::one_of(["Start", "Again"])], &[emits("Draft")]);
    let review =
        step("review", &[one("Draft")], &[OutputDef::optional("Again"), OutputDef::optional("Stop")]);
    let events = [("Draft", CONTROL), ("Again", CONTROL)];
    let unbounded = ["write: 1-n", "review: 0-1 per `Draft`"];
    assert_eq!(forecasts(&events, [write.clone(), review.clone()]), unbounded);
    let review = review.policy(StepPolicy::DEFAULT.max_executions(3));
    assert_eq!(forecasts(&events, [write, review]), ["write: 1-4", "review: 1-3"]);
}

#[test]
fn steps_of_a_branch_run_per_item() {
    let split = step("split", &[one("Start")], &[OutputDef::fan_out("Part")]);
    let score = step("score", &[one("Start"), one("Part")], &[emits("Score")]);
    let note = step("note", &[one("Score")], &[]);
    let maybe = step("maybe", &[one("Score")], &[]).precondition(PreconditionDef::new("wanted"));
    let end = step("end", &[one("Start"), InputDef::gather("Score")], &[emits("Stop")]);
    assert_eq!(
        forecasts(&[("Part", CONTROL), ("Score", CONTROL)], [split, score, note, maybe, end]),
        ["split: 1", "score: 1 per `Part`", "note: 1 per `Part`", "maybe: 0-1 per `Part`", "end: 1"]
    );
}

#[test]
fn a_branch_that_the_run_need_not_wait_for_may_be_dropped() {
    let split = step("split", &[one("Start")], &[OutputDef::fan_out("Part")]);
    let read = step("read", &[one("Part")], &[]);
    let count = step("count", &[InputDef::gather("Part")], &[]);
    let end = step("end", &[one("Start")], &[emits("Stop")]);
    assert_eq!(
        forecasts(&[("Part", CONTROL)], [split, read, count, end]),
        ["split: 0-1", "read: 0-1 per `Part`", "count: 0-1", "end: 1"]
    );
}

#[test]
fn branches_below_branches_are_counted_by_their_own_items() {
    let split = step("split", &[one("Start")], &[OutputDef::fan_out("Page")]);
    let cut = step("cut", &[one("Page")], &[OutputDef::fan_out("Line")]);
    let read = step("read", &[one("Page"), one("Line")], &[]);
    let lines = step("lines", &[InputDef::gather("Line")], &[emits("Lines")]);
    let end = step("end", &[InputDef::gather("Lines")], &[emits("Stop")]);
    assert_eq!(
        forecasts(
            &[("Page", CONTROL), ("Line", CONTROL), ("Lines", CONTROL)],
            [split, cut, read, lines, end]
        ),
        ["split: 1", "cut: 1 per `Page`", "read: 0-1 per `Line`", "lines: 0-1 per `Page`", "end: 1"]
    );
}

#[test]
fn a_reply_comes_at_most_once_per_request() {
    let table = DependencyTable::builder("asks")
        .event(EventDef::new("Start", Roles::NONE.start()))
        .event(EventDef::new("Ask", Roles::NONE.request()))
        .event(EventDef::reply_to("Ask.reply", "Ask"))
        .event(EventDef::new("Stop", Roles::NONE.stop()))
        .step(step("ask", &[one("Start")], &[emits("Ask")]))
        .step(step("pay", &[InputDef::reply("Ask.reply")], &[emits("Stop")]))
        .build()
        .unwrap();
    assert_eq!(table.forecast(table.step_named("pay").unwrap()).to_string(), "1");
}

#[test]
fn a_forecast_is_json_of_its_numbers() {
    let forecast = super::Forecast { least: 0, greatest: Some(1), per: Some("Page".into()) };
    assert_eq!(serde_json::to_string(&forecast).unwrap(), r#"{"least":0,"greatest":1,"per":"Page"}"#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_forecast_is_that_of_a_naive_search_or_closer(seed in any::<u64>()) {
        if let Ok(table) = random::table(seed, 14).build_unchecked() {
            for step in (0..table.steps.len()).map(StepIndex::at) {
                let (forecast, naive) = (table.forecast(step), naive::forecast(&table, step));
                // Where steps go in a circle, the naive search takes what is not computed yet as unlimited.
                let is_closer = match (forecast.greatest, naive.greatest) {
                    // A bound per event is none per run.
                    (Some(_), Some(_)) if naive.per.is_some() && forecast.per.is_none() => true,
                    (Some(greatest), Some(other)) => greatest < other && forecast.per == naive.per,
                    (greatest, None) => greatest.is_some(),
                    (None, Some(_)) => false,
                };
                let is_same = forecast == naive;
                assert!(is_same || is_closer, "{}: {forecast}, {naive}", table.step(step).name());
            }
        }
    }
}

/// How many steps a chain needs at least to be longer than a stack is deep.
const LONG: usize = 20_000;

#[test]
fn a_chain_of_any_length_has_an_exact_forecast() {
    let name = |at: usize| if at == LONG { "Stop".to_owned() } else { format!("E{at}") };
    let table = DependencyTable::builder("long")
        .event(EventDef::new("E0", Roles::NONE.start()))
        .event(EventDef::new("Stop", Roles::NONE.stop()));
    let table = (1..LONG).fold(table, |table, at| table.event(EventDef::new(name(at), CONTROL)));
    // Declared from its end.
    let steps = (0..LONG).rev().map(|at| step(&format!("s{at}"), &[one(&name(at))], &[emits(&name(at + 1))]));
    let table = steps.fold(table, super::super::TableBuilder::step).build().unwrap();
    assert!((0..LONG).all(|step| table.forecast(StepIndex::at(step)).to_string() == "1"));
}
