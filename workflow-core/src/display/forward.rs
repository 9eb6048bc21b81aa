//! What a child run shows, on its way to the viewers of its parent.

use std::sync::Arc;

use super::{Display, DisplayItem};
use crate::children::ChildRun;

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

    pub(super) fn forward(&self, item: &DisplayItem) {
        let (path, item) = match item {
            // The parent has a parent itself.
            DisplayItem::Child { path, item } => {
                (self.path.iter().chain(path.iter()).cloned().collect(), Arc::clone(item))
            }
            item => (Arc::clone(&self.path), Arc::new(item.clone())),
        };
        self.display.pass_on(path, item);
    }
}
