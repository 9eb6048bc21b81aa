use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::id::ExecutionId;
use crate::run::places::{Bounded, Queue};

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

fn attempt(execution: u64) -> Begins {
    Begins::Attempt(ExecutionId(execution))
}

fn execution_of(begins: Option<Begins>) -> Option<u64> {
    match begins? {
        Begins::Attempt(execution) => Some(execution.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_nothing_bounds_begins_at_once() {
    let mut admission = Admission::new(None, None, 2);
    assert_eq!(admit(&mut admission, &Arc::default()), Admit::Now);
    assert!(admission.is_plain() && admission.gate().is_none() && admission.full().is_none());
}

// S21
#[test]
fn executions_over_the_bound_wait_in_order_until_there_is_room() {
    let mut admission = Admission::new(None, None, 2);
    assert!(admission.is_open(1) && !admission.is_open(2));
    admission.defer(attempt(7));
    admission.defer(attempt(5));
    assert_eq!((admission.full(), admission.deferred().len()), (Some(2), 2));
    assert!(!admission.is_open(0) && !admission.is_plain(), "nobody passes those that wait");
    assert_eq!(execution_of(admission.next_deferred(2)), None);
    assert_eq!(execution_of(admission.next_deferred(1)), Some(7));
    assert_eq!(execution_of(admission.next_deferred(0)), Some(5));
    assert_eq!(execution_of(admission.next_deferred(0)), None);
    assert!(admission.is_open(1) && admission.full().is_none());
}

// S21
#[test]
fn a_run_takes_its_permit_once_and_another_is_woken_when_it_leaves() {
    let (gate, queue) = (Arc::new(Gate::new(1, Bounded::Runs)), Arc::<Queue>::default());
    let of = |id: &str| {
        let places = Places::of(&id.into(), &"W".into(), None, Some(&gate), &queue).unwrap();
        (Admission::new(Some((places, None)), None, 1), Arc::<Woken>::default())
    };
    let ((mut first, first_woken), (mut second, second_woken)) = (of("a"), of("b"));
    assert!(!first.is_open(0), "it has no permit yet");
    assert_eq!(admit(&mut first, &first_woken), Admit::Took);
    assert_eq!(admit(&mut first, &first_woken), Admit::Now);
    assert!(first.is_open(0) && first.gate().is_none());

    assert_eq!(admit(&mut second, &second_woken), Admit::Waits);
    assert!(!second.is_open(0) && second.gate().is_some());
    assert_eq!(queue.runs(), ["b".into()]);
    assert_eq!(second_woken.0.load(Ordering::SeqCst), 0);

    first.give_up_permit();
    assert_eq!(second_woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(admit(&mut second, &second_woken), Admit::Took);
    assert!(queue.runs().is_empty() && second.gate().is_none());
    assert_eq!(admit(&mut first, &first_woken), Admit::Waits);

    // A run that stops waiting for its permit does not block the queue.
    first.give_up_permit();
    assert!(queue.runs().is_empty());
    second.give_up_permit();
    assert_eq!(admit(&mut first, &first_woken), Admit::Took);
}
