//! The messages of all mistakes, in one place for the compiler and for tables built at run time.
//!
//! ```text
//!  Mistake ─ text ─▶ a function here ─▶ Text ─┬─▶ panic in constant evaluation: an error of the compiler
//!                                             └─▶ `TableProblem` of a table that is built at run time
//! ```
//!
//! Invariant: a message says what is wrong with which names, and then what to write instead. It depends on
//! its arguments alone, so the compiler and a run-time table say the same.
//!
//! Example: `nothing_produces("ship", [Paid], [Payed])`: "nothing produces `Paid`, which step `ship`
//! requires; did you mean `Payed`? Otherwise, return it from a step, or write ...".

use super::names::{Names, same};
use super::text::Text;

/// A step takes an event that ends the run: a dangling stop.
pub(crate) const fn stop_taken(step: &str, event: &str) -> Text {
    Text::of("")
        .name(event)
        .and(" ends the run, so no step can take it: let step ")
        .name(step)
        .and(" take an event that comes before it")
}

/// A step names steps to catch, but has no parameter for their failures.
pub(crate) const fn catches_without_input(step: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" catches failures, but does not take them: give it a parameter such as `&StepFailed`, ")
        .and("or leave out `catches`")
}

/// A step takes failures where nothing can fail that it could catch.
pub(crate) const fn nothing_to_catch(step: &str, event: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" takes ")
        .name(event)
        .and(", but there is no step whose failure it would take: every other step takes failures itself, ")
        .and("and is caught only by name; write `catches = [the_step]`")
}

/// A step emits an event that only the library may emit.
pub(crate) const fn failure_emitted(step: &str, event: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" emits ")
        .name(event)
        .and(", which only the library does, when a step fails: return an error, or an event of your own")
}

/// A clean-up step takes failures.
pub(crate) const fn clean_up_catches(step: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" runs at the end, so it can catch no failure: take a `&RunInfo`, whose `ending()` says which ")
        .and("steps failed")
}

/// A step catches a clean-up step by name.
pub(crate) const fn catches_clean_up(step: &str, caught: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" cannot catch ")
        .name(caught)
        .and(", which runs at the end: leave it out of `catches`, and handle its errors in the step itself")
}

/// A clean-up step emits an event.
pub(crate) const fn clean_up_emits(step: &str, event: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" runs at the end, when nothing enters the log any more, so it cannot emit ")
        .name(event)
        .and(": return nothing, or leave out `on_end`")
}

/// A clean-up step requires events of branches.
pub(crate) const fn clean_up_in_branch(step: &str, events: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" runs once for the whole run, which has no ");
    listed(&text, events, " or ")
        .and(": only branches have it; gather the branches, or let a step emit an event after the gather")
}

/// A step gathers failures.
pub(crate) const fn failures_gathered(step: &str, event: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" gathers ")
        .name(event)
        .and(", which branches keep to themselves: gather what the branches emit, and look at its `failed()`, ")
        .and("or let a step catch the failure and emit an event of your own")
}

/// A step takes a fixed list of length 0.
pub(crate) const fn empty_fixed_list(step: &str) -> Text {
    Text::of("step ").name(step).and(" takes a fixed list of 0 events, which waits for nothing: leave it out")
}

/// A step has a passive input that is neither one event nor a list, or that takes failures.
pub(crate) const fn unfit_passive(step: &str, events: &Names<'_>) -> Text {
    let text = listed(&Text::of("step ").name(step).and(" reads "), events, " or ");
    text.and(
        " as a passive input, which takes one event or a list, and no failures: take it as another input",
    )
}

/// A step waits for a fixed list that no run can fill.
#[expect(clippy::cast_possible_truncation, reason = "it is less than the count, which fits")]
pub(crate) const fn list_capacity(step: &str, events: &Names<'_>, count: u32, most: u64) -> Text {
    let text = Text::of("step ").name(step).and(" waits for ").number(count).and(" of ");
    listed(&text, events, " or ")
        .and(", of which a run has at most ")
        .number(most as u32)
        .and(": wait for fewer, take a `List`, or emit more")
}

/// A step takes an event that it emits itself.
pub(crate) const fn takes_its_own(step: &str, event: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" takes ")
        .name(event)
        .and(" and emits it, so it triggers itself: write `#[step(loops)]` if that is meant, ")
        .and("or emit another event")
}

