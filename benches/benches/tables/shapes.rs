//! The shapes of tables that the bench builds, each of any number of steps. Nothing is measured here.

use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepPolicy, TableBuilder,
};

/// Makes the builder of a table with this number of steps.
pub(crate) type Shape = fn(usize) -> TableBuilder;

/// Every shape, by name.
pub(crate) const ALL: [(&str, Shape); 19] = [
    ("chain", chain),
    ("reversed", reversed),
    ("shuffled", shuffled),
    ("fan-in", fan_in),
    ("two-ends", two_ends),
    ("any-of", any_of),
    ("lattice", lattice),
    ("layers", layers),
    ("choices", choices),
    ("bypasses", bypasses),
    ("mixed", mixed),
    ("lists", lists),
    ("fixed", fixed),
    ("two-starts", two_starts),
    ("loops", loops),
    ("fan-outs", fan_outs),
    ("nested", nested),
    ("one-gather", one_gather),
    ("catches", catches),
];

fn table(name: &str) -> TableBuilder {
    DependencyTable::builder(name)
        .event(EventDef::new("Start", Roles::NONE.start()))
        .event(EventDef::new("Stop", Roles::NONE.stop()))
}

fn events(table: TableBuilder, names: impl IntoIterator<Item = String>) -> TableBuilder {
    names.into_iter().fold(table, |table, name| table.event(EventDef::new(name, Roles::NONE)))
}

fn step(name: impl Into<String>, inputs: impl IntoIterator<Item = String>, output: OutputDef) -> StepDef {
    let step = StepDef::new(name.into()).output(output);
    inputs.into_iter().map(InputDef::one).fold(step, StepDef::input)
}

/// The name of an event of a chain, where the first is `Start` and the last `Stop`.
fn link(at: usize, of: usize) -> String {
    match at {
        0 => "Start".to_owned(),
        at if at == of => "Stop".to_owned(),
        at => format!("E{at}"),
    }
}

/// The steps of a chain in this order of declaration.
fn chain_in(order: impl Iterator<Item = usize>, steps: usize) -> TableBuilder {
    let table = events(table("chain"), (1..steps).map(|at| link(at, steps)));
    order.fold(table, |table, at| {
        let emitted = OutputDef::event(link(at + 1, steps));
        table.step(step(format!("s{at}"), [link(at, steps)], emitted))
    })
}

/// Each step takes what the step before emits.
fn chain(steps: usize) -> TableBuilder {
    chain_in(0..steps, steps)
}

/// A chain whose last step is declared first.
fn reversed(steps: usize) -> TableBuilder {
    chain_in((0..steps).rev(), steps)
}

/// A chain that is declared in no order. 7,919 is a prime that divides no size of the bench.
fn shuffled(steps: usize) -> TableBuilder {
    chain_in((0..steps).map(|at| at * 7_919 % steps), steps)
}

/// All steps but one run at the start, and the last one takes an event of each.
fn fan_in(steps: usize) -> TableBuilder {
    let last = steps - 1;
    let all = || (0..last).map(|at| format!("E{at}"));
    let table = events(table("fan-in"), all());
    let table = (0..last).fold(table, |table, at| {
        table.step(step(format!("s{at}"), ["Start".into()], OutputDef::event(format!("E{at}"))))
    });
    table.step(step("join", all(), OutputDef::event("Stop")))
}

/// All steps but two run at the start, and these two take an event of each. Either can end the run.
fn two_ends(steps: usize) -> TableBuilder {
    let last = steps - 2;
    let all = || (0..last).map(|at| format!("E{at}"));
    let table = events(table("two-ends"), all());
    let table = (0..last).fold(table, |table, at| {
        table.step(step(format!("s{at}"), ["Start".into()], OutputDef::event(format!("E{at}"))))
    });
    ["one", "other"]
        .into_iter()
        .fold(table, |table, end| table.step(step(end, all(), OutputDef::event("Stop"))))
}

/// All steps but one run at the start, and the last one takes any event of these.
fn any_of(steps: usize) -> TableBuilder {
    let last = steps - 1;
    let all = || (0..last).map(|at| format!("E{at}"));
    let table = events(table("any-of"), all());
    let table = (0..last).fold(table, |table, at| {
        table.step(step(format!("s{at}"), ["Start".into()], OutputDef::event(format!("E{at}"))))
    });
    let any = StepDef::new("any").input(InputDef::one_of(all())).output(OutputDef::optional("Stop"));
    table.step(any)
}

