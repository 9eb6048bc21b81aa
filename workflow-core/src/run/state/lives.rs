//! The lives of a run: which attempts an earlier process may have begun, and how often a process ended under one (S35,
//! S53). A pure function of the journal.
//!
//! ```text
//! RunStarted ── a life ──▶ RunResumed ── a life ──▶ RunDetached ─▶ RunResumed ── the present life
//!                          every attempt that the      only the attempts that
//!                          life may have begun         it names
//!                          was interrupted             may have begun
//! ```
//!
//! No journal says that an attempt began, with two exceptions. An execution under which two processes ended takes turns
//! with others of its kind, and `AttemptBegan` stands before each of its attempts. So an execution that only waited for
//! its turn beside one that kills its process is not taken for one. The same record stands before each retry of an
//! `at_most_once` step. So no clock decides whether that began, and a process that lost the run cannot begin it.
//!
//! Invariant: only executions that were open at the end of a life have an entry. A run that was never resumed has none,
//! and pays for one pointer.

use rustc_hash::{FxHashMap, FxHashSet};

use super::RunState;
use super::pause::PauseState;
use crate::error::ErrorClass;
use crate::id::{ExecutionId, ScopeId};
use crate::report::RedriveReport;
use crate::table::{KeyParts, StepIndex};

/// From this many interrupted attempts on, the next one begins only while no other such execution runs.
const ALONE_FROM: u32 = 2;

/// What earlier lives of the run did.
#[derive(Debug, Default)]
pub(in crate::run) struct Lives(Option<Box<Known>>);

#[derive(Debug, Default)]
struct Known {
    attempts: FxHashMap<ExecutionId, Earlier>,
    /// The executions that the present life dropped when it was detached on purpose, if it was.
    dropped: Option<Vec<ExecutionId>>,
    /// The concurrency of steps in the table of the present life, where the present table has another.
    concurrency: FxHashMap<StepIndex, Option<u32>>,
    /// Executions whose attempts the present life began and dropped, and which begin again. No journal has them.
    lost: FxHashSet<ExecutionId>,
    /// Executions that were dropped after they may have begun. Only for a redrive, so only in a replay.
    gone: FxHashSet<ExecutionId>,
    /// What the batch that a replay applies found, where the concurrency of steps has changed.
    found: Found,
    /// How often the run continued after its end (S39), oldest first.
    redrives: Vec<RedriveReport>,
    /// The pause of the run (S61), also of one that ended while it was paused.
    pause: Option<PauseState>,
    /// The traces of earlier tables of the run, if there are any.
    tables: Option<Box<EarlierTables>>,
}

/// The traces of a run's earlier tables (S39).
#[derive(Debug, Default)]
struct EarlierTables {
    /// The parts of idempotency keys, of steps that had other inputs.
    keys: FxHashMap<StepIndex, KeyParts>,
    /// The open executions of steps that were different, which may have begun. One with the same key may do so again.
    begun: Vec<BegunBefore>,
}

/// An execution that may have begun when its step was different.
#[derive(Debug, Clone)]
pub(in crate::run) struct BegunBefore {
    pub(in crate::run) step: StepIndex,
    pub(in crate::run) scope: ScopeId,
    pub(in crate::run) by: BegunAs,
}

/// How to find an execution again whose step has changed.
#[derive(Debug, Clone)]
pub(in crate::run) enum BegunAs {
    /// By its positions in its key.
    Key(String),
    /// By the positions of the inputs that its step still has, of one whose keys a method makes: slots, and the events that they bound.
    Inputs(Vec<(usize, String)>),
}

/// The executions that were open before a batch, for the drops that follow from it.
#[derive(Debug, Default)]
struct Found {
    /// The execution that the batch ends.
    ends: Option<ExecutionId>,
    /// Those that the present life may have begun, of the steps whose concurrency has changed. Set by the first drop.
    begun: Option<FxHashSet<ExecutionId>>,
}

/// What earlier lives did with an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::run) struct Earlier {
    /// How many of its attempts were interrupted: their processes ended under them.
    pub(in crate::run) interruptions: u32,
    /// Whether its current attempt may have begun before.
    pub(in crate::run) may_have_begun: bool,
    /// Whether the present life has journaled that its current attempt begins.
    pub(in crate::run) began: bool,
    /// Whether its current attempt is made although it may have begun before: the caller of a redrive named the step.
    pub(in crate::run) insisted: bool,
}

