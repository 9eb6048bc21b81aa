//! The board: which tasks may begin after each end of a task. It is a function of the plan and of the ends so far, so
//! a resumed project decides as the interrupted one did. It runs nothing.

use serde::{Deserialize, Serialize};

use super::outcome::TaskState;
use super::plan::Plan;

/// The order in which the tasks of a project run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// One task at a time, each time the first in the plan whose dependencies are completed.
    Sequential,
    /// All tasks side by side. A plan whose tasks depend on each other goes back to the planner.
    Parallel,
    /// Each task as soon as its dependencies are completed.
    #[default]
    Dag,
}

/// The states of the tasks of a plan, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Board {
    states: Vec<TaskState>,
    /// For each task, the places of its dependencies.
    before: Vec<Vec<usize>>,
    most: usize,
}

impl Board {
    /// The board before any task begins. `most` bounds the tasks that run at a time.
    pub(crate) fn new(plan: &Plan, strategy: Strategy, most: usize) -> Self {
        let before = |ids: &[String]| ids.iter().filter_map(|id| plan.place(id)).collect();
        Self {
            states: vec![TaskState::Pending; plan.tasks.len()],
            before: plan.tasks.iter().map(|task| before(&task.depends_on)).collect(),
            most: if strategy == Strategy::Sequential { 1 } else { most.max(1) },
        }
    }

    pub(crate) fn states(&self) -> &[TaskState] {
        &self.states
    }

    /// Whether nothing runs and nothing will.
    pub(crate) fn has_ended(&self) -> bool {
        self.states.iter().all(|state| state.has_ended())
    }

    /// Begins the tasks that may begin, and returns their places.
    pub(crate) fn begin(&mut self) -> Vec<usize> {
        let running = self.states.iter().filter(|state| **state == TaskState::InProgress).count();
        let may_begin = |place: &usize| {
            let is_completed = |before: &usize| self.states[*before] == TaskState::Completed;
            self.states[*place] == TaskState::Pending && self.before[*place].iter().all(is_completed)
        };
        let free = self.most.saturating_sub(running);
        let begun: Vec<usize> = (0..self.states.len()).filter(may_begin).take(free).collect();
        for place in &begun {
            self.states[*place] = TaskState::InProgress;
        }
        begun
    }

    /// Takes the end of a task, and returns the places of the tasks that are skipped because of it, each behind one that
    /// it depends on.
    pub(crate) fn end(&mut self, place: usize, has_succeeded: bool) -> Vec<usize> {
        self.states[place] = if has_succeeded { TaskState::Completed } else { TaskState::Failed };
        let mut skipped = Vec::new();
        while let Some(next) = self.lost() {
            self.states[next] = TaskState::Skipped;
            skipped.push(next);
        }
        skipped
    }

    /// A pending task with a dependency that will never complete.
    fn lost(&self) -> Option<usize> {
        let is_lost = |before: &usize| matches!(self.states[*before], TaskState::Failed | TaskState::Skipped);
        (0..self.states.len()).find(|place| {
            self.states[*place] == TaskState::Pending && self.before[*place].iter().any(is_lost)
        })
    }
}
