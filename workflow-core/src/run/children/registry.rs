//! The children of one run: their status, for the run's report, and the order in which parent and children end (S31).
//!
//! ```text
//! child registers   join ─▶ member (open) ─▶ left ─▶ member (ended)
//! parent ends       close ─▶ no child joins; awaited children, or all if cancelled, are signalled; the parent waits
//! parent detaches   leave ─▶ awaited children detach too, also one that joins later
//! parent pauses     pause ─▶ awaited children pause too, also one that joins later
//!                   detach_awaited ─▶ member without a run, until an execution asks for the child again; the run leaves
//! journal           recall ─▶ member without a run, until the child is resumed
//! child ends        left ─▶ ended, in reports once the parent's driver has taken that (`ends`)
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use smallvec::SmallVec;
use tokio::sync::Notify;

use super::asking::Asking;
use crate::id::{ChildRun, ExecutionId, RunId, RunStatus};
use crate::observe::Observed;
use crate::run::{DropSignal, RunShared};
use crate::store::Position;

mod ends;
mod reports;
mod unasked;

pub(crate) use ends::Unrecorded;

use ends::ParentPhase;

/// The children of a run. Created with the first child.
#[derive(Debug, Default)]
pub(crate) struct ChildRegistry {
    state: Mutex<State>,
    /// Whether the reports of the children were made.
    reported: AtomicBool,
    /// Notified when the last child that was about to join has joined, or was refused.
    joined: Notify,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the run")]
struct State {
    /// In the order of joining. An index into it never changes.
    members: Vec<Member>,
    /// The indexes of the members of each id, in order. Hashed with a key of this process, because ids may come from strangers.
    by_id: HashMap<RunId, SmallVec<[usize; 1]>, foldhash::quality::RandomState>,
    /// How many members are open and have their run here.
    open: usize,
    /// The indexes of awaited children that have not ended, by execution.
    awaited: BTreeSet<(ExecutionId, usize)>,
    /// The same of those that have no run here, since no attempt has asked for them again: those of an earlier process, and of
    /// attempts that a pause dropped. Some may have ended.
    unasked: BTreeSet<(ExecutionId, usize)>,
    /// How many members the run's journal has.
    recorded: usize,
    /// The ends that the driver has not taken, in their order: of the members with these indexes.
    fresh: Vec<(usize, RunStatus)>,
    /// How far the run is, for the reports of children without an end.
    parent: ParentPhase,
    /// How many children are about to join: the engine may have their ids already.
    joining: usize,
    /// Whether the run has ended. Then no child joins.
    closed: bool,
    /// Executions that ask for children which may not begin, because the engine shuts down; one entry each.
    held_up: Vec<ExecutionId>,
    /// Whether the run was detached. An awaited child that joins later is detached at once.
    detached: bool,
    /// Whether the run is paused. An awaited child that joins later is paused at once.
    paused: bool,
    /// Which attempts still ask. An awaited child of another one is detached at once.
    asking: Asking,
    /// Detached children whose tasks are not gone yet.
    leaving: Vec<Arc<RunShared>>,
    /// Whether observers have seen the run's end. They see nothing of its children after that.
    end_observed: bool,
}

impl State {
    /// The open children that an execution waits for.
    fn awaited_members(&self, execution: ExecutionId) -> impl Iterator<Item = &Member> {
        let indexes = self.awaited.range((execution, 0)..=(execution, usize::MAX));
        indexes.map(|(_, index)| &self.members[*index])
    }

    /// Takes out the runs of the children that an execution waits for: it does so no longer.
    fn take_awaited(&mut self, execution: ExecutionId) -> Vec<Arc<RunShared>> {
        let taken: Vec<_> =
            self.awaited.extract_if((execution, 0)..=(execution, usize::MAX), |_| true).collect();
        let runs: Vec<_> = taken.iter().filter_map(|(_, index)| self.members[*index].run.take()).collect();
        self.unasked.extend(taken);
        self.open -= runs.len();
        runs
    }

    /// The members of this id, in the order of joining.
    fn of_id(&self, run: &RunId) -> impl Iterator<Item = (usize, &Member)> {
        let indexes = self.by_id.get(run).into_iter().flatten();
        indexes.map(|index| (*index, &self.members[*index]))
    }

