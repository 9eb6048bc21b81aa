//! What a child run shows, on its way to the viewers of its parent.

use std::sync::{Arc, PoisonError};

use super::ring::Ring;
use super::{Display, DisplayItem};
use crate::id::ChildRun;

/// Where a child's items go.
pub(crate) struct Forward {
    /// That of the attempt which started the child: what is shown there is retracted with it (S25).
    display: Display,
    path: Arc<[ChildRun]>,
}

impl Forward {
    pub(crate) fn new(display: Display, child: ChildRun) -> Self {
        Self { display, path: Arc::new([child]) }
    }

    /// It goes on for the other, which is of the same child.
    pub(super) fn answers_for(&self, other: &Self) {
        self.display.answers_for(&other.display);
    }

    /// Shows it to the viewers of the parent, and of those above.
    pub(super) fn forward(&self, item: &DisplayItem) {
        self.display.pass_on(self.of_child(item));
    }

    /// The parent's, which it goes to.
    pub(super) fn display(&self) -> &Display {
        &self.display
    }

    /// The ring that it goes to, if nobody else has that.
    pub(super) fn into_ring(self) -> Option<Ring> {
        let ring = Arc::into_inner(self.display.hub.ring)?;
        Some(ring.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The item as the parent shows it.
    pub(super) fn of_child(&self, item: &DisplayItem) -> DisplayItem {
        let (path, item) = match item {
            // The parent has a parent itself.
            DisplayItem::Child { path, item } => {
                (self.path.iter().chain(path.iter()).cloned().collect(), Arc::clone(item))
            }
            item => (Arc::clone(&self.path), Arc::new(item.clone())),
        };
        DisplayItem::Child { path, item }
    }
}
