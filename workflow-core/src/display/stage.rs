//! How far an attempt has come with its display, and since when it has shown items.

use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the order in which attempts of all runs showed their first items. Runs above a child compare them with
/// their own viewers' moments, so the order is one for the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

impl Moment {
    /// Before every first item.
    pub(super) const START: Self = Self(0);

    /// Now: at or after every first item so far.
    pub(super) fn now() -> Self {
        Self(FIRST_ITEMS.load(Ordering::Relaxed))
    }

    fn of_first_item() -> Self {
        Self(FIRST_ITEMS.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// How many attempts have shown a first item. Locks of rings order its uses.
static FIRST_ITEMS: AtomicU64 = AtomicU64::new(0);

/// The attempt has shown nothing.
const SILENT: u64 = 0;
/// The attempt failed, and shows nothing any more.
const VOID: u64 = u64::MAX;

/// `SILENT`, then the moment of the first item, then `VOID`. The caller holds the lock of the attempt's hub; readers of
/// other hubs need no lock.
#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU64);

impl Stage {
    /// Notes that the attempt shows an item. Returns `false` if it has failed.
    pub(super) fn show(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            SILENT => self.0.store(Moment::of_first_item().0, Ordering::Relaxed),
            VOID => return false,
            _ => {}
        }
        true
    }

    /// Notes that the attempt failed. Returns since when it has shown items, if it has and did not fail before.
    pub(super) fn end(&self) -> Option<Moment> {
        match self.0.swap(VOID, Ordering::Relaxed) {
            SILENT | VOID => None,
            since => Some(Moment(since)),
        }
    }

    /// Whether the attempt failed.
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == VOID
    }

    /// Takes over the items of another handle of the same attempt.
    pub(super) fn answer_for(&self, other: &Self) {
        let both = [self.0.load(Ordering::Relaxed), other.0.load(Ordering::Relaxed)];
        let stage = match both {
            _ if both.contains(&VOID) => VOID,
            [SILENT, other] => other,
            [own, SILENT] => own,
            [own, other] => own.min(other),
        };
        self.0.store(stage, Ordering::Relaxed);
    }
}