    /// Adds a member, or replaces the one at this index, which has no open run here.
    fn put(&mut self, index: usize, member: Member) {
        self.open += usize::from(member.is_open());
        if let Some(known) = self.members.get_mut(index) {
            *known = member;
        } else {
            self.by_id.entry(member.child.run.clone()).or_default().push(self.members.len());
            self.members.push(member);
        }
    }
}

/// A child and its state. Reports of awaited children are part of the parent's report.
#[derive(Debug)]
struct Member {
    child: ChildRun,
    joined: SystemTime,
    /// `None` for an independent child that has ended: its report is not part of the parent's.
    run: Option<Arc<RunShared>>,
    drop_signal: Arc<DropSignal>,
    /// Whether its run is over here: it has ended, or another process has it.
    is_gone: bool,
    /// Whether the child has ended for good.
    has_ended: bool,
    /// That end, once the driver has taken it.
    end: Option<RunStatus>,
}

impl Member {
    /// Whether the run of the child is here, and not over.
    fn is_open(&self) -> bool {
        self.run.is_some() && !self.is_gone
    }
}

/// A child that is about to join. Its parent ends once this is dropped.
pub(crate) struct Joining(Arc<ChildRegistry>);

impl Drop for Joining {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.joining -= 1;
        if state.joining == 0 {
            self.0.joined.notify_waiters();
        }
    }
}

impl Drop for ChildRegistry {
    /// Drops the runs below in a loop, because a recursive drop of deeply nested runs would overflow the stack.
    fn drop(&mut self) {
        let mut below = self.take_runs();
        while let Some(run) = below.pop() {
            let Some(mut run) = Arc::into_inner(run) else { continue };
            if let Some(mut registry) = run.children.take().and_then(Arc::into_inner) {
                below.append(&mut registry.take_runs());
            }
        }
    }
}

/// Tells children that the attempts which waited for them were dropped.
pub(super) fn tell(dropped: impl IntoIterator<Item = Arc<DropSignal>>) {
    for drop_signal in dropped {
        drop_signal.set();
    }
}

