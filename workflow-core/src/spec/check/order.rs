//! An order of all events and steps in which each comes before what it leads to, as far as they lead in no circle.
//!
//! Some properties are fixed points: each event and step gets its own from those before or behind it. Rounds in this
//! order, forwards and backwards in turns, find them soon. Without a circle one round is enough, and another one finds
//! nothing new.
//!
//! ```text
//!  declared    b(&X) -> Y    a(&Begin) -> X
//!  order       Begin  a  X  b  Y
//! ```
//!
//! A node is an event by its number, or a step by its number behind those of all events.

use super::graph::RuleGraph;

/// The state of the walk at an event or a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// Whether the walk has come here.
    walked: bool,
    /// The node that it came from; `None` where it began.
    from: Option<usize>,
    /// Which way it takes next: of a step, an effect; of an event, see [`RuleGraph::way_from_event`].
    next: usize,
}

impl Walk {
    pub(super) const NONE: Self = Self { walked: false, from: None, next: 0 };
}

/// A way out of an event: its reply first.
const REPLY: usize = 0;
/// Then the first step that takes it.
const FIRST: usize = 1;
/// Then the members behind that, each as its number and this.
const MEMBERS: usize = 2;
/// No way is left.
const END: usize = usize::MAX;

impl RuleGraph<'_, '_> {
    /// Orders the nodes, once.
    pub(super) const fn put_in_order(&mut self) {
        let (mut node, nodes) = (0, self.events.len() + self.steps.len());
        // Events come first: a walk that begins at a step finds less.
        while node < nodes && self.order.len() < nodes {
            self.walk_from(node);
            node += 1;
        }
    }

    /// The node at this place of a round: from front to back, or from back to front.
    pub(super) const fn node(&self, place: usize, forwards: bool) -> Node {
        // A node enters `order` behind those that it leads to.
        let place = if forwards { self.order.len() - 1 - place } else { place };
        let node = *self.order.get(place);
        if node < self.events.len() { Node::Event(node) } else { Node::Step(node - self.events.len()) }
    }

    /// Adds what follows from the node, and then the node. The way back is stored in the nodes, since a chain may be
    /// longer than a stack.
    const fn walk_from(&mut self, node: usize) {
        if self.walk(node).walked {
            return;
        }
        let mut at = node;
        self.walk_mut(at).walked = true;
        loop {
            match self.way(at) {
                Some(next) if !self.walk(next).walked => {
                    let walk = self.walk_mut(next);
                    walk.walked = true;
                    walk.from = Some(at);
                    at = next;
                }
                Some(_) => {}
                None => {
                    self.order.push(at);
                    match self.walk(at).from {
                        Some(from) => at = from,
                        None => return,
                    }
                }
            }
        }
    }

    /// Where the walk goes next from the node.
    const fn way(&mut self, node: usize) -> Option<usize> {
        if node < self.events.len() {
            return self.way_from_event(node);
        }
        let step = node - self.events.len();
        let mut effect = self.steps.get(step).walk.next;
        while effect < self.effects(step) {
            let event = self.effect(step, effect);
            effect += 1;
            if event.is_some() {
                self.steps.row(step).walk.next = effect;
                return event;
            }
        }
        None
    }

    const fn way_from_event(&mut self, event: usize) -> Option<usize> {
        let row = self.events.row(event);
        if row.walk.next == REPLY {
            row.walk.next = FIRST;
            if row.reply.is_some() {
                return row.reply;
            }
        }
        let member = match row.walk.next {
            END => None,
            FIRST => row.taken,
            member => Some(member - MEMBERS),
        };
        let Some(member) = member else { return None };
        let member = *self.members.get(member);
        self.events.row(event).walk.next = match member.next {
            Some(next) => next + MEMBERS,
            None => END,
        };
        Some(self.events.len() + member.step)
    }

    const fn walk(&self, node: usize) -> Walk {
        if node < self.events.len() {
            self.events.get(node).walk
        } else {
            self.steps.get(node - self.events.len()).walk
        }
    }

    const fn walk_mut(&mut self, node: usize) -> &mut Walk {
        let events = self.events.len();
        if node < events { &mut self.events.row(node).walk } else { &mut self.steps.row(node - events).walk }
    }
}

/// An event or a step.
#[derive(Clone, Copy)]
pub(super) enum Node {
    Event(usize),
    Step(usize),
}