impl Earlier {
    /// Whether the next attempt has to wait for its turn, and to be journaled.
    pub(in crate::run) fn takes_turn(self) -> bool {
        self.interruptions >= ALONE_FROM && !self.began
    }

    /// A process ended, and may have begun the current attempt.
    fn interrupt(&mut self) {
        if self.interruptions < ALONE_FROM || self.began {
            self.interruptions = self.interruptions.saturating_add(1);
            self.drop_begun();
        }
    }
}

impl Known {
    #[inline(never)]
    fn of(&self, execution: ExecutionId) -> Earlier {
        let mut earlier = self.attempts.get(&execution).copied().unwrap_or_default();
        if self.lost.contains(&execution) {
            earlier.drop_begun();
        }
        earlier
    }
}

impl Earlier {
    /// The current attempt has not begun in this life after all.
    fn defer(&mut self) {
        self.began = false;
    }

    /// The current attempt was dropped, and had begun.
    fn drop_begun(&mut self) {
        (self.may_have_begun, self.insisted) = (true, false);
    }
}

impl Lives {
    /// What earlier lives did with an execution.
    #[inline]
    pub(in crate::run) fn of(&self, execution: ExecutionId) -> Earlier {
        self.0.as_ref().map_or_else(Earlier::default, |known| known.of(execution))
    }

    /// Sets the concurrency of the steps in the table of the present life, where it differs from the present table.
    pub(super) fn written_under(&mut self, concurrency: FxHashMap<StepIndex, Option<u32>>) {
        if self.0.is_some() || !concurrency.is_empty() {
            self.0.get_or_insert_default().concurrency = concurrency;
        }
    }

    /// Sets the parts of idempotency keys, of steps that had other inputs in earlier tables of the run.
    pub(super) fn set_keys(&mut self, keys: FxHashMap<StepIndex, KeyParts>) {
        if !keys.is_empty() {
            self.0.get_or_insert_default().tables.get_or_insert_default().keys = keys;
        }
    }

    /// Sets the executions that may have begun when their steps were different.
    pub(super) fn set_begun_before(&mut self, begun: Vec<BegunBefore>) {
        if !begun.is_empty() {
            self.0.get_or_insert_default().tables.get_or_insert_default().begun = begun;
        }
    }

    /// Takes over those executions from the later state of the same run.
    pub(super) fn inherit_begun_before(&mut self, later: &Self) {
        self.set_begun_before(later.begun_before().to_vec());
    }

    /// The executions that may have begun when their steps were different.
    pub(super) fn begun_before(&self) -> &[BegunBefore] {
        let tables = self.0.as_ref().and_then(|known| known.tables.as_ref());
        tables.map_or(&[], |tables| &tables.begun)
    }

    /// Whether earlier lives or tables of the run leave anything behind.
    #[inline]
    pub(super) fn are_known(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a step had other inputs in an earlier table of the run.
    #[inline]
    pub(in crate::run) fn has_keys(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|known| known.tables.as_ref().is_some_and(|tables| !tables.keys.is_empty()))
    }

    /// The parts of the step's idempotency keys, if it had other inputs in an earlier table of the run.
    pub(super) fn key_parts(&self, step: StepIndex) -> Option<&KeyParts> {
        self.0.as_ref()?.tables.as_ref()?.keys.get(&step)
    }

    /// The present life detaches on purpose, and drops the attempts of these executions.
    pub(in crate::run) fn detach(&mut self, dropped: &[ExecutionId]) {
        self.0.get_or_insert_default().dropped = Some(dropped.to_vec());
    }

    /// The journal says that the current attempt begins.
    pub(super) fn attempt_began(&mut self, execution: ExecutionId) {
        self.0.get_or_insert_default().attempts.entry(execution).or_default().began = true;
    }

    /// The current attempt failed, and the next one follows.
    pub(super) fn next_attempt(&mut self, execution: ExecutionId) {
        let Some(known) = &mut self.0 else { return };
        known.lost.remove(&execution);
        if let Some(pause) = &mut known.pause {
            pause.under_way.remove(&execution);
        }
        if let Some(earlier) = known.attempts.get_mut(&execution) {
            (earlier.may_have_begun, earlier.began, earlier.insisted) = (false, false, false);
        }
    }

    /// A rewind dropped an attempt that this life had begun, and begins it again.
    pub(in crate::run) fn lose(&mut self, execution: ExecutionId) {
        self.0.get_or_insert_default().lost.insert(execution);
    }

    /// The executions whose attempts this life began and lost.
    pub(in crate::run) fn lost(&self) -> impl Iterator<Item = ExecutionId> {
        self.0.iter().flat_map(|known| known.lost.iter().copied())
    }

