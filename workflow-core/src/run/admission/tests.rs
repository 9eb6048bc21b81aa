use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::id::ExecutionId;
use crate::run::permits::{LimitOf, PermitQueue, RunLimit};

/// Counts how often a run is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Asks whether a run may begin something.
fn admit(admission: &mut Admission, woken: &Arc<Woken>) -> Admit {
    let waker = Waker::from(Arc::clone(woken));
    admission.admit(None, SystemTime::UNIX_EPOCH, &mut Context::from_waker(&waker))
}

fn attempt(execution: u64) -> EffectKind {
    EffectKind::Attempt(ExecutionId(execution))
}

fn execution_of(begins: Option<EffectKind>) -> Option<u64> {
    match begins? {
        EffectKind::Attempt(execution) => Some(execution.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_nothing_bounds_begins_at_once() {
    let mut admission = Admission::new(None, None, 2);
    assert_eq!(admit(&mut admission, &Arc::default()), Admit::Now);
    assert!(admission.allows_suspension() && admission.waits_for().is_none() && admission.full().is_none());
}

// S21
#[test]
fn executions_over_the_bound_wait_in_order_until_there_is_room() {
    let mut admission = Admission::new(None, None, 2);
    assert!(admission.admits_directly(1) && !admission.admits_directly(2));
    admission.defer(attempt(7));
    admission.defer(attempt(5));
    assert_eq!((admission.full(), admission.deferred_count()), (Some(2), 2));
    assert!(!admission.admits_directly(0) && !admission.allows_suspension(), "nobody passes those that wait");
    assert_eq!(execution_of(admission.next_deferred(2)), None);
    assert_eq!(execution_of(admission.next_deferred(1)), Some(7));
    assert_eq!(execution_of(admission.next_deferred(0)), Some(5));
    assert_eq!(execution_of(admission.next_deferred(0)), None);
    assert!(admission.admits_directly(1) && admission.full().is_none());
}

// S21
#[test]
fn a_run_takes_its_permit_once_and_another_is_woken_when_it_leaves() {
    let (gate, queue) = (Arc::new(RunLimit::new(1, LimitOf::Runs)), Arc::<PermitQueue>::default());
    let of = |id: &str| {
        let places =
            PermitRequest::of(Some(&id.into()), &"W".into(), [None, None, Some(&gate)], &queue).unwrap();
        (Admission::new(Some((places, None)), None, 1), Arc::<Woken>::default())
    };
    let ((mut first, first_woken), (mut second, second_woken)) = (of("a"), of("b"));
    assert!(!first.admits_directly(0), "it has no permit yet");
    assert_eq!(admit(&mut first, &first_woken), Admit::TookPermit);
    assert_eq!(admit(&mut first, &first_woken), Admit::Now);
    assert!(first.admits_directly(0) && first.waits_for().is_none());

    assert_eq!(admit(&mut second, &second_woken), Admit::WaitsForPermit);
    assert!(!second.admits_directly(0) && second.waits_for().is_some());
    assert_eq!(queue.runs(), ["b".into()]);
    assert_eq!(second_woken.0.load(Ordering::SeqCst), 0);

    first.give_up_permit();
    assert_eq!(second_woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(admit(&mut second, &second_woken), Admit::TookPermit);
    assert!(queue.runs().is_empty() && second.waits_for().is_none());
    assert_eq!(admit(&mut first, &first_woken), Admit::WaitsForPermit);

    // A run that stops waiting for its permit does not block the queue.
    first.give_up_permit();
    assert!(queue.runs().is_empty());
    second.give_up_permit();
    assert_eq!(admit(&mut first, &first_woken), Admit::TookPermit);
}
