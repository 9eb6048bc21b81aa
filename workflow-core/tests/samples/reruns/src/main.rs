//! Every kind of parameter that may run its step more often than meant. Those that draw a warning stand on
//! a line of their own, which says so; nothing else in this file draws one.

use std::sync::Arc;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Ask {
    notes: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Note;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Mark;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Confirm;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done {
    notes: usize,
}

#[derive(Debug, EventSet)]
enum Either {
    Note(Note),
    Mark(Mark),
}

type Notes = List<Note>;

type Perhaps<T> = Option<T>;

#[precondition]
fn always() -> bool {
    true
}

struct Notebook;

#[workflow]
impl Notebook {
    #[step]
    async fn write(&self, ask: &Ask, confirm: &Emitter<Confirm>) -> Result<Vec<Note>, StepError> {
        confirm.emit(Confirm)?;
        Ok(vec![Note; ask.notes])
    }

    #[step]
    async fn split(&self, ask: &Ask) -> FanOut<Mark> {
        vec![Mark; ask.notes].into_iter().collect()
    }

    #[step]
    async fn borrowed(
        &self,
        _ask: &Ask,
        _note: Option<&Note>, // warns: an optional input
    ) {
    }

    #[step]
    async fn owned(
        &self,
        _ask: Ask,
        _note: Option<Note>,      // warns: an optional input
        _mark: Option<Arc<Mark>>, // warns: an optional input
    ) {
    }

    #[step]
    async fn nothing_required(
        &self,
        _either: Option<Either>, // warns: an optional input
    ) {
    }

    #[step]
    async fn list(
        &self,
        _notes: List<Note>, // warns: a list input
    ) {
    }

    #[step]
    async fn list_of_either(
        &self,
        _ask: &Ask,
        _all: &List<Either>, // warns: a list input
    ) {
    }

    #[step]
    async fn by_another_name(
        &self,
        _mark: Perhaps<&Mark>, // warns: an optional input
        _notes: &Notes,        // warns: a list input
    ) {
    }

    #[step]
    async fn optional_of_many(
        &self,
        _ask: Arc<Ask>,
        _notes: Option<&List<Note>>,         // warns: an optional input
        _pair: Option<FixedList<Note, 2>>,   // warns: an optional input
        _marks: Option<Gather<Mark>>,        // warns: an optional input
        _confirmed: Option<&Reply<Confirm>>, // warns: an optional input
    ) {
    }

    #[step]
    async fn required(
        &self,
        _note: &Note,
        _either: Either,
        _ask: Arc<Ask>,
        _info: RunInfo,
        _run: &RunContext,
    ) {
    }

    #[step]
    async fn once(&self, _pair: &FixedList<Note, 2>, _marks: &Gather<Mark>, _confirmed: &Reply<Confirm>) {}

    /// Says that it is meant.
    #[step(reruns)]
    async fn meant(&self, _ask: &Ask, _note: Option<&Note>, _notes: &List<Note>) {}

    /// Says when.
    #[step(precondition = always)]
    async fn asked(&self, _ask: &Ask, _note: Option<&Note>, _notes: List<Note>) {}

    #[precondition]
    fn complete(ask: &Ask, notes: &List<Note>) -> bool {
        notes.len() == ask.notes
    }

    /// Says when, too.
    #[step(precondition = complete)]
    async fn end(&self, _ask: &Ask, notes: &List<Note>, _mark: Option<&Mark>) -> Done {
        Done { notes: notes.len() }
    }
}

/// A workflow with a parameter warns like any other.
struct Copies<T>(Vec<T>);

#[workflow]
impl<T: Clone + Send + Sync + 'static> Copies<T> {
    #[step]
    async fn write(&self, ask: &Ask) -> Vec<Note> {
        vec![Note; ask.notes]
    }

    #[step]
    async fn end(
        &self,
        ask: &Ask,
        _note: Option<&Note>, // warns: an optional input
    ) -> Done {
        Done { notes: ask.notes + self.0.len() }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RunError> {
    let written = Notebook.run(Ask { notes: 3 }).await?;
    let copied = Copies(vec!["note"]).run(Ask { notes: 2 }).await?;
    println!("{} written, {} copied", written.notes, copied.notes);
    Ok(())
}
