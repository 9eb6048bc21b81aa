//! The open requests that a run's display has told of (S64): its own, and those of the runs below.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DisplayItem;
use crate::id::{ChildRun, RunId, Seq};

/// How a request was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// It has a reply.
    Replied,
    /// It expired.
    Expired,
    /// Nobody can reply any more: its branch was dropped, or the run has ended or was left to another process.
    Dropped,
}

/// The requests that were asked in a ring and are not closed, by run and place. `None` is the run of the ring.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeMap<(Option<RunId>, Seq), Arc<[ChildRun]>>);

impl Asked {
    /// Takes an item of a request. Returns it as the viewers receive it; `None` if they are not to: the request was asked
    /// before, or has been closed.
    pub(super) fn take(&mut self, item: DisplayItem) -> Option<DisplayItem> {
        let (path, inner) = item.place();
        let run = path.last().map(|child| child.run.clone());
        match *inner {
            DisplayItem::Asked { ref request } => {
                let (key, path) = ((run, request.seq()), path.into());
                if self.0.contains_key(&key) {
                    return None;
                }
                self.0.insert(key, path);
                Some(item)
            }
            // The child may have another attempt above it by now.
            DisplayItem::Closed { seq, how } => self.0.remove(&(run, seq)).map(|path| closed(path, seq, how)),
            _ => Some(item),
        }
    }

    /// The open requests of this run.
    pub(super) fn of(&self, run: Option<&RunId>) -> impl Iterator<Item = Seq> {
        let run = run.cloned();
        let range = (run.clone(), Seq(0))..=(run, Seq(u64::MAX));
        self.0.range(range).map(|((_, seq), _)| *seq)
    }

    /// The ends of all requests, in order.
    pub(super) fn drop_all(self) -> impl Iterator<Item = DisplayItem> {
        self.0.into_iter().map(|((_, seq), path)| closed(path, seq, RequestEnd::Dropped))
    }
}

/// The end of a request of the run at the end of the path.
fn closed(path: Arc<[ChildRun]>, seq: Seq, how: RequestEnd) -> DisplayItem {
    let item = DisplayItem::Closed { seq, how };
    if path.is_empty() { item } else { DisplayItem::Child { path, item: Arc::new(item) } }
}
