//! The acts of a case's clients, and their traces in journals (S62, S67).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use workflow_core::prelude::*;
use workflow_core::store::Record;
use workflow_core::{AnyRun, Origin, ResumeError, RunId, SendError, StartError};

use crate::world::World;

/// How an act went for its caller.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// It is acknowledged: the journal has it.
    Done,
    /// It was refused, and left nothing.
    Refused(String),
    /// Nobody knows whether the journal has it.
    Unknown(String),
}

impl Answer {
    pub(super) fn of_send(sent: Result<(), SendError>) -> Self {
        match sent {
            Ok(()) => Self::Done,
            Err(
                error @ (SendError::Stopped { .. } | SendError::NotLoaded { .. } | SendError::Refused { .. }),
            ) => Self::Unknown(error.to_string()),
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    pub(super) fn of_start(started: &Result<AnyRun, StartError>) -> Self {
        match started {
            Ok(_) => Self::Done,
            Err(error @ StartError::Store(_)) => Self::Unknown(error.to_string()),
            Err(error) => Self::Refused(error.to_string()),
        }
    }
}

/// Whether the run of this handle stopped here, and its journal is open.
pub(super) fn has_stopped_here(run: &AnyRun) -> bool {
    let outcome = run.outcome_any().now_or_never();
    matches!(outcome, Some(Err(RunError::Store { .. } | RunError::Conflict { .. } | RunError::Detached)))
}

/// The acts of a case, by id, with all answers to their callers.
#[derive(Debug, Default)]
pub(super) struct Acts {
    acts: Mutex<BTreeMap<String, Act>>,
}

#[derive(Debug)]
struct Act {
    run: RunId,
    what: String,
    answers: Vec<Answer>,
    /// How often it was asked for.
    asked: usize,
    /// Whether it is a message of the inbox.
    is_message: bool,
}

impl Acts {
    /// A client asks for an act.
    pub(super) fn asks(&self, id: &str, run: &RunId, what: &str, is_message: bool) {
        let mut acts = self.acts.lock().unwrap();
        let (run, what) = (run.clone(), what.to_owned());
        let act = Act { run, what, answers: Vec::new(), asked: 0, is_message };
        acts.entry(id.to_owned()).or_insert(act).asked += 1;
    }

    /// A client has its answer. An acknowledged act is in the journal by now.
    pub(super) fn answers(&self, world: &World, id: &str, answer: Answer) {
        let mut acts = self.acts.lock().unwrap();
        let Some(act) = acts.get_mut(id) else { return };
        world.state().ledger.push(format!("{}: {} {id}: {answer:?}", act.run, act.what));
        if answer == Answer::Done && count(&world.journal(&act.run), id) != 1 {
            world.violate(format!(
                "{}: {} {id} is acknowledged, and not in the journal once",
                act.run, act.what
            ));
        }
        act.answers.push(answer);
    }

    /// Each act is in the journal of its run once if it is acknowledged, and not at all if it was refused.
    pub(super) fn check(&self, world: &World) {
        let refused = world.inbox.refused();
        for (id, act) in self.acts.lock().unwrap().iter() {
            let journal = world.journal(&act.run);
            let found = count(&journal, id);
            let was_redriven = journal.iter().any(|record| matches!(record, Record::RunRedriven { .. }));
            let refusal = refused.iter().find(|refused| *refused.message.id == **id);
            let (is_refused_message, reason) = (refusal.is_some(), refusal.map(|refused| &refused.reason));
            let done = act.answers.contains(&Answer::Done);
            let all_refused = act.answers.len() == act.asked
                && act.answers.iter().all(|answer| matches!(answer, Answer::Refused(_)));
            let fits = match found {
                0 if act.is_message => is_refused_message || journal.is_empty(),
                0 => !done,
                // An engine that was held may still settle a message that the run refused before it was redriven.
                1 if act.is_message => !is_refused_message || was_redriven,
                1 => done || !all_refused,
                _ => false,
            };
            if !fits {
                let Act { run, what, answers, .. } = act;
                world.violate(format!(
                    "{run}: {what} {id} is in the journal {found} times, with {answers:?}, refused by the inbox: {reason:?}"
                ));
            }
        }
    }

    /// The runs that messages were sent to.
    pub(super) fn addressed(&self) -> BTreeSet<RunId> {
        let acts = self.acts.lock().unwrap();
        acts.values().filter(|act| act.is_message).map(|act| act.run.clone()).collect()
    }

    /// Every act in words, for a case that failed.
    pub(super) fn told(&self) -> Vec<String> {
        let acts = self.acts.lock().unwrap();
        acts.iter().map(|(id, act)| format!("{id}: {} of {}: {:?}", act.what, act.run, act.answers)).collect()
    }
}

/// How often the journal has an act of this id. A clean-up and the end behind it are of one cancel.
fn count(journal: &[Record], id: &str) -> usize {
    let is_it =
        |origin: &Option<Origin>| origin.as_ref().is_some_and(|origin| origin.id.as_deref() == Some(id));
    let (mut count, mut cleans_up) = (0, false);
    for record in journal {
        match record {
            Record::EventLogged { origin, .. }
            | Record::RunPaused { origin, .. }
            | Record::RunUnpaused { origin, .. } => count += usize::from(is_it(origin)),
            Record::CleanUpStarted { origin, .. } => {
                cleans_up = is_it(origin);
                count += usize::from(cleans_up);
            }
            // The end behind it is the one before.
            Record::CleanUpRedriven { .. } => cleans_up = true,
            Record::RunEnded { origin, .. } => {
                count += usize::from(is_it(origin) && !cleans_up);
                cleans_up = false;
            }
            _ => {}
        }
    }
    count
}

/// The run as this engine has it, which takes it up if it is free.
pub(super) async fn handle(engine: &Engine, run: &RunId) -> Result<AnyRun, ResumeError> {
    match engine.find(run) {
        Some(run) => Ok(run),
        None => engine.attach_any(run.clone()).await,
    }
}

/// The handles that clients have.
pub(super) type Handles = Arc<Mutex<Vec<AnyRun>>>;
