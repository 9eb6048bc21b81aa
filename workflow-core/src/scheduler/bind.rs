//! Readiness and binding: whether a step is ready at a trigger, and which events its parameters get (S13,
//! S15–S17, S45).
//!
//! Both are functions of the scopes and the trigger alone. A binding consists of positions, and a list is a
//! number of events per scope: binding costs the same however long the list is.
//!
//! Example, in a branch with an item at 4, whose root has notes at 2 and 3: `pack(Item, Note)` triggered by 4
//! gets 4 and 3. A `List<Note>` gets the first 2 of the root.
//!
//! ```text
//!  kind of parameter            binding
//!  takes the trigger's type     the trigger             (not for lists)
//!  one event                    the latest of the innermost scope that has one
//!  list                         per scope of the chain, all its events so far
//!  fixed list                   the first N by position, as a number of them per scope
//!  injected                     Nothing
//! ```
//!
//! Invariant: the evaluation counts the trigger in its scope before it binds a step, so "so far" includes the
//! trigger (S12). Nothing here changes the board.
//!
//! Readiness has a fast and a slow path. The fast path compares two masks: the conditions that the step
//! requires, and those that the scope's own events satisfy. In a branch the conditions of outer scopes count
//! too, so the slow path tests each condition along the chain of scopes.

use smallvec::SmallVec;

use super::row_states::BindingKey;
use super::scope::Scopes;
use super::{Binding, Bound, Entry, Prefixes};
use crate::id::{ScopeId, Seq};
use crate::spec::InputKind;
use crate::table::{Condition, DependencyTable, InputRow, StepIndex, StepRow, TopicIndex};

/// Evaluates the steps at one trigger in one scope.
pub(super) struct Binder<'a> {
    /// Has the rows of the steps, with their masks, topics and conditions.
    pub(super) table: &'a DependencyTable,
    /// The tree at the position of the trigger: later events are not counted yet.
    pub(super) scopes: &'a Scopes,
    /// The event that is evaluated. It is bound wherever a parameter takes its type.
    pub(super) trigger: Entry,
    /// The scope in which the steps are evaluated: that of the trigger, or an open branch below.
    pub(super) scope: ScopeId,
}

impl Binder<'_> {
    /// S13. The masks nearly always decide. Only a fixed list whose events lie in several scopes needs
    /// counting.
    pub(super) fn is_ready(&self, step: StepIndex) -> bool {
        let row = self.table.step(step);
        let Some(own) = self.scopes.get(self.scope) else { return false };
        if own.satisfied.has_all(&row.required) {
            return true;
        }
        // The root sees only its own events, so its mask has decided.
        own.parent.is_some()
            && row.inputs.iter().filter_map(|input| input.condition).all(|condition| self.holds(condition))
    }

    /// Whether the condition holds by the events that the scope sees. A condition for one event holds if it
    /// holds in any scope of the chain. For more events, those of all scopes of the chain count together.
    fn holds(&self, condition: Condition) -> bool {
        self.scopes.chain(self.scope).any(|(_, scope)| scope.satisfied.has(condition.bit))
            || (condition.least > 1 && self.scopes.visible(self.scope, condition.topic) >= condition.least)
    }

    /// Binds each parameter of the step: to the trigger where its type matches, else to the latest event
    /// (S15).
    pub(super) fn bind(&self, step: StepIndex) -> Binding {
        let row = self.table.step(step);
        let mut binding = Binding::new();
        for input in &row.inputs {
            binding.push(self.bound(input));
        }
        if row.joins_gather {
            self.leave_taken(step, &mut binding);
        }
        binding
    }

    /// S48: an optional gather that the step took in this scope is not bound again. One that is required stays
    /// bound, and is the obstacle that the verdict names.
    fn leave_taken(&self, step: StepIndex, binding: &mut Binding) {
        let Some(own) = self.scopes.get(self.scope) else { return };
        for (input, bound) in self.table.step(step).inputs.iter().zip(binding) {
            let is_taken = matches!(*bound, Bound::One(seq) if own.taker_of(step, seq).is_some());
            if input.optional && input.kind == InputKind::Gather && is_taken {
                *bound = Bound::Nothing;
            }
        }
    }

    /// Binds one parameter.
    fn bound(&self, input: &InputRow) -> Bound {
        let Some(topic) = input.topic else { return Bound::Nothing };
        match input.kind {
            InputKind::List => self.list(topic),
            InputKind::Fixed(count) => self.fixed(topic, count),
            // By type, not by topic: the trigger may lie in an outer scope, and the branch may have an
            // earlier event of its own, which `latest` would prefer.
            _ if input.events.contains(&self.trigger.event) => Bound::One(self.trigger.seq),
            _ => self.scopes.latest(self.scope, topic).map_or(Bound::Nothing, Bound::One),
        }
    }

    /// All events of the topic that the scope sees: of each scope of the chain the whole prefix so far (S16,
    /// S45).
    fn list(&self, topic: TopicIndex) -> Bound {
        // The root sees its own events alone.
        if self.scope == ScopeId::ROOT {
            let count = self.scopes.root().count_of(topic);
            return if count > 0 { Bound::List(Prefixes::one(self.scope, count)) } else { Bound::Nothing };
        }
        let counts = self.scopes.chain(self.scope).map(|(id, scope)| (id, scope.count_of(topic)));
        some_list(counts.filter(|(_, count)| *count > 0).collect())
    }

    /// The first `count` events that the scope sees, whichever scopes they belong to.
    fn fixed(&self, topic: TopicIndex, count: u32) -> Bound {
        if self.scopes.visible(self.scope, topic) < count {
            return Bound::Nothing;
        }
        // Each scope stores enough of its first positions for the largest fixed list of the topic.
        let chain = self.scopes.chain(self.scope);
        let firsts = chain.map(|(id, scope)| (id, scope.first(topic)));
        let mut seqs: SmallVec<[(Seq, ScopeId); 8]> =
            firsts.flat_map(|(id, first)| first.iter().map(move |seq| (*seq, id))).collect();
        // The first events by position, whichever scopes they are in; then counted per scope, since a list is
        // a number of first events of each.
        seqs.sort_unstable();
        let mut counts: SmallVec<[(ScopeId, u32); 1]> = SmallVec::new();
        for (_, id) in seqs.iter().take(count as usize) {
            match counts.iter_mut().find(|(known, _)| known == id) {
                Some((_, counted)) => *counted += 1,
                None => counts.push((*id, 1)),
            }
        }
        some_list(counts.into_iter().collect())
    }

    /// S46: whether one of the bound events belongs to this scope itself.
    /// Otherwise the evaluation in an outer scope has bound the same events, and covers this one.
    pub(super) fn binds_own(&self, step: StepIndex, binding: &Binding) -> bool {
        let inputs = &self.table.step(step).inputs;
        self.scope == ScopeId::ROOT
            || inputs.iter().zip(binding).any(|(input, bound)| match bound {
                // S58: nor does a passive input make a branch evaluate.
                _ if input.passive => false,
                Bound::Nothing => false,
                Bound::One(seq) => self.is_own(input, *seq),
                Bound::List(prefixes) => prefixes.iter().any(|(id, _)| id == self.scope),
            })
    }

    /// Whether the event belongs to this scope. Apart from the trigger, an input is only ever bound to the
    /// latest event of a scope.
    fn is_own(&self, input: &InputRow, seq: Seq) -> bool {
        if seq == self.trigger.seq {
            return self.trigger.scope == self.scope;
        }
        let own = self.scopes.get(self.scope).zip(input.topic);
        own.is_some_and(|(scope, topic)| scope.latest(topic) == Some(seq))
    }
}