/// Rows of steps, each of which takes the events of two neighbours in the row above.
fn lattice(steps: usize) -> TableBuilder {
    const WIDTH: usize = 10;
    let name = |at: usize| if at + 1 == steps { "Stop".to_owned() } else { format!("E{at}") };
    let table = events(table("lattice"), (0..steps - 1).map(name));
    (0..steps).fold(table, |table, at| {
        let inputs = match at.checked_sub(WIDTH) {
            None => vec!["Start".to_owned()],
            Some(above) => vec![name(above), name(above - above % WIDTH + (above + 1) % WIDTH)],
        };
        table.step(step(format!("s{at}"), inputs, OutputDef::event(name(at))))
    })
}

/// Rows of steps, each of which takes one event of the row above, which five steps take.
fn layers(steps: usize) -> TableBuilder {
    const WIDTH: usize = 5;
    let row = |at: usize| if at < WIDTH { "Start".to_owned() } else { format!("E{}", at / WIDTH) };
    let rows = steps / WIDTH;
    let table = events(table("layers"), (1..rows).map(|row| format!("E{row}")));
    (0..steps).fold(table, |table, at| {
        let emitted = match at {
            last if last + 1 == steps => OutputDef::event("Stop"),
            // One step of each row triggers the next row.
            first if first % WIDTH == 0 && first / WIDTH + 1 < rows => {
                OutputDef::event(format!("E{}", first / WIDTH + 1))
            }
            _ => return table.step(StepDef::new(format!("s{at}")).input(InputDef::one(row(at)))),
        };
        table.step(step(format!("s{at}"), [row(at)], emitted))
    })
}

/// Choices one after the other: a step emits one of two events, and the next choice takes what either way leads to.
fn choices(steps: usize) -> TableBuilder {
    let count = steps / 4;
    let names = (0..count).flat_map(|at| ["Left", "Right", "A", "B"].map(|name| format!("{name}{at}")));
    let table = events(table("choices"), names);
    (0..count).fold(table, |table, at| {
        let before = match at.checked_sub(1) {
            None => InputDef::one("Start"),
            Some(before) => InputDef::one_of([format!("A{before}"), format!("B{before}")]),
        };
        let choose = StepDef::new(format!("choose{at}"))
            .input(before)
            .output(OutputDef::optional(format!("Left{at}")))
            .output(OutputDef::optional(format!("Right{at}")));
        let left = step(format!("left{at}"), [format!("Left{at}")], OutputDef::event(format!("A{at}")));
        let right = step(format!("right{at}"), [format!("Right{at}")], OutputDef::event(format!("B{at}")));
        let note = InputDef::one_of([format!("A{at}"), format!("B{at}")]);
        let note = StepDef::new(format!("note{at}")).input(note);
        let note = if at + 1 == count { note.output(OutputDef::event("Stop")) } else { note };
        table.step(choose).step(left).step(right).step(note)
    })
}

/// Two chains side by side with the same events at each place, so a step of the one can stand for that of the other.
/// Every tenth pair meets in one step.
fn bypasses(steps: usize) -> TableBuilder {
    const LENGTH: usize = 10;
    let way = |way: &str, at: usize| format!("{way}{at}");
    // Pairs fill the table up to a last step, or two.
    let pairs = (steps - 1) / 2;
    let before = |at: usize| match at {
        0 => InputDef::one("Start"),
        at if at % LENGTH == 0 => InputDef::one(way("B", at - 1)),
        at => InputDef::one_of([way("A", at - 1), way("B", at - 1)]),
    };
    let table = events(table("bypasses"), (0..pairs).flat_map(|at| [way("A", at), way("B", at)]));
    let table = (0..pairs).fold(table, |table, at| {
        let [a, b] = ["A", "B"].map(|chain| {
            StepDef::new(format!("step-{}", way(chain, at)))
                .input(before(at))
                .output(OutputDef::optional(way(chain, at)))
        });
        table.step(a).step(b)
    });
    let ends = steps - pairs * 2;
    (0..ends).fold(table, |table, end| {
        let all = (0..pairs).flat_map(|at| [way("A", at), way("B", at)]);
        let end = StepDef::new(format!("end{end}")).input(InputDef::one_of(all));
        table.step(end.output(OutputDef::optional("Stop")))
    })
}

