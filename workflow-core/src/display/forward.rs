//! The items of a child run on their way to the viewers of its parent.

use std::sync::{Arc, PoisonError};

use super::ring::Ring;
use super::{Display, DisplayItem};
use crate::id::ChildRun;

/// The destination of a child's items.
pub(crate) struct Forward {
    /// The display of the attempt that started the child. Its retraction covers these items (S25).
    display: Display,
    path: Arc<[ChildRun]>,
}

impl Forward {
    pub(crate) fn new(display: Display, child: ChildRun) -> Self {
        Self { display, path: Arc::new([child]) }
    }

    /// Whether it replaces the other, for the same child.
    pub(super) fn answers_for(&self, other: &Self) {
        self.display.answers_for(&other.display);
    }

    /// The parent's hub.
    pub(super) fn display(&self) -> &Display {
        &self.display
    }

    /// The parent's ring, if no other handle shares it.
    pub(super) fn into_ring(self) -> Option<Ring> {
        let ring = Arc::into_inner(self.display.hub.ring)?;
        Some(ring.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The item as the parent shows it.
    pub(super) fn of_child(&self, item: &DisplayItem) -> DisplayItem {
        let (path, item) = match item {
            // The parent is a child itself.
            DisplayItem::Child { path, item } => {
                (self.path.iter().chain(path.iter()).cloned().collect(), Arc::clone(item))
            }
            item => (Arc::clone(&self.path), Arc::new(item.clone())),
        };
        DisplayItem::Child { path, item }
    }
}
