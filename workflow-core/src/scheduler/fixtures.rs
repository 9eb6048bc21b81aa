//! A small table for tests of the scheduler's parts.

use std::sync::Arc;

use super::{Board, Entry, SchedulerLimits};
use crate::event::Roles;
use crate::id::ScopeId;
use crate::table::TableBuilder;
use crate::table::{
    DependencyTable, EventDef, EventIndex, InputDef, OutputDef, PreconditionDef, StepDef, StepIndex,
};

/// `Begin` opens one branch per `Item`. In a branch, `ask` sends a request, and `pack` takes the item with
/// the latest `Note`. `check` takes the packed item if its precondition agrees, and `gather` gathers it.
/// `pair` takes the first two notes.
fn table() -> DependencyTable {
    let events = [
        EventDef::new("Begin", Roles::NONE.start()),
        EventDef::new("Note", Roles::NONE.external()),
        EventDef::new("Item", Roles::NONE),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Answer", "Ask"),
        EventDef::new("Packed", Roles::NONE),
        EventDef::new("Done", Roles::NONE.stop()),
    ];
    let steps = [
        StepDef::new("open").input(InputDef::one("Begin")).output(OutputDef::fan_out("Item")),
        StepDef::new("ask").input(InputDef::one("Item")).output(OutputDef::event("Ask")),
        StepDef::new("pack")
            .input(InputDef::one("Item"))
            .input(InputDef::one("Note"))
            .output(OutputDef::event("Packed")),
        StepDef::new("check")
            .input(InputDef::one("Packed"))
            .precondition(PreconditionDef::new("may_check"))
            .output(OutputDef::event("Done")),
        StepDef::new("pair").input(InputDef::fixed(2, ["Note"])),
        StepDef::new("gather").input(InputDef::gather("Packed")).output(OutputDef::event("Done")),
    ];
    let builder = events.into_iter().fold(DependencyTable::builder("sample"), TableBuilder::event);
    let builder = steps.into_iter().fold(builder, TableBuilder::step);
    builder.build_unchecked().expect("the table is sound")
}

/// The board of a run with an empty log.
pub(super) fn board(limits: SchedulerLimits) -> Board {
    Board::new(Arc::new(table()), limits)
}

pub(super) fn event(board: &Board, name: &str) -> EventIndex {
    board.table.event_named(name).expect("the table has the event")
}

pub(super) fn step(board: &Board, name: &str) -> StepIndex {
    board.table.step_named(name).expect("the table has the step")
}

/// Numbers an event of the root.
pub(super) fn entry(board: &mut Board, name: &str) -> Entry {
    entry_in(board, ScopeId::ROOT, name)
}

pub(super) fn entry_in(board: &mut Board, scope: ScopeId, name: &str) -> Entry {
    let event = event(board, name);
    board.number(scope, event).expect("the log has room")
}