    /// The pause of the run, or the one in which it ended.
    #[inline]
    pub(in crate::run) fn pause(&self) -> Option<&PauseState> {
        self.0.as_ref()?.pause.as_ref()
    }

    /// The same, to change.
    pub(super) fn pause_mut(&mut self) -> &mut Option<PauseState> {
        &mut self.0.get_or_insert_default().pause
    }

    /// Something may run again in the paused run.
    #[cold]
    pub(super) fn note_unrest(&mut self) {
        if let Some(pause) = self.pause_mut() {
            pause.rests = false;
        }
    }

    /// Forgets the pause in which the run ended.
    pub(super) fn forget_pause(&mut self) {
        if let Some(known) = &mut self.0 {
            known.pause = None;
        }
    }

    /// Whether no earlier life can have begun the execution, by the journal.
    pub(super) fn is_untouched(&self, execution: ExecutionId) -> bool {
        let known = self.0.as_ref().and_then(|known| known.attempts.get(&execution));
        known.is_none_or(|earlier| *earlier == Earlier::default())
    }

    /// The current attempt waits for the end of a pause. `dropped`: it had begun.
    pub(super) fn defer(&mut self, execution: ExecutionId, dropped: bool) {
        let known = self.0.get_or_insert_default();
        if dropped {
            known.lost.remove(&execution);
            known.attempts.entry(execution).or_default().drop_begun();
        }
        if let Some(earlier) = known.attempts.get_mut(&execution) {
            earlier.defer();
        }
    }

    /// The present life ends. These executions were open, and it may have begun their attempts.
    fn end(&mut self, open: &[ExecutionId]) {
        if open.is_empty() && self.0.is_none() {
            return;
        }
        let known = self.0.get_or_insert_default();
        match known.dropped.take() {
            Some(dropped) => {
                for execution in dropped {
                    known.attempts.entry(execution).or_default().drop_begun();
                }
            }
            None => open.iter().for_each(|id| known.attempts.entry(*id).or_default().interrupt()),
        }
        known.attempts.values_mut().for_each(Earlier::defer);
        known.lost.clear();
        if let Some(pause) = &mut known.pause {
            pause.under_way.clear();
        }
    }

    /// A replay applies a batch, which ends this execution.
    pub(super) fn note_batch(&mut self, ends: Option<ExecutionId>) {
        if let Some(known) = self.0.as_deref_mut().filter(|known| !known.concurrency.is_empty()) {
            known.found = Found { ends, begun: None };
        }
    }

    /// The concurrency of steps in the table of the present life, where the present table has another.
    fn changed_concurrency(&self) -> Option<&FxHashMap<StepIndex, Option<u32>>> {
        self.0.as_ref().map(|known| &known.concurrency).filter(|changed| !changed.is_empty())
    }

    /// No redrive follows.
    pub(super) fn forget_gone(&mut self) {
        if let Some(known) = &mut self.0 {
            known.gone = FxHashSet::default();
        }
    }

    /// The run has ended, and with it the attempts of these executions, which may have begun.
    pub(in crate::run) fn drop_begun(&mut self, begun: &[ExecutionId]) {
        if !begun.is_empty() {
            let known = self.0.get_or_insert_default();
            for execution in begun {
                known.attempts.entry(*execution).or_default().drop_begun();
            }
        }
    }

    /// The run continues after its end, with executions that begin anew: their interruptions count from the start.
    /// Those that failed by an error of their step have not begun again; others may have. Nothing begins before the
    /// next life, so this one interrupts nothing.
    ///
    /// Returns them: the scheduled ones, and those that wait by the present table alone.
    pub(super) fn redrive(
        &mut self,
        scheduled: impl Iterator<Item = ExecutionId>,
        is_open: impl Fn(ExecutionId) -> bool,
        failure: impl Fn(ExecutionId) -> Option<ErrorClass>,
        insists: impl Fn(ExecutionId) -> bool,
    ) -> FxHashSet<ExecutionId> {
        let known = self.0.get_or_insert_default();
        let mut anew: FxHashSet<ExecutionId> = scheduled.collect();
        anew.extend(known.attempts.iter().filter(|(_, earlier)| earlier.may_have_begun).map(|(id, _)| *id));
        anew.extend(&known.gone);
        anew.retain(|id| is_open(*id));
        for execution in anew.iter().copied() {
            let earlier = known.attempts.entry(execution).or_default();
            let may_have_begun = match failure(execution) {
                None => earlier.may_have_begun || known.gone.contains(&execution),
                Some(class) => matches!(class, ErrorClass::InDoubt | ErrorClass::Interrupted),
            };
            let insisted = may_have_begun && insists(execution);
            *earlier = Earlier { may_have_begun, insisted, ..Earlier::default() };
        }
        known.lost.clear();
        known.gone.clear();
        known.pause = None;
        known.dropped = Some(Vec::new());
        anew
    }

