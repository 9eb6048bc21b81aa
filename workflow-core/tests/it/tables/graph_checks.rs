//! Tables built at run time are refused for the same mistakes and with the same words as workflows by the compiler:
//! each test compares its message with the compiler's for the same graph in `tests/ui`.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};
use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepPolicy, TableBuilder,
    TableProblem,
};

mod together;
mod typed;

const CONTROL: Roles = Roles::NONE;

/// A question that opens runs, an answer that ends them, and these events.
fn table(events: &[(&str, Roles)]) -> TableBuilder {
    let table = DependencyTable::builder("research")
        .event(EventDef::new("Question", Roles::NONE.start()))
        .event(EventDef::new("Answer", Roles::NONE.stop()));
    events.iter().fold(table, |table, (name, roles)| table.event(EventDef::new(*name, *roles)))
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

/// The step that ends the run with an answer.
fn answers(inputs: &[InputDef]) -> StepDef {
    step("answer", inputs, &[emits("Answer")])
}

#[track_caller]
fn refuses(table: TableBuilder, expected: &Expect) {
    expected.assert_eq(&table.build().unwrap_err().to_string());
}

/// The same, and the compiler reports it too.
#[track_caller]
fn refuses_like_the_compiler(table: TableBuilder, said: &str, expected: &Expect) {
    let error = table.build().unwrap_err();
    expected.assert_eq(&error.to_string());
    for problem in error.problems {
        assert!(said.contains(&problem.to_string()), "the compiler says something else:\n{said}");
    }
}

#[test]
fn a_required_input_that_nothing_produces_is_refused_with_names_that_are_near() {
    // S9
    refuses_like_the_compiler(
        table(&[("Facts", CONTROL), ("Fact", CONTROL)])
            .step(step("look_up", &[one("Question")], &[emits("Facts")]))
            .step(answers(&[one("Question"), one("Fact")])),
        include_str!("../../ui/input_produced_by_nothing.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - nothing produces `Fact`, which step `answer` requires; did you mean `Facts`? Otherwise, return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run"#]],
    );
}

#[test]
fn an_optional_input_that_nothing_produces_is_accepted() {
    // S9
    let hinted = answers(&[one("Question"), one("Hint").optional()]);
    assert!(table(&[("Hint", CONTROL)]).step(hinted).build().is_ok());
}

#[test]
fn a_union_needs_one_of_its_events_to_be_produced() {
    // S9
    let graded = || [one("Question"), InputDef::one_of(["Enough", "Short"])];
    refuses_like_the_compiler(
        table(&[("Enough", CONTROL), ("Short", CONTROL)]).step(answers(&graded())),
        include_str!("../../ui/input_set_produced_by_nothing.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - nothing produces `Enough` or `Short`, one of which step `answer` requires: return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run"#]],
    );
    let sent = table(&[("Enough", CONTROL), ("Short", CONTROL.external())]).step(answers(&graded()));
    assert!(sent.build().is_ok());
}

#[test]
fn a_list_that_nothing_fills_is_refused() {
    // S9
    refuses_like_the_compiler(
        table(&[("Passage", CONTROL)]).step(answers(&[one("Question"), InputDef::list(["Passage"])])),
        include_str!("../../ui/input_list_produced_by_nothing.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - nothing produces `Passage`, which step `answer` requires: return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run"#]],
    );
}

#[test]
fn a_reply_to_a_request_that_nothing_emits_is_refused() {
    // S9
    let asks = table(&[("Ask", CONTROL.request())]).event(EventDef::reply_to("Ask.reply", "Ask"));
    refuses_like_the_compiler(
        asks.step(answers(&[one("Question"), InputDef::reply("Ask.reply")])),
        include_str!("../../ui/input_reply_to_request_that_nothing_emits.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `answer` waits for the reply to `Ask`, but no step asks for it: return `Ask` from a step"#]],
    );
}

#[test]
fn a_stop_event_as_input_is_refused() {
    // S9
    refuses_like_the_compiler(
        table(&[("Facts", CONTROL)])
            .step(step("look_up", &[one("Question")], &[emits("Facts")]))
            .step(answers(&[one("Facts")]))
            .step(step("close", &[InputDef::one_of(["Facts", "Answer"])], &[])),
        include_str!("../../ui/input_stop_in_set.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - `Answer` ends the run, so no step can take it: let step `close` take an event that comes before it"#]],
    );
}

#[test]
fn a_step_that_takes_what_it_emits_has_to_say_that_it_loops() {
    // S9
    let improving = |improve: StepDef| {
        table(&[("Draft", CONTROL)])
            .step(step("begin", &[one("Question")], &[emits("Draft")]))
            .step(improve)
            .step(answers(&[one("Draft")]))
    };
    let improve = step("improve", &[one("Draft")], &[emits("Draft")]);
    refuses_like_the_compiler(
        improving(improve.clone()),
        include_str!("../../ui/input_own_output.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `improve` takes `Draft` and emits it, so it triggers itself: write `#[step(loops)]` if that is meant, or emit another event"#]],
    );
    assert!(improving(improve.policy(StepPolicy::DEFAULT.loops())).build().is_ok());
}

#[test]
fn a_fixed_list_of_nothing_is_refused() {
    refuses(
        table(&[]).step(answers(&[one("Question"), InputDef::fixed(0, ["Question"])])),
        &expect![[r#"
        workflow `research` has 1 mistake:
          - step `answer` takes a fixed list of 0 events, which waits for nothing: leave it out"#]],
    );
}

/// A step that compares a number of drafts.
fn compares(drafts: InputDef, write: StepDef) -> TableBuilder {
    table(&[("Draft", CONTROL), ("Facts", CONTROL), ("Review", CONTROL), ("Hint", CONTROL.external())])
        .step(write)
        .step(step("compare", &[drafts], &[emits("Facts")]))
        .step(answers(&[one("Question"), InputDef::fixed(1, ["Facts"])]))
}

#[test]
fn a_fixed_list_that_no_run_can_fill_is_refused() {
    // S17
    let write = || step("write", &[one("Question")], &[emits("Draft")]);
    let three = || InputDef::fixed(3, ["Draft"]);
    refuses_like_the_compiler(
        compares(three(), write()),
        include_str!("../../ui/input_fixed_list_never_full.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `compare` waits for 3 of `Draft`, of which a run has at most 1: wait for fewer, take a `List`, or emit more"#]],
    );
    let limited = StepPolicy::DEFAULT.max_executions(2).loops();
    refuses(
        compares(three(), step("write", &[one("Hint")], &[emits("Draft")]).policy(limited)),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `compare` waits for 3 of `Draft`, of which a run has at most 2: wait for fewer, take a `List`, or emit more"#]],
    );
    let works = [
        compares(InputDef::fixed(1, ["Draft"]), write()),
        compares(three(), step("write", &[one("Question")], &[OutputDef::many("Draft")])),
        compares(three(), write()).step(step("again", &[one("Question")], &[emits("Draft"), emits("Draft")])),
        compares(three(), step("write", &[one("Hint")], &[emits("Draft")])),
        compares(InputDef::fixed(3, ["Draft", "Hint"]), write()),
        compares(three().optional(), write()),
        compares(three(), write()).step(step("review", &[one("Draft")], &[emits("Review")])).step(step(
            "rewrite",
            &[one("Review")],
            &[OutputDef::optional("Draft")],
        )),
    ];
    for table in works {
        assert!(table.build().is_ok());
    }
}

#[test]
fn a_fixed_list_of_items_is_filled_by_what_their_branches_emit() {
    // S17, S45
    let gathered = table(&[("Part", CONTROL), ("Score", CONTROL)])
        .step(step("parts", &[one("Question")], &[OutputDef::fan_out("Part")]))
        .step(step("score", &[one("Part")], &[emits("Score")]).policy(StepPolicy::DEFAULT.max_executions(1)))
        .step(step("again", &[one("Part")], &[emits("Score")]).policy(StepPolicy::DEFAULT.max_executions(1)))
        .step(step("both", &[InputDef::fixed(2, ["Score"])], &[]))
        .step(answers(&[InputDef::gather("Score")]));
    assert!(gathered.build().is_ok());
}

#[test]
fn a_step_whose_fixed_list_is_never_full_is_forecast_never_to_run() {
    let write = step("write", &[one("Question")], &[emits("Draft")]);
    let table = compares(InputDef::fixed(3, ["Draft"]), write).build_unchecked().unwrap();
    let forecast = |step: &str| table.forecast(table.step_named(step).unwrap()).to_string();
    assert_eq!(["write", "compare", "answer"].map(forecast), ["1", "0", "0"]);
}

#[test]
fn a_gather_without_a_fan_out_is_refused() {
    // S48
    refuses_like_the_compiler(
        table(&[("Score", CONTROL)])
            .step(step("score", &[one("Question")], &[OutputDef::many("Score")]))
            .step(answers(&[InputDef::gather("Score")])),
        include_str!("../../ui/gather_without_fan_out.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `answer` gathers `Score`, but no step fans out: return `FanOut<Score>` from one"#]],
    );
}

#[test]
fn a_gather_of_what_no_branch_emits_is_refused_and_its_fan_out_is_not() {
    // S48
    refuses_like_the_compiler(
        table(&[("Part", CONTROL), ("Score", CONTROL), ("Summary", CONTROL)])
            .step(step("split", &[one("Question")], &[OutputDef::fan_out("Part")]))
            .step(step("score", &[one("Part")], &[emits("Score")]))
            .step(step("summarise", &[one("Question")], &[emits("Summary")]))
            .step(answers(&[InputDef::gather("Summary")])),
        include_str!("../../ui/gather_of_what_no_branch_emits.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `answer` gathers `Summary`, which is neither the item of a fan-out nor emitted in a branch of one: return `FanOut<Summary>` from a step, or emit `Summary` in a step that follows from `Part`"#]],
    );
}

/// A table in which parcels and letters are weighed in branches of their own.
fn weighs(sum: InputDef) -> TableBuilder {
    table(&[("Parcel", CONTROL), ("Letter", CONTROL), ("Weight", CONTROL), ("Note", CONTROL)])
        .step(step("sort", &[one("Question")], &[OutputDef::fan_out("Parcel"), OutputDef::fan_out("Letter")]))
        .step(step("weigh_parcel", &[one("Parcel")], &[emits("Weight")]))
        .step(step("weigh_letter", &[one("Letter")], &[emits("Weight")]))
        .step(step("letters", &[InputDef::gather("Letter")], &[]))
        .step(answers(&[sum]))
}

#[test]
fn a_gather_that_fits_fan_outs_of_several_items_names_one_or_is_refused() {
    // S48
    refuses(
        weighs(InputDef::gather("Weight")),
        &expect![[r#"
        workflow `research` has 1 mistake:
          - step `answer` gathers `Weight`, which branches of `Parcel` and `Letter` have: name one as the item, such as `Gather<Weight, Parcel>`"#]],
    );
    refuses(
        weighs(InputDef::gather_of("Note", ["Weight"])),
        &expect![[r#"
        workflow `research` has 1 mistake:
          - step `answer` gathers `Weight` of branches of `Note`, but no step fans out to it: return `FanOut<Note>` from one"#]],
    );
    let table = weighs(InputDef::gather_of("Parcel", ["Weight"])).build().unwrap();
    let shape = table.shape();
    let answer = shape.steps.iter().find(|step| &*step.name == "answer").unwrap();
    assert_eq!(answer.inputs[0].to_string(), "a gather of `Weight` in branches of `Parcel`");
    assert_eq!(DependencyTable::from_shape(&shape).unwrap().shape(), shape);
}

#[test]
fn a_gather_of_what_needs_two_branches_that_do_not_see_each_other_is_refused() {
    // S45, S48
    refuses(
        table(&[("Part", CONTROL), ("Page", CONTROL), ("Pair", CONTROL)])
            .step(step("parts", &[one("Question")], &[OutputDef::fan_out("Part")]))
            .step(step("pages", &[one("Question")], &[OutputDef::fan_out("Page")]))
            .step(step("pair", &[one("Part"), one("Page")], &[emits("Pair")]))
            .step(answers(&[InputDef::gather("Pair")])),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `pair` can never run: no branch has `Part` and `Page` in sight together, because branches do not see each other; let it take a `Gather` of each, which is there once all branches are settled"#]],
    );
}

/// A step with two fan-outs, which are gathered elsewhere.
fn pairs(pair: &[InputDef]) -> TableBuilder {
    table(&[("Part", CONTROL), ("Page", CONTROL), ("Facts", CONTROL)])
        .step(step("parts", &[one("Question")], &[OutputDef::fan_out("Part")]))
        .step(step("pages", &[one("Question")], &[OutputDef::fan_out("Page")]))
        .step(step("pair", pair, &[emits("Answer")]))
        .step(step("done", &[InputDef::gather("Part"), InputDef::gather("Page")], &[emits("Facts")]))
}

#[test]
fn a_step_that_joins_branches_that_do_not_see_each_other_is_refused() {
    // S45
    refuses_like_the_compiler(
        pairs(&[one("Part"), one("Page")]),
        include_str!("../../ui/step_joins_branches_apart.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `pair` can never run: no branch has `Part` and `Page` in sight together, because branches do not see each other; let it take a `Gather` of each, which is there once all branches are settled"#]],
    );
    for works in [
        vec![InputDef::gather("Part"), InputDef::gather("Page")],
        vec![one("Part"), one("Question")],
        vec![one("Part"), one("Page").optional()],
        vec![InputDef::one_of(["Part", "Page"])],
        vec![one("Facts"), InputDef::gather("Part")],
    ] {
        assert!(pairs(&works).build().is_ok());
    }
}

#[test]
fn steps_behind_a_join_of_disjoint_branches_are_not_reported() {
    // S45
    refuses(
        table(&[("Part", CONTROL), ("Line", CONTROL), ("Page", CONTROL), ("Pair", CONTROL)])
            .step(step("parts", &[one("Question")], &[OutputDef::fan_out("Part")]))
            .step(step("pages", &[one("Question")], &[OutputDef::fan_out("Page")]))
            .step(step("pair", &[one("Part"), one("Page")], &[OutputDef::fan_out("Pair")]))
            .step(step("line", &[one("Pair"), one("Question")], &[emits("Line")]))
            .step(step("more", &[one("Line"), one("Page")], &[]))
            .step(step("done", &[InputDef::gather("Part"), InputDef::gather("Page")], &[]))
            .step(answers(&[InputDef::gather("Line")])),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `pair` can never run: no branch has `Part` and `Page` in sight together, because branches do not see each other; let it take a `Gather` of each, which is there once all branches are settled"#]],
    );
}

#[test]
fn branches_see_what_lies_around_them() {
    // S45
    let nested = table(&[("Page", CONTROL), ("Line", CONTROL), ("Word", CONTROL), ("Lines", CONTROL)])
        .step(step("pages", &[one("Question")], &[OutputDef::fan_out("Page")]))
        .step(step("lines", &[one("Page"), one("Question")], &[OutputDef::fan_out("Line")]))
        .step(step("word", &[one("Question"), one("Page"), one("Line")], &[emits("Word")]))
        .step(step("close", &[one("Page"), InputDef::gather("Word")], &[emits("Lines")]))
        .step(answers(&[InputDef::gather("Lines"), one("Question")]));
    assert!(nested.build().is_ok());
}

/// Prices and questions; a run begins with only one of them.
fn shop(order: Roles, bill: &[InputDef]) -> TableBuilder {
    table(&[("Order", order), ("Price", CONTROL), ("Invoice", CONTROL)])
        .step(step("price", &[one("Order")], &[emits("Price")]))
        .step(step("bill", bill, &[emits("Invoice")]))
        .step(answers(&[one("Invoice")]))
}

#[test]
fn a_step_that_joins_what_follows_from_different_start_events_is_refused() {
    refuses_like_the_compiler(
        shop(CONTROL.start(), &[one("Question"), one("Price")]),
        include_str!("../../ui/step_joins_start_events.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `bill` can never run: no run has `Question` and `Price` together, because a run begins with one start event; let it take an `EventSet` enum of them, or write `#[event(external)]` on a start event that is sent in later"#]],
    );
    let works = [
        shop(CONTROL.start(), &[one("Order"), one("Price")]),
        shop(CONTROL.start(), &[InputDef::one_of(["Question", "Order"])]),
        shop(CONTROL.start(), &[InputDef::one_of(["Question", "Order"]), one("Price")]),
        shop(CONTROL.start(), &[one("Question"), one("Price").optional()]),
        shop(CONTROL.start().external(), &[one("Question"), one("Price")]),
        shop(CONTROL.start(), &[one("Question"), one("Price")]).step(step(
            "again",
            &[one("Question")],
            &[emits("Order")],
        )),
    ];
    for table in works {
        assert!(table.build().is_ok());
    }
}

#[test]
fn a_step_that_no_one_start_event_leads_to_is_forecast_never_to_run() {
    let table = shop(CONTROL.start(), &[one("Question"), one("Price")]).build_unchecked().unwrap();
    let forecast = |step: &str| table.forecast(table.step_named(step).unwrap()).to_string();
    assert_eq!(["price", "bill", "answer"].map(forecast), ["0-1", "0", "0"]);
}

#[test]
fn a_fan_out_whose_branches_lead_nowhere_is_refused() {
    // S48
    let splits = |score: &[OutputDef]| {
        table(&[("Part", CONTROL), ("Score", CONTROL)])
            .step(step("split", &[one("Question")], &[OutputDef::fan_out("Part")]))
            .step(step("score", &[one("Part")], score))
            .step(answers(&[one("Question")]))
    };
    refuses_like_the_compiler(
        splits(&[emits("Score")]),
        include_str!("../../ui/fan_out_never_ends.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `split` fans out `Part`, but its branches can end neither in a gather nor in a stop: let a step take `Gather<Part>`, or a `Gather` of what the branches emit"#]],
    );
    assert!(splits(&[OutputDef::optional("Answer")]).build().is_ok());
}

#[test]
fn branches_may_end_in_a_stop_far_below() {
    // S48
    let nested = table(&[("Page", CONTROL), ("Line", CONTROL), ("Word", CONTROL)])
        .step(step("pages", &[one("Question")], &[OutputDef::fan_out("Page")]))
        .step(step("lines", &[one("Page")], &[OutputDef::fan_out("Line")]))
        .step(step("words", &[one("Line")], &[OutputDef::fan_out("Word")]))
        .step(answers(&[one("Word")]));
    assert!(nested.build().is_ok());
}

#[test]
fn a_step_without_an_event_is_refused() {
    // S9
    refuses(
        table(&[]).step(answers(&[one("Question")])).step(step("tick", &[], &[])),
        &expect![[r#"
        workflow `research` has 1 mistake:
          - step `tick` takes no event, so nothing would ever run it: give it a parameter for the event it waits for, such as `&Question`"#]],
    );
}

#[test]
fn a_step_that_only_it_could_start_is_refused() {
    // S9
    let improve = step("improve", &[one("Draft")], &[emits("Draft")]).policy(StepPolicy::DEFAULT.loops());
    refuses_like_the_compiler(
        table(&[("Draft", CONTROL)]).step(improve).step(answers(&[one("Question"), one("Draft")])),
        include_str!("../../ui/step_waits_for_itself.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `improve` can never run: it waits for `Draft`, which it emits itself: let it take an event that is there before, or emit `Draft` in another step"#]],
    );
}

#[test]
fn of_steps_that_wait_for_each_other_one_is_named_and_none_of_those_behind_them() {
    // S9
    refuses_like_the_compiler(
        table(&[("Draft", CONTROL), ("Review", CONTROL)])
            .step(answers(&[one("Question"), one("Review")]))
            .step(step("write", &[one("Question"), one("Review")], &[emits("Draft")]))
            .step(step("review", &[one("Draft")], &[emits("Review")])),
        include_str!("../../ui/steps_wait_for_each_other.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `write` can never run: it waits for `Review`, which step `review` emits, and that waits in turn for step `write`: let one of them take an event that is there before, or an `Option` of this one"#]],
    );
}

#[test]
fn an_input_that_nothing_produces_is_not_reported_again_by_all_that_wait_for_it() {
    // S9
    refuses_like_the_compiler(
        table(&[("Weather", CONTROL), ("Forecast", CONTROL), ("Facts", CONTROL)])
            .step(step("predict", &[one("Weather")], &[emits("Forecast")]))
            .step(step("look_up", &[one("Question"), one("Forecast")], &[emits("Facts")]))
            .step(answers(&[one("Facts")])),
        include_str!("../../ui/workflow_one_mistake_and_all_that_wait_for_it.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - nothing produces `Weather`, which step `predict` requires: return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run"#]],
    );
}

#[test]
fn a_step_whose_optional_inputs_nothing_produces_is_refused() {
    // S9
    refuses_like_the_compiler(
        table(&[("Hint", CONTROL)]).step(answers(&[one("Question")])).step(step(
            "note",
            &[one("Hint").optional()],
            &[],
        )),
        include_str!("../../ui/step_with_optional_inputs_that_nothing_produces.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - step `note` can never run: nothing produces any of the events it takes, which are all optional; return one of them from a step, or leave the step out"#]],
    );
}

#[test]
fn a_precondition_takes_what_its_step_takes() {
    // S9
    let asked = |wanted: InputDef, taken: InputDef| {
        let ready = PreconditionDef::new("ready").input(wanted);
        table(&[("Facts", CONTROL), ("Hint", CONTROL.external())])
            .step(step("look_up", &[one("Question")], &[emits("Facts")]))
            .step(answers(&[one("Question"), taken]).precondition(ready))
    };
    refuses_like_the_compiler(
        asked(one("Hint").optional(), one("Facts")),
        include_str!("../../ui/precondition_input_not_taken.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - precondition `ready` takes `Option<Hint>`, which is not among the inputs of step `answer`: give the step the same parameter, or take it out of the precondition"#]],
    );
    refuses_like_the_compiler(
        asked(one("Facts"), one("Facts").optional()),
        include_str!("../../ui/precondition_input_optional_in_step.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - precondition `ready` takes `Facts`, but step `answer` takes `Option<Facts>`: take the same in both"#]],
    );
    assert!(asked(one("Facts").optional(), one("Facts")).build().is_ok());
}

#[test]
fn a_workflow_that_no_event_opens_is_refused() {
    // S9
    let alarmed = DependencyTable::builder("research")
        .event(EventDef::new("Alarm", Roles::NONE.external()))
        .event(EventDef::new("Answer", Roles::NONE.stop()));
    refuses_like_the_compiler(
        alarmed.step(answers(&[one("Alarm")])),
        include_str!("../../ui/workflow_without_start.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - no step takes a start event, so no run can begin: write `#[event(start)]` on the event that opens a run, and take it in a step"#]],
    );
}

#[test]
fn a_workflow_that_nothing_ends_is_refused() {
    // S9
    refuses_like_the_compiler(
        table(&[("Facts", CONTROL)]).step(step("look_up", &[one("Question")], &[emits("Facts")])).step(step(
            "note",
            &[one("Facts")],
            &[],
        )),
        include_str!("../../ui/workflow_output_that_nothing_emits.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - no step emits a stop event, so no run can complete: write `#[event(stop)]` on the event that ends the run, and return it from a step"#]],
    );
}

/// A writer and a reviewer that trigger each other, and an answer from elsewhere.
fn loops(review: OutputDef, policy: StepPolicy) -> TableBuilder {
    table(&[("Draft", CONTROL), ("Review", CONTROL), ("Note", CONTROL)])
        .step(step("write", &[InputDef::one_of(["Question", "Review"])], &[emits("Draft"), emits("Note")]))
        .step(step("note", &[one("Note")], &[]))
        .step(step("review", &[one("Draft")], &[review]).policy(policy))
        .step(answers(&[one("Question")]))
}

#[test]
fn a_loop_without_a_way_out_is_refused() {
    refuses_like_the_compiler(
        loops(emits("Review"), StepPolicy::DEFAULT),
        include_str!("../../ui/workflow_endless_loop.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - steps `write` and `review` trigger each other for ever: each always emits what the next one takes, and nothing that follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`"#]],
    );
}

#[test]
fn every_loop_is_refused_that_has_no_step_that_is_meant_to_loop() {
    let looping = |rewrite: StepPolicy, ping: StepPolicy| {
        table(&[
            ("Draft", CONTROL),
            ("Review", CONTROL),
            ("Note", CONTROL),
            ("Ping", CONTROL),
            ("Pong", CONTROL),
        ])
        .step(step("begin", &[one("Question")], &[emits("Draft"), emits("Ping")]))
        .step(step("review", &[one("Draft")], &[emits("Review"), emits("Note")]))
        .step(step("rewrite", &[one("Review")], &[emits("Draft")]).policy(rewrite))
        .step(step("amend", &[one("Note")], &[emits("Draft")]).policy(StepPolicy::DEFAULT.loops()))
        .step(step("ping", &[one("Ping")], &[emits("Pong")]).policy(ping))
        .step(step("pong", &[one("Pong")], &[emits("Ping")]))
        .step(answers(&[one("Question")]))
    };
    refuses_like_the_compiler(
        looping(StepPolicy::DEFAULT, StepPolicy::DEFAULT),
        include_str!("../../ui/steps_loop_beside_one_that_is_meant.stderr"),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - steps `review` and `rewrite` trigger each other for ever: each always emits what the next one takes, and nothing that follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`
              - steps `ping` and `pong` trigger each other for ever: each always emits what the next one takes, and nothing that follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`"#]],
    );
    assert!(looping(StepPolicy::DEFAULT.loops(), StepPolicy::DEFAULT.max_executions(2)).build().is_ok());
}

#[test]
fn a_loop_with_a_way_out_is_accepted() {
    let ways = [
        loops(OutputDef::optional("Review"), StepPolicy::DEFAULT),
        loops(emits("Review"), StepPolicy::DEFAULT.max_executions(3)),
        loops(emits("Review"), StepPolicy::DEFAULT.loops()),
        loops(emits("Review"), StepPolicy::DEFAULT).step(step(
            "publish",
            &[one("Draft")],
            &[OutputDef::optional("Answer")],
        )),
    ];
    for table in ways {
        assert!(table.build().is_ok());
    }
}

#[test]
fn every_mistake_of_a_table_is_reported_at_once() {
    refuses(
        table(&[("Weather", CONTROL), ("Facts", CONTROL)])
            .step(step("look_up", &[one("Question"), one("Weather")], &[emits("Facts")]))
            .step(answers(&[one("Facts")]).policy(StepPolicy::DEFAULT.concurrency(0)))
            .step(step("close", &[one("Answer")], &[]))
            .step(step("close", &[], &[])),
        &expect![[r#"
            workflow `research` has 5 mistakes:
              - two steps are named `close`
              - nothing produces `Weather`, which step `look_up` requires: return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run
              - `Answer` ends the run, so no step can take it: let step `close` take an event that comes before it
              - step `close` takes no event, so nothing would ever run it: give it a parameter for the event it waits for, such as `&Question`
              - step `answer` has `concurrency = 0`, so it could never run"#]],
    );
}

#[test]
fn an_unknown_name_hides_no_other_mistake_and_brings_no_others() {
    refuses(
        table(&[("Facts", CONTROL), ("Part", CONTROL), ("Score", CONTROL), ("Hint", CONTROL)])
            .event(EventDef::reply_to("Ask.reply", "Ask"))
            .step(
                step("look_up", &[one("Questoin"), one("Questoin")], &[emits("Fact")])
                    .precondition(PreconditionDef::new("ready").input(one("Question"))),
            )
            .step(step("split", &[one("Facts")], &[OutputDef::fan_out("Parts")]))
            .step(step("score", &[one("Part")], &[emits("Score")]))
            .step(step("review", &[InputDef::gather("Score"), InputDef::reply("Ask.reply")], &[]))
            .step(step("review", &[one("Answer"), one("Weather")], &[]))
            .step(answers(&[one("Facts"), one("Hint")]).policy(StepPolicy::DEFAULT.concurrency(0))),
        &expect![[r#"
            workflow `research` has 9 mistakes:
              - step `look_up` names event `Questoin`, which the table does not have; did you mean `Question`? Otherwise, add it with `TableBuilder::event`
              - step `look_up` names event `Fact`, which the table does not have; did you mean `Facts`? Otherwise, add it with `TableBuilder::event`
              - step `split` names event `Parts`, which the table does not have; did you mean `Facts` or `Part`? Otherwise, add it with `TableBuilder::event`
              - step `review` names event `Weather`, which the table does not have: add it with `TableBuilder::event`
              - event `Ask.reply` replies to `Ask`, which the table does not have: add it with `TableBuilder::event`
              - two steps are named `review`
              - `Answer` ends the run, so no step can take it: let step `review` take an event that comes before it
              - nothing produces `Hint`, which step `answer` requires: return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run
              - step `answer` has `concurrency = 0`, so it could never run"#]],
    );
}

#[test]
fn an_unknown_name_that_many_events_resemble_suggests_each_once() {
    refuses(
        table(&[("Facts", CONTROL), ("Facts", CONTROL), ("Fact", CONTROL)]).step(answers(&[one("Factss")])),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - step `answer` names event `Factss`, which the table does not have; did you mean `Facts` or `Fact`? Otherwise, add it with `TableBuilder::event`
              - two event types are named `Facts`"#]],
    );
}

/// Asserts that the macros' message has these words too.
#[track_caller]
fn like_the_macros(said: &str, words: &str) {
    assert!(said.contains(words), "the macros say something else:\n{said}");
}

#[test]
fn names_that_are_empty_or_would_garble_a_log_line_are_refused() {
    let ready = PreconditionDef::new("is\nready").input(one("Question"));
    refuses(
        DependencyTable::builder("")
            .event(EventDef::new("Question", Roles::NONE.start()))
            .event(EventDef::new("Answer", Roles::NONE.stop()))
            .event(EventDef::new("", CONTROL))
            .event(EventDef::new("", CONTROL))
            .event(EventDef::new("the facts", CONTROL))
            .step(step("look\tup", &[one("Question")], &[emits("the facts"), emits("")]))
            .step(step("", &[one("")], &[]))
            .step(answers(&[one("the facts"), one("Question")]).precondition(ready)),
        &expect![[r#"
            workflow `` has 7 mistakes:
              - the workflow has no name: a name cannot be empty
              - an event has no name: a name cannot be empty
              - an event has no name: a name cannot be empty
              - an event is named "the facts": a name has no spaces or control characters
              - a step is named "look\tup": a name has no spaces or control characters
              - a step has no name: a name cannot be empty
              - a precondition is named "is\nready": a name has no spaces or control characters"#]],
    );
    let garbled = "a name has no spaces or control characters";
    like_the_macros(include_str!("../../ui/event_name_with_spaces.stderr"), garbled);
    like_the_macros(include_str!("../../ui/workflow_name_with_spaces.stderr"), garbled);
    like_the_macros(include_str!("../../ui/event_empty_name.stderr"), "a name cannot be empty");
    like_the_macros(include_str!("../../ui/step_name_empty.stderr"), "a name cannot be empty");
}

#[test]
fn an_event_that_opens_a_run_and_ends_it_is_refused() {
    // S2
    refuses(
        table(&[("Ping", Roles::NONE.start().stop())])
            .step(step("echo", &[one("Ping")], &[]))
            .step(answers(&[one("Question")])),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - event `Ping` cannot both open a run and end it: leave out `start` or `stop`"#]],
    );
    let words = "cannot both open a run and end it: leave out `start` or `stop`";
    like_the_macros(include_str!("../../ui/event_starts_and_stops.stderr"), words);
}

#[test]
fn what_is_only_shown_is_neither_taken_nor_emitted() {
    // S2
    let progress = |roles: Roles| {
        let ready = PreconditionDef::new("ready").input(one("Progress"));
        table(&[("Progress", roles)])
            .step(step("look_up", &[one("Question")], &[emits("Progress")]))
            .step(answers(&[one("Progress")]).precondition(ready))
    };
    refuses(
        progress(Roles::NONE.display()),
        &expect![[r#"
        workflow `research` has 2 mistakes:
          - step `look_up` cannot emit `Progress`: it is display only and never in the log; give it the role `control` too, or leave it out
          - step `answer` cannot take `Progress`: it is display only and triggers nothing; give it the role `control` too, or leave it out"#]],
    );
    like_the_macros(include_str!("../../ui/step_input_display_only.stderr"), "display only");
    like_the_macros(include_str!("../../ui/step_output_of_no_event.stderr"), "display only");
    assert!(progress(Roles::NONE.display().control()).build().is_ok());
    let unused = table(&[("Progress", Roles::NONE.display())]).step(step("note", &[one("Question")], &[]));
    assert_eq!(unused.build().unwrap_err().problems, [TableProblem::NoStop]);
}

#[test]
fn a_reply_belongs_to_one_request_alone() {
    refuses(
        table(&[("Ask", CONTROL.request()), ("Facts", CONTROL)])
            .event(EventDef::reply_to("Ask.reply", "Ask"))
            .event(EventDef::reply_to("Ask.other", "Ask"))
            .event(EventDef::reply_to("Facts.reply", "Facts"))
            .step(step("ask", &[one("Question")], &[emits("Ask"), emits("Facts")]))
            .step(step("note", &[InputDef::reply("Facts.reply"), InputDef::reply("Facts")], &[]))
            .step(answers(&[InputDef::reply("Ask.reply"), InputDef::reply("Ask.other")])),
        &expect![[r#"
            workflow `research` has 3 mistakes:
              - step `note` waits for `Facts` as a reply, but it replies to no request: make it with `EventDef::reply_to`
              - request `Ask` has two replies, `Ask.reply` and `Ask.other`: leave one of them out
              - event `Facts.reply` replies to `Facts`, but only a request has a reply: give `Facts` the role `request`"#]],
    );
    like_the_macros(
        include_str!("../../ui/event_reply_without_request.stderr"),
        "only a request has a reply",
    );
}

#[test]
fn an_input_of_no_events_is_refused() {
    let none: [&str; 0] = [];
    let ready = PreconditionDef::new("ready").input(InputDef::list(none));
    refuses(
        table(&[])
            .step(step("review", &[InputDef::one_of(none)], &[]))
            .step(answers(&[one("Question")]).precondition(ready)),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - step `review` has an input of no events, which waits for nothing: name one, or leave it out
              - step `answer` has an input of no events, which waits for nothing: name one, or leave it out"#]],
    );
}

#[test]
fn an_input_that_holds_an_event_twice_is_refused() {
    refuses(
        table(&[]).step(answers(&[InputDef::one_of(["Question", "Question"])])),
        &expect![[r#"
        workflow `research` has 1 mistake:
          - step `answer` has an input that holds `Question` twice: name each event once"#]],
    );
}

#[test]
fn an_unchecked_table_needs_only_what_its_scheduler_needs() {
    let unreachable = table(&[("Draft", CONTROL)]).step(step("improve", &[one("Draft")], &[emits("Draft")]));
    assert!(unreachable.build_unchecked().is_ok());
    let error = table(&[]).step(step("tick", &[], &[])).build_unchecked().unwrap_err();
    expect![[r#"
        workflow `research` has 1 mistake:
          - step `tick` takes no event, so nothing would ever run it: give it a parameter for the event it waits for, such as `&Question`"#]].assert_eq(&error.to_string());
}

// S48
#[test]
fn an_unchecked_table_has_no_gather_that_no_fan_out_ends() {
    let with = |gathered: &str| {
        table(&[("Draft", CONTROL)])
            .event(EventDef::failure("Failure"))
            .step(step("write", &[one("Question")], &[emits("Draft")]))
            .step(answers(&[one("Draft"), one("Failure"), InputDef::gather(gathered)]).catches(["write"]))
            .build_unchecked()
    };
    let error = with("Failure").unwrap_err();
    assert!(matches!(&error.problems[..], [TableProblem::FailuresGathered { .. }]), "{error}");
    let error = with("Answer").unwrap_err();
    assert!(matches!(&error.problems[..], [TableProblem::StopTaken { .. }]), "{error}");
    // A step that only takes a stop event never runs, which the scheduler can work with.
    let never = table(&[]).step(step("after", &[one("Answer")], &[emits("Answer")]));
    assert!(never.build_unchecked().is_ok());
}

// S59
#[test]
fn a_gather_by_item_collects_several_types_or_none_and_refuses_what_no_branch_has() {
    let fans = |gather: InputDef| {
        table(&[("Note", CONTROL), ("Weight", CONTROL), ("Length", CONTROL), ("Other", CONTROL)])
            .step(step("split", &[one("Question")], &[OutputDef::fan_out("Note")]))
            .step(step("weigh", &[one("Note")], &[OutputDef::many("Weight"), OutputDef::many("Length")]))
            .step(step("other", &[one("Question")], &[emits("Other")]))
            .step(answers(&[gather]))
            .build()
    };
    let both = fans(InputDef::gather_of("Note", ["Weight", "Length"])).unwrap();
    let graph = both.graph();
    let edges = graph.edges.iter().filter(|edge| edge.kind == workflow_core::draw::EdgeKind::Gather);
    assert_eq!(edges.map(|edge| &*edge.event).collect::<Vec<_>>(), ["Weight", "Length"]);
    assert_eq!(DependencyTable::from_shape(&both.shape()).unwrap().shape(), both.shape());
    let none = fans(InputDef::gather_of("Note", <[&str; 0]>::default())).unwrap();
    assert!(none.shape().steps[3].inputs[0].events.is_empty());
    // One of them is enough.
    assert!(fans(InputDef::gather_of("Note", ["Other", "Weight"])).is_ok());
    let error = fans(InputDef::gather_of("Note", ["Other"])).unwrap_err();
    assert!(matches!(&error.problems[..], [TableProblem::GatherFitsNothing { .. }]), "{error}");
}
