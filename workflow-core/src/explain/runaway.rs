//! Finds the loop that used up a run's executions, from the table and the number of executions per step.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::scheduler::Scheduler;
use crate::table::{DependencyTable, StepIndex};

/// The steps on which a run spent its executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runaway {
    /// The steps of the loop, each triggering the next and the last one the first; empty without a loop.
    pub(crate) looping: Vec<Arc<str>>,
    /// The rounds of the loop: the executions of its least busy step.
    pub(crate) rounds: u64,
    /// The step with the most executions.
    pub(crate) busiest: Arc<str>,
    /// The number of its executions.
    pub(crate) executions: u64,
}

impl Runaway {
    /// Searches for the loop. O(steps² × triggers); called once, after the run has ended.
    pub(crate) fn of(scheduler: &Scheduler) -> Self {
        let table = scheduler.table();
        let counts: Vec<u64> =
            (0..table.steps.len()).map(|step| scheduler.executions_of(StepIndex::at(step))).collect();
        let walk = Walk { next: table.triggers(), counts };
        let busiest = walk.busiest();
        let looping = walk.widest_loop().filter(|looping| walk.leads(looping, busiest)).unwrap_or_default();
        let name = |step: usize| Arc::clone(&table.steps[step].name);
        Self {
            rounds: looping.iter().map(|step| walk.counts[*step]).min().unwrap_or(0),
            looping: looping.into_iter().map(name).collect(),
            busiest: name(busiest),
            executions: walk.counts[busiest],
        }
    }
}

impl DependencyTable {
    /// By step, the steps that its events can trigger: directly, by the reply to a request, or by the gather
    /// of branches.
    fn triggers(&self) -> Vec<Vec<usize>> {
        self.steps
            .iter()
            .map(|step| {
                let outputs = step.outputs.iter();
                let events = outputs.flat_map(|output| {
                    let replies = self.event(output.event).reply;
                    let carries = self.fan_outs.iter().enumerate().filter(move |(at, fan_out)| {
                        output.fan_out.is_some_and(|own| own.get() == *at)
                            || fan_out.carried.contains(&output.event)
                    });
                    let gathered = carries.map(|(_, fan_out)| fan_out.gathered);
                    std::iter::once(output.event).chain(replies).chain(gathered)
                });
                let mut next: Vec<usize> =
                    events.flat_map(|event| &self.event(event).takers).map(|step| step.get()).collect();
                next.sort_unstable();
                next.dedup();
                next
            })
            .collect()
    }
}

/// The steps as a graph, with their numbers of executions.
struct Walk {
    next: Vec<Vec<usize>>,
    counts: Vec<u64>,
}

impl Walk {
    /// The step with the most executions, the first one of several.
    fn busiest(&self) -> usize {
        let steps = (0..self.counts.len()).rev();
        steps.max_by_key(|step| self.counts[*step]).unwrap_or(0)
    }

    /// The loop whose least busy step is busiest. Adds steps in descending order of executions until one
    /// closes a loop. A step that ran once cannot loop.
    fn widest_loop(&self) -> Option<Vec<usize>> {
        let mut steps: Vec<usize> = (0..self.counts.len()).filter(|step| self.counts[*step] > 1).collect();
        steps.sort_by_key(|step| std::cmp::Reverse(self.counts[*step]));
        (0..steps.len())
            .find_map(|last| self.path(&steps[..=last], steps[last], steps[last]))
            .map(first_in_front)
    }

    /// The shortest path between two steps, or back to the same, through these steps only. Includes the first
    /// step and excludes the last.
    fn path(&self, among: &[usize], from: usize, to: usize) -> Option<Vec<usize>> {
        let mut came_from = vec![None; self.counts.len()];
        let mut pending = VecDeque::from([from]);
        while let Some(step) = pending.pop_front() {
            for next in self.next[step].iter().copied().filter(|next| among.contains(next)) {
                if next == to {
                    return Some(path_to(step, from, &came_from));
                }
                if next != from && came_from[next].is_none() {
                    came_from[next] = Some(step);
                    pending.push_back(next);
                }
            }
        }
        None
    }

    /// Whether the step belongs to the loop or can follow from it.
    fn leads(&self, looping: &[usize], to: usize) -> bool {
        let all: Vec<usize> = (0..self.counts.len()).filter(|step| self.counts[*step] > 0).collect();
        looping.contains(&to) || looping.first().is_some_and(|first| self.path(&all, *first, to).is_some())
    }
}

fn path_to(last: usize, from: usize, came_from: &[Option<usize>]) -> Vec<usize> {
    let mut path: Vec<usize> = std::iter::successors(Some(last), |step| came_from[*step]).collect();
    debug_assert_eq!(path.last(), Some(&from), "a path leads back to where it began");
    path.reverse();
    path
}

/// Rotates the loop so that the step declared first comes first, where readers expect it.
fn first_in_front(mut looping: Vec<usize>) -> Vec<usize> {
    if let Some(first) = looping.iter().enumerate().min_by_key(|(_, step)| **step).map(|(at, _)| at) {
        looping.rotate_left(first);
    }
    looping
}