    /// The same for these executions of clean-up steps alone. Executions that the end of the run dropped stay known, for a
    /// redrive of the run itself.
    pub(super) fn redrive_clean_up(
        &mut self,
        executed: &FxHashMap<ExecutionId, StepIndex>,
        failure: impl Fn(ExecutionId) -> Option<ErrorClass>,
        insists: impl Fn(ExecutionId) -> bool,
    ) -> FxHashSet<ExecutionId> {
        let gone = self.0.as_mut().map(|known| std::mem::take(&mut known.gone)).unwrap_or_default();
        let is_open = |id| executed.contains_key(&id);
        let anew = self.redrive(executed.keys().copied(), is_open, failure, insists);
        self.0.get_or_insert_default().gone = gone;
        anew
    }

    /// Notes that the run continues after its end.
    pub(super) fn note_redrive(&mut self, redrive: RedriveReport) {
        self.0.get_or_insert_default().redrives.push(redrive);
    }

    /// How often the run continued after its end, oldest first.
    pub(in crate::run) fn redrives(&self) -> &[RedriveReport] {
        self.0.as_ref().map_or(&[], |known| &known.redrives)
    }

    /// One line for each execution, in order, for snapshots.
    pub(super) fn lines(&self) -> Vec<String> {
        let Some(known) = &self.0 else { return Vec::new() };
        let entries = known.attempts.iter().filter(|(_, earlier)| **earlier != Earlier::default());
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable_by_key(|(id, _)| **id);
        let mut lines: Vec<_> = entries.iter().map(|(id, earlier)| format!("{id} {earlier:?}")).collect();
        lines.extend(known.dropped.as_ref().map(|dropped| format!("detached, with {dropped:?}")));
        lines.extend(known.pause.as_ref().map(PauseState::line));
        lines
    }
}

impl RunState {
    /// The present life ends, and the next one begins at this time: `RunResumed`. `unbegun` cannot have begun, since
    /// they follow from entries that the journal does not have.
    pub(super) fn begin_life(&mut self, at: std::time::Duration, unbegun: &FxHashSet<ExecutionId>) {
        let mut open = self.may_have_begun_until(at);
        open.retain(|id| !unbegun.contains(id));
        self.lives.end(&open);
        self.active.restart(self.now, at);
        self.now = self.now.max(at);
    }

    /// The open executions whose attempts the present life may have begun by this time. One whose delay had not passed
    /// cannot have begun, unless the journal says so: the clocks of two processes may differ.
    pub(super) fn may_have_begun_until(&self, at: std::time::Duration) -> Vec<ExecutionId> {
        // S61: in a pause nothing begins, so only what was under way can have begun.
        if let Some(pause) = self.lives.pause() {
            return self.under_way_of(pause);
        }
        let mut open = self.begun_by_life();
        open.retain(|id| !self.is_delayed(*id, at));
        open
    }

    /// Whether the current attempt waits for a delay that has not passed at this time, or for the end of a pause.
    pub(super) fn is_delayed(&self, id: ExecutionId, at: std::time::Duration) -> bool {
        if let Some(pause) = self.lives.pause() {
            return !pause.under_way.contains(&id);
        }
        !self.lives.of(id).began && self.trace.next_attempt(id).is_some_and(|due| due > at)
    }

    /// The open executions that did not wait for the concurrency of their steps in the table of the present life. The
    /// present table may have another concurrency.
    fn begun_by_life(&self) -> Vec<ExecutionId> {
        let mut running = self.trace.running();
        // One that begins anew after a redrive may wait for its turn (S21).
        running.retain(|id| self.scheduler.is_running(*id));
        let Some(changed) = self.lives.changed_concurrency() else { return running };
        let is_changed = |id: &ExecutionId| self.step_of(*id).is_some_and(|step| changed.contains_key(&step));
        let mut begun: Vec<_> = running.iter().copied().filter(|id| !is_changed(id)).collect();
        running.extend(self.scheduler.board().queued_executions().map(|queued| queued.start.execution));
        begun.extend(self.first_of(changed, &running));
        begun
    }