/// Steps that take one or two of the events shortly before, in all ways, by the digits of a fixed sequence.
fn mixed(steps: usize) -> TableBuilder {
    const REACH: u64 = 40;
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let name = |at: usize| if at == 0 { "Start".to_owned() } else { format!("E{at}") };
    let mut is_taken = vec![false; steps];
    let mut table = events(table("mixed"), (1..steps).map(name));
    for at in 0..steps - 1 {
        let mut before = || {
            let place = at - usize::try_from(random(REACH.min(at as u64 + 1))).expect("it is small");
            is_taken[place] = true;
            name(place)
        };
        let (one, other) = (before(), before());
        let step = StepDef::new(format!("s{at}"));
        let step = match random(8) {
            _ if one == other => step.input(InputDef::one(one)),
            0 => step.input(InputDef::one_of([one, other])),
            1 => step.input(InputDef::list([one])).input(InputDef::one(other)),
            2 => step.input(InputDef::one(one)).input(InputDef::one(other)),
            _ => step.input(InputDef::one(one)),
        };
        let emitted = name(at + 1);
        table = table.step(step.output(match random(8) {
            0 => OutputDef::many(emitted),
            1 | 2 => OutputDef::optional(emitted),
            _ => OutputDef::event(emitted),
        }));
    }
    let rest = (0..steps).filter(|at| !is_taken[*at]).map(name);
    table.step(StepDef::new("end").input(InputDef::one_of(rest)).output(OutputDef::optional("Stop")))
}

/// Pairs of a step that emits any number of events, and a step that takes them as a list.
fn lists(steps: usize) -> TableBuilder {
    pairs(steps, |_, event| InputDef::list([event]))
}

/// The same with fixed lists, whose capacity is checked.
fn fixed(steps: usize) -> TableBuilder {
    pairs(steps, |at, event| {
        // A fixed list in one place is enough for the check of all.
        if at % 2 == 0 { InputDef::fixed(3, [event]) } else { InputDef::one(event) }
    })
}

fn pairs(steps: usize, input: impl Fn(usize, String) -> InputDef) -> TableBuilder {
    let count = steps / 2;
    let table = events(table("pairs"), (0..count).map(|at| format!("Many{at}")));
    let table = events(table, (1..count).map(|at| link(at, count)));
    (0..count).fold(table, |table, at| {
        let many = step(format!("many{at}"), [link(at, count)], OutputDef::many(format!("Many{at}")));
        let take = StepDef::new(format!("take{at}"))
            .input(input(at, format!("Many{at}")))
            .output(OutputDef::event(link(at + 1, count)));
        table.step(many).step(take)
    })
}

/// Two chains from two start events, declared from their ends, that meet before the last step.
fn two_starts(steps: usize) -> TableBuilder {
    let half = (steps - 1) / 2;
    let name = |way: &str, at: usize| match at {
        0 if way == "A" => "Start".to_owned(),
        0 => "Again".to_owned(),
        at => format!("{way}{at}"),
    };
    let last = steps - 1 - half;
    let table = table("two-starts").event(EventDef::new("Again", Roles::NONE.start()));
    let table = events(table, (1..=half).map(|at| name("A", at)));
    let table = events(table, (1..=last).map(|at| name("B", at)));
    let way = |table: TableBuilder, way: &str, of: usize| {
        (0..of).rev().fold(table, |table, at| {
            let emitted = OutputDef::event(name(way, at + 1));
            table.step(step(format!("{way}{at}"), [name(way, at)], emitted))
        })
    };
    let end = StepDef::new("end").input(InputDef::one_of([name("A", half), name("B", last)]));
    let table = table.step(end.output(OutputDef::event("Stop")));
    way(way(table, "A", half), "B", last)
}

/// Pairs of steps that trigger each other until the second one triggers the next pair.
fn loops(steps: usize) -> TableBuilder {
    let count = steps / 2;
    let table = events(table("loops"), (1..count).map(|at| link(at, count)));
    let table = events(table, (0..count).flat_map(|at| [format!("Draft{at}"), format!("Again{at}")]));
    (0..count).fold(table, |table, at| {
        let write = StepDef::new(format!("write{at}"))
            .input(InputDef::one_of([link(at, count), format!("Again{at}")]))
            .output(OutputDef::event(format!("Draft{at}")));
        let review = StepDef::new(format!("review{at}"))
            .input(InputDef::one(format!("Draft{at}")))
            .output(OutputDef::event(format!("Again{at}")))
            .output(OutputDef::optional(link(at + 1, count)))
            .policy(StepPolicy::DEFAULT.max_executions(3));
        // The limit is the way out of every second loop only. The others end with the run.
        let review = if at % 2 == 0 { review } else { review.policy(StepPolicy::DEFAULT) };
        table.step(write).step(review)
    })
}