/// A step requires an event that nothing produces.
pub(crate) const fn nothing_produces(step: &str, events: &Names<'_>, similar: &Names<'_>) -> Text {
    let text = listed(&Text::of("nothing produces "), events, " or ");
    let text = text.and(if events.count() > 1 { ", one of which step " } else { ", which step " });
    let text = did_you_mean(&text.name(step).and(" requires"), similar);
    if events.is_an_expiry() {
        return text.and("return the request with a time, as `Expiring<…>`, which `expires_in` makes");
    }
    text.and("return it from a step, or write `#[event(external)]` on it if it is sent in from outside, ")
        .and("or `#[event(start)]` if it opens a run")
}

/// Ends the first half of a message, with names that the user may have meant.
const fn did_you_mean(text: &Text, similar: &Names<'_>) -> Text {
    if similar.count() == 0 {
        return text.and(": ");
    }
    listed(&text.and("; did you mean "), similar, " or ").and("? Otherwise, ")
}

/// A step waits for the reply to a request that nothing emits.
pub(crate) const fn no_request(step: &str, request: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" waits for the reply to ")
        .name(request)
        .and(", but no step asks for it: return ")
        .name(request)
        .and(" from a step")
}

/// A gather fits no fan-out.
pub(crate) const fn gather_fits_nothing(step: &str, event: &str, item: &str, items: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" gathers ").name(event);
    if !item.is_empty() {
        let text = text.and(" of branches of ").name(item);
        if !items.has(item) {
            return text.and(", but no step fans out to it: return `FanOut<").and(item).and(">` from one");
        }
        let text = text.and(", which have none: emit ").name(event);
        return text.and(" in a step that follows from ").name(item);
    }
    if items.count() == 0 {
        return text.and(", but no step fans out: return `FanOut<").and(event).and(">` from one");
    }
    let text = text.and(", which is neither the item of a fan-out nor emitted in a branch of one: return ");
    let text = text.and("`FanOut<").and(event).and(">` from a step, or emit ").name(event);
    listed(&text.and(" in a step that follows from "), items, " or ")
}

/// A gather fits fan-outs with several items.
pub(crate) const fn ambiguous_gather(step: &str, event: &str, items: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" gathers ").name(event);
    let text = listed(&text.and(", which branches of "), items, " and ");
    text.and(" have: name one as the item, such as `Gather<").and(event).and(", ").and(items.get(0)).and(">`")
}

/// A step takes no event.
pub(crate) const fn no_event_input(step: &str, such_as: &str) -> Text {
    let text = Text::of("step ").name(step).and(" takes no event, so nothing would ever run it: ");
    if such_as.is_empty() {
        return text.and("give it a parameter for the event it waits for");
    }
    text.and("give it a parameter for the event it waits for, such as `&").and(such_as).and("`")
}

/// Steps wait for each other.
pub(crate) const fn unreachable(step: &str, event: &str, emitter: &str) -> Text {
    let text = Text::of("step ").name(step).and(" can never run: it waits for ").name(event);
    if same(step, emitter) {
        let text = text.and(", which it emits itself: let it take an event that is there before, or emit ");
        return text.name(event).and(" in another step");
    }
    text.and(", which step ")
        .name(emitter)
        .and(" emits, and that waits in turn for step ")
        .name(step)
        .and(": let one of them take an event that is there before, or an `Option` of this one")
}

/// A step has optional parameters only, and none of them is ever filled.
pub(crate) const fn never_triggered(step: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" can never run: nothing produces any of the events it takes, which are all optional; ")
        .and("return one of them from a step, or leave the step out")
}

/// A step requires events of branches that do not see each other.
pub(crate) const fn disjoint_branches(step: &str, events: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" can never run: no branch has ");
    listed(&text, events, " and ")
        .and(" in sight together, because branches do not see each other; let it take a `Gather` of each, ")
        .and("which is there once all branches are settled")
}

/// A step requires events that follow from different start events.
pub(crate) const fn disjoint_starts(step: &str, events: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" can never run: no run has ");
    listed(&text, events, " and ")
        .and(" together, because a run begins with one start event; let it take an `EventSet` enum of them, ")
        .and("or write `#[event(external)]` on a start event that is sent in later")
}