    /// Those of the open executions that a life with this concurrency of their steps has not left waiting. Executions of
    /// a step start in the order of their numbers (S21).
    fn first_of(
        &self,
        concurrency: &FxHashMap<StepIndex, Option<u32>>,
        open: &[ExecutionId],
    ) -> Vec<ExecutionId> {
        let mut begun = Vec::new();
        for (step, most) in concurrency {
            let of_step = open.iter().copied().filter(|id| self.step_of(*id) == Some(*step));
            let mut of_step: Vec<_> = of_step.collect();
            of_step.sort_unstable();
            of_step.dedup();
            of_step.truncate(most.map_or(usize::MAX, |most| most as usize));
            begun.extend(of_step);
        }
        begun
    }

    /// An execution was dropped with its branch, for a redrive. `ran`: by the present table, it did not wait for the
    /// concurrency of its step.
    #[cold]
    pub(super) fn note_gone(&mut self, execution: ExecutionId, ran: bool) {
        let begun = self.had_begun(execution).unwrap_or(ran);
        if begun && !self.is_delayed(execution, self.now) {
            self.lives.0.get_or_insert_default().gone.insert(execution);
        }
    }

    /// Whether the present life may have begun an execution that was dropped; `None` if its table does not have another
    /// concurrency of the step. Nothing begins between a batch and the drops that follow from it.
    fn had_begun(&mut self, dropped: ExecutionId) -> Option<bool> {
        let changed = self.lives.changed_concurrency()?;
        if !changed.contains_key(&self.step_of(dropped)?) {
            return None;
        }
        let found = self.lives.0.as_ref().map(|known| &known.found)?;
        if found.begun.is_none() {
            let board = self.scheduler.board();
            let mut open = self.trace.running();
            open.extend(board.queued_executions().map(|queued| queued.start.execution));
            open.extend(board.dropped_waiting());
            open.extend(found.ends);
            open.push(dropped);
            let begun = self.first_of(changed, &open).into_iter().collect();
            self.lives.0.get_or_insert_default().found.begun = Some(begun);
        }
        let begun = self.lives.0.as_ref()?.found.begun.as_ref()?;
        Some(begun.contains(&dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAY: ExecutionId = ExecutionId(1);

    fn earlier(lives: &Lives) -> (u32, bool, bool) {
        let earlier = lives.of(PAY);
        (earlier.interruptions, earlier.may_have_begun, earlier.takes_turn())
    }

    // S35, S53
    #[test]
    fn an_attempt_is_interrupted_by_each_process_that_may_have_begun_it() {
        let mut lives = Lives::default();
        assert_eq!(earlier(&lives), (0, false, false));
        lives.end(&[]);
        assert!(lives.0.is_none(), "a run that has nothing open keeps nothing");
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (1, true, false));
        lives.end(&[ExecutionId(2)]);
        assert_eq!(earlier(&lives), (1, true, false), "it waited");
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (2, true, true));
    }

    // S35
    #[test]
    fn from_the_third_on_only_an_attempt_that_the_journal_says_began_is_interrupted() {
        let mut lives = Lives::default();
        lives.end(&[PAY]);
        lives.end(&[PAY]);
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (2, true, true), "it waited for its turn");
        lives.attempt_began(PAY);
        assert_eq!(earlier(&lives), (2, true, false));
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (3, true, true));
    }

    // S35, S53
    #[test]
    fn a_detached_life_interrupts_nothing_and_may_have_begun_only_what_it_dropped() {
        let mut lives = Lives::default();
        lives.detach(&[]);
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (0, false, false));
        lives.detach(&[PAY]);
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (0, true, false));
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (1, true, false), "the next life was not detached");
    }

    // S35, S53
    #[test]
    fn the_next_attempt_has_not_begun_and_interruptions_add_up() {
        let mut lives = Lives::default();
        lives.end(&[PAY]);
        lives.next_attempt(PAY);
        assert_eq!(earlier(&lives), (1, false, false));
        lives.end(&[PAY]);
        assert_eq!(earlier(&lives), (2, true, true));
    }

    // S53
    #[test]
    fn an_attempt_that_this_life_lost_may_have_begun() {
        let mut lives = Lives::default();
        lives.lose(PAY);
        assert_eq!((earlier(&lives), lives.lost().count()), ((0, true, false), 1));
        assert!(lives.lines().is_empty(), "no journal has it");
        lives.next_attempt(PAY);
        assert_eq!(earlier(&lives), (0, false, false));
    }
}