/// Fan-outs one after the other, of four steps each. The steps in branches also take an event from outside of them.
fn fan_outs(steps: usize) -> TableBuilder {
    let count = steps / 4;
    let table = events(table("fan-outs"), (1..count).map(|at| link(at, count)));
    let names = (0..count).flat_map(|at| ["Page", "Text", "Note"].map(|name| format!("{name}{at}")));
    (0..count).fold(events(table, names), |table, at| {
        let [page, text, note] = ["Page", "Text", "Note"].map(|name| format!("{name}{at}"));
        let split = step(format!("split{at}"), [link(at, count)], OutputDef::fan_out(page.clone()));
        let read = step(format!("read{at}"), [page, link(at, count)], OutputDef::event(text.clone()));
        let note_it = step(format!("note{at}"), [text], OutputDef::event(note.clone()));
        let sum = StepDef::new(format!("sum{at}")).input(InputDef::gather(note));
        let sum = sum.output(OutputDef::event(link(at + 1, count)));
        table.step(split).step(read).step(note_it).step(sum)
    })
}

/// Groups of three nested fan-outs, one group after the other.
fn nested(steps: usize) -> TableBuilder {
    let count = steps / 8;
    let rest = steps - count * 8;
    let table = events(table("nested"), (1..count).map(|at| link(at, count)));
    let names = ["Book", "Page", "Line", "Word", "Words", "Lines"];
    let table = events(table, (0..count).flat_map(|at| names.map(|name| format!("{name}{at}"))));
    let table = (0..count).fold(table, |table, at| {
        let [book, page, line, word, words, lines] = names.map(|name| format!("{name}{at}"));
        let gather = |name: &str, event: &str, output: OutputDef| {
            StepDef::new(format!("{name}{at}")).input(InputDef::gather(event)).output(output)
        };
        table
            .step(step(format!("books{at}"), [link(at, count)], OutputDef::fan_out(book.clone())))
            .step(step(format!("pages{at}"), [book], OutputDef::fan_out(page.clone())))
            .step(step(format!("lines{at}"), [page.clone()], OutputDef::fan_out(line.clone())))
            .step(step(format!("read{at}"), [line], OutputDef::event(word.clone())))
            .step(step(format!("note{at}"), [page, word.clone()], OutputDef::many(format!("Note{at}"))))
            .event(EventDef::new(format!("Note{at}"), Roles::NONE))
            .step(gather("words", &word, OutputDef::event(words.clone())))
            .step(gather("sum", &words, OutputDef::event(lines.clone())))
            .step(gather("end", &lines, OutputDef::event(link(at + 1, count))))
    });
    (0..rest)
        .fold(table, |table, at| table.step(StepDef::new(format!("rest{at}")).input(InputDef::one("Start"))))
}

/// Fan-outs side by side that one step gathers.
fn one_gather(steps: usize) -> TableBuilder {
    let count = (steps - 1) / 2;
    let rest = steps - 1 - count * 2;
    let table = events(table("one-gather"), (0..count).map(|at| format!("Page{at}")));
    let table = events(table, ["Text".to_owned()]);
    let table = (0..count).fold(table, |table, at| {
        let page = format!("Page{at}");
        let split = step(format!("split{at}"), ["Start".into()], OutputDef::fan_out(page.clone()));
        table.step(split).step(step(format!("read{at}"), [page], OutputDef::event("Text")))
    });
    let table = (0..rest)
        .fold(table, |table, at| table.step(StepDef::new(format!("rest{at}")).input(InputDef::one("Start"))));
    let sum = StepDef::new("sum").output(OutputDef::event("Stop"));
    // The fan-outs have different items, so the gather names one.
    table.step((0..count).fold(sum, |sum, at| sum.input(InputDef::gather_of(format!("Page{at}"), ["Text"]))))
}

/// Pairs of a step in a chain and a step that catches its failure, beside a step that catches all others.
fn catches(steps: usize) -> TableBuilder {
    let count = (steps - 1) / 2;
    let rest = steps - 1 - count * 2;
    let table = events(table("catches"), (1..count).map(|at| link(at, count)));
    let table = table.event(EventDef::failure("StepFailed"));
    let table = (0..count).fold(table, |table, at| {
        let name = format!("s{at}");
        let next = || OutputDef::event(link(at + 1, count));
        let catch = step(format!("catch{at}"), ["StepFailed".into()], next()).catches([name.clone()]);
        table.step(step(name, [link(at, count)], next())).step(catch)
    });
    let table = (0..rest)
        .fold(table, |table, at| table.step(StepDef::new(format!("rest{at}")).input(InputDef::one("Start"))));
    table.step(StepDef::new("report").input(InputDef::one("StepFailed")))
}