/// A precondition takes an event that its step does not take.
pub(crate) const fn precondition_input(
    step: &str,
    precondition: &str,
    parameter: &str,
    instead: &str,
) -> Text {
    let text = Text::of("precondition ").name(precondition).and(" takes ").name(parameter);
    if instead.is_empty() {
        return text
            .and(", which is not among the inputs of step ")
            .name(step)
            .and(": give the step the same parameter, or take it out of the precondition");
    }
    text.and(", but step ").name(step).and(" takes ").name(instead).and(": take the same in both")
}

/// The branches of a fan-out end neither in a gather nor in a stop.
pub(crate) const fn fan_out_never_ends(step: &str, item: &str) -> Text {
    Text::of("step ")
        .name(step)
        .and(" fans out ")
        .name(item)
        .and(", but its branches can end neither in a gather nor in a stop: let a step take `Gather<")
        .and(item)
        .and(">`, or a `Gather` of what the branches emit")
}

/// A step ends the run with an event that the declared output cannot hold.
pub(crate) const fn unexpected_stop(step: &str, event: &str, expected: &Names<'_>) -> Text {
    let text = Text::of("step ").name(step).and(" ends the run with ").name(event);
    let text = listed(&text.and(", but the output of the workflow is "), expected, " or ");
    if expected.count() > 1 {
        return text.and(": give the enum that `#[workflow(output = …)]` names a variant for it");
    }
    text.and(": derive `EventSet` on an enum of both and name it, as in `#[workflow(output = TheEnum)]`")
}

/// The declared output of a workflow names no stop event.
pub(crate) const fn output_ends_nothing(events: &Names<'_>) -> Text {
    let text = listed(&Text::EMPTY, events, " or ");
    text.and(" does not end a run")
        .and(", so it cannot be the output of a workflow: write `#[event(stop)]` on it, or name the event ")
        .and("that ends the run")
}

/// No step takes a start event.
pub(crate) const fn no_start() -> Text {
    Text::of("no step takes a start event, so no run can begin: ")
        .and("write `#[event(start)]` on the event that opens a run, and take it in a step")
}

/// No step emits a stop event.
pub(crate) const fn no_stop() -> Text {
    Text::of("no step emits a stop event, so no run can complete: ")
        .and("write `#[event(stop)]` on the event that ends the run, and return it from a step")
}

/// Steps trigger each other without end.
pub(crate) const fn endless_loop(steps: &Names<'_>) -> Text {
    listed(&Text::of("steps "), steps, " and ")
        .and(" trigger each other for ever: each always emits what the next one takes, and nothing that ")
        .and("follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a ")
        .and("precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`")
}

/// A stop event sent to a workflow whose runs do not end with it.
pub(crate) const fn ends_no_run(workflow: &str, event: &str) -> Text {
    let text = Text::of("no run of ").name(workflow).and(" ends with ").name(event);
    text.and(
        ": declare it with `#[workflow(output = …)]`, as a type that holds the workflow's stop events and it",
    )
}

/// An event sent to a workflow that does not take it.
pub(crate) const fn not_taken(workflow: &str, event: &str, taken: &Names<'_>) -> Text {
    let text = Text::of("no step of ").name(workflow).and(" takes ").name(event);
    if taken.count() == 0 {
        return text.and(": give a step a parameter of its type");
    }
    listed(&text.and(": send "), taken, " or ").and(", or give a step a parameter of its type")
}

/// Appends the names as a list: `A`, `B` and `C`.
const fn listed(text: &Text, names: &Names<'_>, last: &str) -> Text {
    let (mut text, mut at) = (*text, 0);
    while at < names.listed() {
        // A list that is cut off has no last name here: the number of the others ends it.
        let is_last = at + 1 == names.count();
        let separator = if at == 0 {
            ""
        } else if is_last {
            last
        } else {
            ", "
        };
        text = text.and(separator).name(names.get(at));
        at += 1;
    }
    if names.count() == names.listed() {
        return text;
    }
    #[expect(clippy::cast_possible_truncation, reason = "names are few")]
    let others = (names.count() - names.listed()) as u32;
    text.and(last).number(others).and(" others")
}
