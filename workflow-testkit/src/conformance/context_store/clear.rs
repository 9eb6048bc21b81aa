//! Checks of what `clear` removes and keeps.

use workflow_core::store::{ContextScope, ContextStore};
use workflow_core::{RunId, ThreadId};

use super::place::{Number, Place};
use crate::conformance::stage::run;

const KEYS: Number = 50;

pub fn clear_removes_everything_in_a_scope<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        for number in 0..KEYS {
            place.at_key(&number.to_string()).put(number).await;
        }
        place.clear().await;
        for number in 0..KEYS {
            let read = place.at_key(&number.to_string()).read().await;
            assert_eq!(read, None, "`clear` removes everything in a scope: key {number} of {KEYS} is there");
        }
    });
}

pub fn clear_leaves_other_scopes_alone<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let (place, run) = (Place::new(&store), RunId::generate());
        let cleared = place.in_scope(ContextScope::Run(run.clone()));
        let name = run.as_str();
        let alike = [format!("{name}2"), format!("{name}/a"), format!("{name}%"), name[1..].to_owned()];
        let mut others: Vec<ContextScope> = alike.map(|name| ContextScope::Run(name.into())).to_vec();
        others.push(ContextScope::Thread(ThreadId::new(name)));
        cleared.put(0).await;
        for scope in &others {
            place.in_scope(scope.clone()).put(1).await;
        }
        cleared.clear().await;
        for scope in others {
            let read = place.in_scope(scope.clone()).read().await;
            assert_eq!(read, Some(1), "`clear` of run {name} leaves {scope} alone");
        }
    });
}

pub fn clear_can_be_repeated_at_will<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        // Clearing an empty scope is no error.
        place.clear().await;
        place.put(1).await;
        place.clear().await;
        place.clear().await;
        assert_eq!(place.read().await, None, "clearing twice leaves what clearing once leaves");
    });
}

pub fn a_scope_that_was_cleared_can_be_used_again<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        place.clear().await;
        assert_eq!(place.put(2).await, None, "after `clear` there is no value that `set` could replace");
        assert_eq!(place.increment().await, Some(3), "a scope that was cleared is like one that is new");
    });
}