fn some_list(prefixes: Prefixes) -> Bound {
    if prefixes.is_empty() { Bound::Nothing } else { Bound::List(prefixes) }
}

/// The identity of a combination of bound events (S20), without those of passive inputs (S58). A list is identified by
/// its length.
///
/// The keys of one step have the same kinds of parameters in the same order, so equal keys are equal bindings.
pub(super) fn key_of(row: &StepRow, binding: &Binding) -> BindingKey {
    let mut key = BindingKey::new();
    for (input, bound) in row.inputs.iter().zip(binding) {
        match bound {
            _ if input.passive => {}
            // The same terminator as a list has, so that no key is the beginning of another.
            Bound::Nothing => key.push(u64::MAX),
            Bound::One(seq) => key.push(seq.0),
            Bound::List(prefixes) => {
                for (scope, count) in prefixes.iter() {
                    key.extend([u64::from(scope.0), u64::from(count)]);
                }
                key.push(u64::MAX);
            }
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::fixtures::{self, entry, step};
    use crate::scheduler::{Board, SchedulerLimits};

    fn counted(board: &mut Board, name: &str) -> Entry {
        let entry = entry(board, name);
        assert!(board.count(entry));
        entry
    }

    // S13, S15
    #[test]
    fn a_step_is_ready_with_all_it_requires_and_takes_the_trigger_and_the_latest_others() {
        let mut board = fixtures::board(SchedulerLimits::default());
        let pack = step(&board, "pack");
        let item = counted(&mut board, "Item");
        assert!(!board.binder(item, ScopeId::ROOT).is_ready(pack));
        let (_, note) = (counted(&mut board, "Note"), counted(&mut board, "Note"));
        assert!(board.binder(note, ScopeId::ROOT).is_ready(pack));
        assert_eq!(
            board.binder(item, ScopeId::ROOT).bind(pack)[..],
            [Bound::One(item.seq), Bound::One(note.seq)]
        );
    }

    // S17
    #[test]
    fn a_fixed_list_is_full_with_its_first_events() {
        let mut board = fixtures::board(SchedulerLimits::default());
        let pair = step(&board, "pair");
        let first = counted(&mut board, "Note");
        assert_eq!(board.binder(first, ScopeId::ROOT).bind(pair)[..], [Bound::Nothing]);
        let bound = [2, 3].map(|_| {
            let note = counted(&mut board, "Note");
            key_of(board.table.step(pair), &board.binder(note, ScopeId::ROOT).bind(pair))
        });
        assert_eq!(bound[0], bound[1]);
        assert_eq!(bound[0][..], [0, 2, u64::MAX]);
    }
}
