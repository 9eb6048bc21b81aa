//! Which steps used a run's executions up: the loop that went round most often, read off the table and how often
//! each step ran.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::scheduler::Scheduler;
use crate::table::{DependencyTable, StepIndex};

/// What the executions of a run were spent on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runaway {
    /// The steps of the loop, each triggering the next and the last the first; none if no loop led there.
    pub(crate) looping: Vec<Arc<str>>,
    /// How often the loop went round: how often that step of it ran which ran least.
    pub(crate) rounds: u64,
    /// The step that ran most often.
    pub(crate) busiest: Arc<str>,
    /// How often that was.
    pub(crate) executions: u64,
}

impl Runaway {
    /// O(steps² × triggers): asked once, when the run has ended.
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
    /// Per step those that its events can trigger, also by a reply to what it asks and by the gather of the
    /// branches that it works in.
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

/// The steps as a graph, with how often each ran.
struct Walk {
    next: Vec<Vec<usize>>,
    counts: Vec<u64>,
}

impl Walk {
    /// The first of those that ran most often.
    fn busiest(&self) -> usize {
        let steps = (0..self.counts.len()).rev();
        steps.max_by_key(|step| self.counts[*step]).unwrap_or(0)
    }

    /// The loop whose least busy step is the busiest. Steps join in the order of how often they ran; the first that
    /// closes a loop closes that one. What went round once is no loop yet.
    fn widest_loop(&self) -> Option<Vec<usize>> {
        let mut steps: Vec<usize> = (0..self.counts.len()).filter(|step| self.counts[*step] > 1).collect();
        steps.sort_by_key(|step| std::cmp::Reverse(self.counts[*step]));
        (0..steps.len())
            .find_map(|last| self.way(&steps[..=last], steps[last], steps[last]))
            .map(first_in_front)
    }

    /// The shortest way from a step to another, or back to itself, among these: with the first, without the last.
    fn way(&self, among: &[usize], from: usize, to: usize) -> Option<Vec<usize>> {
        let mut came_from = vec![None; self.counts.len()];
        let mut pending = VecDeque::from([from]);
        while let Some(step) = pending.pop_front() {
            for next in self.next[step].iter().copied().filter(|next| among.contains(next)) {
                if next == to {
                    return Some(way_to(step, from, &came_from));
                }
                if next != from && came_from[next].is_none() {
                    came_from[next] = Some(step);
                    pending.push_back(next);
                }
            }
        }
        None
    }

    /// Whether the step is in the loop or follows from it.
    fn leads(&self, looping: &[usize], to: usize) -> bool {
        let all: Vec<usize> = (0..self.counts.len()).filter(|step| self.counts[*step] > 0).collect();
        looping.contains(&to) || looping.first().is_some_and(|first| self.way(&all, *first, to).is_some())
    }
}

fn way_to(last: usize, from: usize, came_from: &[Option<usize>]) -> Vec<usize> {
    let mut way: Vec<usize> = std::iter::successors(Some(last), |step| came_from[*step]).collect();
    debug_assert_eq!(way.last(), Some(&from), "a way leads back to where it began");
    way.reverse();
    way
}

/// A loop has no beginning of its own; the step that is declared first is the one that people look for.
fn first_in_front(mut looping: Vec<usize>) -> Vec<usize> {
    if let Some(first) = looping.iter().enumerate().min_by_key(|(_, step)| **step).map(|(at, _)| at) {
        looping.rotate_left(first);
    }
    looping
}