impl ChildRegistry {
    /// A child is about to join, on any thread; `None` if the run has ended.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Joining> {
        let mut state = self.lock();
        state.joining += usize::from(!state.closed);
        (!state.closed).then(|| Joining(Arc::clone(self)))
    }

    /// Waits until no child is about to join.
    pub(crate) async fn all_joined(&self) {
        loop {
            let joined = self.joined.notified();
            if self.lock().joining == 0 {
                return;
            }
            joined.await;
        }
    }

    /// Adds a child and returns its index, or `None` if the run has ended, or the child has joined already.
    pub(super) fn join(
        &self,
        parent: &RunShared,
        child: ChildRun,
        run: &Arc<RunShared>,
        (drop_signal, asked_in): (&Arc<DropSignal>, u32),
    ) -> Option<usize> {
        let mut state = self.lock();
        let is_here = |member: &Member| member.run.as_ref().is_some_and(|known| Arc::ptr_eq(known, run));
        if state.closed || state.of_id(&child.run).any(|(_, member)| is_here(member)) {
            return None;
        }
        parent.tell(|| Observed::ChildStarted { child: child.clone() });
        let joins = run;
        let is_detached = child.awaited && asked_in != state.asking.number(child.execution);
        if is_detached {
            state.leaving.push(Arc::clone(run));
        }
        // A detached child is known by the journal alone.
        let run = (!is_detached).then(|| Arc::clone(run));
        let (drop_signal, index) = (Arc::clone(drop_signal), state.members.len());
        // A child of the journal takes its old index, and so does one that had ended when its execution began again.
        let asks_again = parent.may_have_earlier_children();
        let is_old = |member: &Member| member.run.is_none() || asks_again && member.is_gone;
        let known = state.of_id(&child.run).find(|(_, member)| is_old(member) && member.child == child);
        let (index, has_ended, end) =
            known.map_or((index, false, None), |(known, member)| (known, member.has_ended, member.end));
        if child.awaited && !is_detached {
            state.unasked.remove(&(child.execution, index));
            state.awaited.insert((child.execution, index));
        }
        let awaited = child.awaited;
        let joined = parent.common.clock.now();
        state.put(index, Member { child, joined, run, drop_signal, is_gone: false, has_ended, end });
        let joins_left = is_detached || awaited && state.detached;
        // One that was begun before may have been paused with its parent.
        if awaited && (state.paused || joins.may_have_earlier_children()) {
            joins.signals.set_parent_paused(state.paused);
        }
        // The viewers of the run also want the child's requests (S64).
        fence(Ordering::SeqCst);
        if parent.signals.is_viewed() {
            joins.signals.view(false);
        }
        // After the lock, because a woken child may end at once.
        drop(state);
        if joins_left {
            joins.signal_detach();
        }
        joins.signals.wake();
        Some(index)
    }

    /// Whether the run has joined.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.lock().of_id(run).any(|(_, member)| member.run.is_some())
    }

    /// Adds a child from the run's journal, without a run, and with its end if the journal has that.
    pub(crate) fn recall(&self, child: ChildRun, joined: SystemTime, end: Option<RunStatus>) {
        let mut state = self.lock();
        let index = state.members.len();
        let (drop_signal, has_ended) = (Arc::default(), end.is_some());
        if child.awaited && !has_ended {
            state.unasked.insert((child.execution, index));
        }
        state
            .put(index, Member { child, joined, run: None, drop_signal, is_gone: has_ended, has_ended, end });
        state.recorded = state.members.len();
    }

    /// How many children the run's journal has.
    pub(crate) fn recorded(&self) -> usize {
        self.lock().recorded
    }

    /// Whether a child has joined and not ended, has been detached and is not gone, or has an end that the journal lacks.
    pub(crate) fn is_alive(&self) -> bool {
        let state = self.lock();
        !state.leaving.is_empty() || state.open > 0 || !state.fresh.is_empty()
    }

    /// The children that have joined and not ended.
    pub(crate) fn alive(&self) -> Vec<Arc<RunShared>> {
        let state = self.lock();
        state
            .members
            .iter()
            .filter(|member| !member.is_gone)
            .filter_map(|member| member.run.clone())
            .collect()
    }

    /// Pauses or unpauses the awaited children, and those that join later.
    pub(crate) fn pause(&self, paused: bool) {
        let mut state = self.lock();
        state.paused = paused;
        let awaited = state.members.iter().filter(|member| member.child.awaited && !member.is_gone);
        let awaited: Vec<_> = awaited.filter_map(|member| member.run.clone()).collect();
        for run in &awaited {
            run.signals.set_parent_paused(paused);
        }
        // After the lock, because a woken child may end at once.
        drop(state);
        for run in &awaited {
            run.signals.wake();
        }
    }

    /// Tells a child whether the run is paused. In the lock, so that a later pause is not overwritten.
    pub(crate) fn tell_paused(&self, child: &RunShared) {
        let state = self.lock();
        child.signals.set_parent_paused(state.paused);
    }

    /// Detaches the children of these executions, which wait for them, are dropped, and begin again later. Until the
    /// executions ask for the children again, the run knows these only by its journal.
    pub(crate) fn detach_awaited(&self, dropped: &[ExecutionId]) {
        let mut state = self.lock();
        state.asking.begin_again(dropped);
        let left: Vec<_> = dropped.iter().flat_map(|execution| state.take_awaited(*execution)).collect();
        state.leaving.extend(left.iter().map(Arc::clone));
        // After the lock, because a woken child may end at once.
        drop(state);
        for run in left {
            run.signal_detach();
        }
    }

    /// How often the execution has begun again.
    pub(crate) fn asked_in(&self, execution: ExecutionId) -> u32 {
        self.lock().asking.number(execution)
    }

    /// The same of the attempt that is under way.
    pub(super) fn asked_in_under_way(&self, execution: ExecutionId) -> u32 {
        self.lock().asking.number_under_way(execution)
    }

    /// Children learn of drops only once the journal has reached this end.
    pub(crate) fn withhold_drops(&self, until: Position) {
        self.lock().asking.withhold(until);
    }

    /// The causes of all drops so far end here in the journal, which is written up to there.
    pub(crate) fn withheld_until(&self, end: Position, written: Position) {
        self.lock().asking.withheld_until(end);
        self.written(written);
    }

    /// An attempt was dropped, or drops children that it waits for.
    pub(super) fn drop_children(&self, asked: (ExecutionId, u32), signals: Vec<Arc<DropSignal>>) {
        let dropped = self.lock().asking.drops(asked, signals);
        // After the lock, because a woken child may end at once.
        tell(dropped);
    }

    /// These executions were dropped or have ended, and do not begin again. Their last attempts may not have asked for all
    /// their children.
    pub(crate) fn drop_awaited(&self, executions: &[ExecutionId]) {
        let (mut state, mut dropped) = (self.lock(), Vec::new());
        for execution in executions {
            let signals = state.awaited_members(*execution).map(|member| Arc::clone(&member.drop_signal));
            let (signals, number) = (signals.collect(), state.asking.number(*execution));
            dropped.extend(state.asking.drops((*execution, number), signals));
        }
        // After the lock, because a woken child may end at once.
        drop(state);
        tell(dropped);
    }

    /// These executions begin again, because the store refused the batches that had dropped them.
    pub(crate) fn begin_again(&self, executions: &[ExecutionId]) {
        self.lock().asking.begin_again(executions);
    }

    /// The dropped attempts of executions that begin again are gone.
    pub(crate) fn attempts_gone(&self) {
        self.lock().asking.attempts_gone();
    }

    /// The store has the journal up to this end.
    pub(crate) fn written(&self, end: Position) {
        let dropped = self.lock().asking.written(end);
        tell(dropped);
    }

    /// Whether no child has ever joined.
    pub(crate) fn is_unused(&self) -> bool {
        self.lock().members.is_empty()
    }

    /// Notes that a child has ended, or that one that was detached before is gone.
    pub(super) fn left(&self, parent: &RunShared, index: usize, (child, status): (&RunShared, RunStatus)) {
        let has_ended = child.has_ended_for_good();
        // Dropped after the lock, because it may be the last handle on the child.
        let _run;
        let mut state = self.lock();
        if let Some(place) = state.leaving.iter().position(|run| std::ptr::eq(&raw const **run, child)) {
            _run = Some(state.leaving.swap_remove(place));
            if has_ended {
                state.note_end_of(&child.id, status);
            }
            drop(state);
            // Nothing else may keep it from being unloaded.
            parent.signals.wake();
            return;
        }
        let State { members, open, awaited, end_observed, .. } = &mut *state;
        let Some(member) = members.get_mut(index) else { return };
        if !member.run.as_ref().is_some_and(|run| std::ptr::eq(&raw const **run, child)) {
            return;
        }
        *open -= usize::from(member.is_open());
        member.is_gone = true;
        awaited.remove(&(member.child.execution, index));
        _run = if member.child.awaited { None } else { member.run.take() };
        if !*end_observed {
            parent.tell(|| Observed::ChildEnded { child: member.child.clone(), status });
        }
        if has_ended {
            state.note_end(index, status);
        }
        drop(state);
        if has_ended && parent.common.is_durable {
            // A parent that waits journals the end at once.
            parent.signals.wake();
        }
    }

    /// Detaches the awaited children, because the run is detached, and the independent ones of these executions, which
    /// ask for them again in another engine.
    pub(crate) fn leave(&self, lost: &[ExecutionId]) {
        let mut state = self.lock();
        state.detached = true;
        let open = state.members.iter().filter(|member| !member.is_gone);
        let left = open.filter(|member| member.child.awaited || lost.contains(&member.child.execution));
        let left: Vec<_> = left.filter_map(|member| member.run.clone()).collect();
        // After the lock, because a woken child may end at once.
        drop(state);
        for run in left {
            run.signal_detach();
        }
    }

    /// Closes the registry: no child joins any more. Signals the children that end with the run, or with executions before
    /// `before`, and returns them. The children of a detached run are detached, and not cancelled.
    pub(crate) fn close(
        &self,
        cancelled: bool,
        left: bool,
        before: Option<ExecutionId>,
    ) -> Vec<Arc<RunShared>> {
        let mut state = self.lock();
        state.closed = true;
        let ending = state.members.iter().filter(|member| !member.is_gone);
        let ending = ending.filter(|member| before.is_none_or(|first| member.child.execution < first));
        let ending = ending.filter(|member| cancelled || member.child.awaited);
        let ending = ending.filter_map(|member| {
            let run = member.run.clone()?;
            let names = run.parent().filter(|_| cancelled && !left);
            let why = names.map(|names| names.cancel_reason(member.child.awaited));
            Some((run, Arc::clone(&member.drop_signal), why))
        });
        let ending: Vec<_> = ending.collect();
        let withheld = state.asking.take();
        // After the lock, because a woken child may end at once.
        drop(state);
        if !left {
            tell(withheld);
        }
        let told = ending.into_iter().map(|(run, drop_signal, why)| {
            if left {
                run.signal_detach();
            }
            drop_signal.set();
            // A detached child reads the drop signal too, and ignores it.
            if let Some(why) = why {
                run.note_cancel(&why);
            }
            run
        });
        told.collect()
    }

    /// Keeps children from joining, or lets them join again: while the run's end enters the journal.
    pub(crate) fn seal(&self, sealed: bool) {
        let mut state = self.lock();
        state.closed = sealed;
        if !sealed {
            state.parent = ParentPhase::Open;
        }
    }

    /// Lets children join again, after all had ended: those of clean-up steps. The end of the run has ended its pause.
    pub(crate) fn reopen(&self) {
        let mut state = self.lock();
        (state.closed, state.paused) = (false, false);
    }

    /// The open children that an execution waits for.
    pub(crate) fn awaited_by(&self, execution: ExecutionId) -> Vec<Arc<RunShared>> {
        self.lock().awaited_members(execution).filter_map(|member| member.run.clone()).collect()
    }

    /// An execution asks for a child that may not begin, or has given up such a question.
    pub(crate) fn holds_up(&self, execution: ExecutionId, asks: bool) {
        let held_up = &mut self.lock().held_up;
        if asks {
            held_up.push(execution);
        } else if let Some(place) = held_up.iter().position(|id| *id == execution) {
            held_up.swap_remove(place);
        }
    }

    /// Whether an execution waits for children, none of which has anything under way, as `child_rests` says.
    pub(crate) fn rests(&self, execution: ExecutionId, child_rests: fn(&RunShared) -> bool) -> bool {
        let held_up = self.lock().held_up.contains(&execution);
        let awaited = self.awaited_by(execution);
        (held_up || !awaited.is_empty()) && awaited.iter().all(|child| child_rests(child))
    }

    /// Called before observers see the run's end.
    pub(crate) fn over(&self) {
        self.lock().end_observed = true;
    }

    /// Takes the runs out, so that the caller can drop them.
    fn take_runs(&mut self) -> Vec<Arc<RunShared>> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let leaving = std::mem::take(&mut state.leaving);
        state.members.iter_mut().filter_map(|member| member.run.take()).chain(leaving).collect()
    }

    /// No operation leaves the state half-changed, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::bare_run::BareRun;

    const MANY: usize = 1_000;

    pub(super) fn child(number: usize, awaited: bool) -> ChildRun {
        let (workflow, step) = ("Prices".into(), "price".into());
        let run = format!("a/price-x1.{number}").into();
        ChildRun { run, workflow, step, execution: ExecutionId(1), attempt: 1, awaited }
    }

    #[test]
    fn each_of_many_children_is_looked_for_among_those_of_its_id() {
        let (parent, run) = (BareRun::new().shared, BareRun::new().shared);
        let (registry, signal) = (ChildRegistry::default(), Arc::default());
        let join = |number| registry.join(&parent, child(number, false), &run, (&signal, 0)).unwrap();
        for number in 0..MANY {
            assert_eq!(join(number), number);
            assert!(registry.is_alive() && registry.has(&child(number, false).run));
            registry.left(&parent, number, (&run, RunStatus::Completed));
            assert!(!registry.is_alive() && !registry.has(&child(number, false).run));
        }
        for number in [0, MANY / 2, MANY - 1] {
            assert_eq!(registry.lock().of_id(&child(number, false).run).count(), 1);
            assert_eq!(join(number), number, "one that had ended takes its old index");
            assert!(registry.is_alive());
            registry.left(&parent, number, (&run, RunStatus::Completed));
            assert!(!registry.is_alive());
        }
        let unrecorded = registry.unrecorded(true);
        assert_eq!(
            (unrecorded.started.len(), unrecorded.ended.len()),
            (MANY, 0),
            "they were left here, and have no end"
        );
    }

    #[test]
    fn children_are_alive_until_they_end_or_are_detached() {
        let (parent, run) = (BareRun::new().shared, BareRun::new().shared);
        let (registry, signal) = (ChildRegistry::default(), Arc::default());
        registry.recall(child(0, true), SystemTime::UNIX_EPOCH, None);
        assert!(!registry.is_alive(), "a child of the journal has no run here");
        for number in 0..3 {
            let index = registry.join(&parent, child(number, true), &run, (&signal, 0));
            assert_eq!(index, Some(number));
        }
        registry.left(&parent, 1, (&run, RunStatus::Failed));
        registry.left(&parent, 1, (&run, RunStatus::Failed));
        assert!(registry.is_alive());
        assert_eq!(registry.lock().take_awaited(ExecutionId(1)).len(), 2);
        assert!(!registry.is_alive());
    }
}
