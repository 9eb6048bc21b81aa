//! The limits of an engine's runs: runs of the engine, runs of each workflow, child runs, and the depth of children.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::Semaphore;

use super::WhenFull;
use crate::clock::EngineClock;
use crate::id::RunId;
use crate::limit::{Limit, Limiter};
use crate::outcome::StartError;
use crate::run::{LimitOf, Permit, PermitQueue, PermitRequest, RunLimit};

const DEFAULT_CHILD_DEPTH: u32 = 3;

const DEFAULT_CHILDREN: usize = 8;

/// The limits of an engine's runs, and the queue of those that wait.
pub(super) struct Concurrency {
    runs: Option<Arc<RunLimit>>,
    /// By the type of the workflow, where it has a limit.
    runs_of: HashMap<TypeId, Arc<RunLimit>>,
    /// By the name of the workflow, where it has a limit.
    runs_named: HashMap<Arc<str>, Arc<RunLimit>>,
    /// Children have a limit of their own: a parent that waits for its children keeps its permit.
    children: Arc<RunLimit>,
    /// How deep child runs may nest.
    pub(super) child_depth: u32,
    /// What happens to a start that gets no permit at once.
    pub(super) when_full: WhenFull,
    queue: Arc<PermitQueue>,
    /// The named limits of attempts.
    named: BTreeMap<Arc<str>, Limit>,
}

/// The workflows that a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkflowKey<'a> {
    Type(TypeId),
    Name(&'a str),
}

impl Default for Concurrency {
    fn default() -> Self {
        Self {
            runs: None,
            runs_of: HashMap::new(),
            runs_named: HashMap::new(),
            children: children(DEFAULT_CHILDREN),
            child_depth: DEFAULT_CHILD_DEPTH,
            when_full: WhenFull::default(),
            queue: Arc::default(),
            named: BTreeMap::new(),
        }
    }
}

fn children(most: usize) -> Arc<RunLimit> {
    Arc::new(RunLimit::new(most, LimitOf::Children))
}

impl Concurrency {
    pub(super) fn limit_runs(&mut self, most: usize) {
        self.runs = Some(Arc::new(RunLimit::new(most, LimitOf::Runs)));
    }

    pub(super) fn limit_runs_of(&mut self, workflow: TypeId, name: &'static str, most: usize) {
        self.runs_of.insert(workflow, Arc::new(RunLimit::new(most, LimitOf::RunsOf(name.into()))));
    }

    pub(super) fn limit_runs_named(&mut self, name: Arc<str>, most: usize) {
        let limit = RunLimit::new(most, LimitOf::RunsOf(Arc::clone(&name)));
        self.runs_named.insert(name, Arc::new(limit));
    }

    pub(super) fn limit_children(&mut self, most: usize) {
        self.children = children(most);
    }

    pub(super) fn limit_attempts(&mut self, name: Arc<str>, limit: Limit) {
        self.named.insert(name, limit);
    }

    /// The names of the limits of attempts, sorted.
    pub(super) fn named(&self) -> impl Iterator<Item = &Arc<str>> {
        self.named.keys()
    }

    /// The limits of attempts at work, by name.
    pub(super) fn limiters(&self, clock: &EngineClock) -> HashMap<Arc<str>, Arc<Limiter>> {
        let at_work = |(name, limit): (&Arc<str>, &Limit)| {
            (Arc::clone(name), Limiter::new(Arc::clone(name), *limit, clock.clone()))
        };
        self.named.iter().map(at_work).collect()
    }

    /// The workflows that have a limit and are not hosted, sorted by name.
    pub(super) fn unknown(&self, is_hosted: impl Fn(WorkflowKey<'_>) -> bool) -> Vec<Arc<str>> {
        let types = self.runs_of.iter().map(|(id, limit)| (WorkflowKey::Type(*id), limit));
        let named = self.runs_named.iter().map(|(name, limit)| (WorkflowKey::Name(name), limit));
        let unknown = types.chain(named).filter(|(key, _)| !is_hosted(*key));
        let mut unknown: Vec<_> = unknown.filter_map(|(_, limit)| limit.workflow().cloned()).collect();
        unknown.sort_unstable();
        unknown
    }

    /// The runs that wait for a permit, in the order in which they began to wait.
    pub(super) fn queued(&self) -> Vec<RunId> {
        self.queue.runs()
    }

    /// The limits of a run, if it has any. The run may become known later.
    pub(super) fn permit_request(
        &self,
        run: Option<&RunId>,
        workflow: TypeId,
        name: &Arc<str>,
    ) -> Option<PermitRequest> {
        let limits = [self.runs_named.get(name), self.runs_of.get(&workflow), self.runs.as_ref()];
        PermitRequest::of(run, name, limits, &self.queue)
    }

    /// The limits of a child run, to which its parent may lend a permit.
    pub(super) fn child_places(
        &self,
        run: &RunId,
        name: &Arc<str>,
        lent: Option<Arc<Semaphore>>,
    ) -> PermitRequest {
        PermitRequest::of_child(run, name, &self.children, lent, &self.queue)
    }

    /// Whether a child may be so deep below the first run.
    pub(super) fn check_depth(&self, depth: u32) -> Result<(), StartError> {
        let limit = self.child_depth;
        if depth > limit { Err(StartError::TooDeep { depth, limit }) } else { Ok(()) }
    }

    /// Takes a permit for a run that begins. Waits for one, unless [`WhenFull::Refuse`] is set or `shut_down` completes
    /// first.
    pub(super) async fn take(
        &self,
        permit_request: PermitRequest,
        shut_down: impl Future<Output = ()>,
    ) -> Result<(PermitRequest, Option<Permit>), StartError> {
        let place = match self.when_full {
            WhenFull::Refuse => permit_request.take_now()?,
            WhenFull::Queue => match select(pin!(permit_request.clone().take()), pin!(shut_down)).await {
                Either::Left((place, _)) => place,
                Either::Right(_) => return Err(StartError::ShutDown),
            },
        };
        Ok((permit_request, Some(place)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt as _;

    use super::*;

    struct Slow;
    struct Quick;

    fn permit_request(concurrency: &Concurrency, run: &str, workflow: TypeId) -> Option<PermitRequest> {
        concurrency.permit_request(Some(&run.into()), workflow, &"Slow".into())
    }

    fn take(
        concurrency: &Concurrency,
        permit_request: PermitRequest,
    ) -> Option<Result<Option<Permit>, StartError>> {
        Some(concurrency.take(permit_request, pending()).now_or_never()?.map(|(_, place)| place))
    }

    #[test]
    fn without_limits_a_run_needs_no_permit() {
        assert!(permit_request(&Concurrency::default(), "a", TypeId::of::<Slow>()).is_none());
    }

    #[test]
    fn a_limit_of_a_workflow_bounds_no_other() {
        let mut concurrency = Concurrency::default();
        concurrency.limit_runs_of(TypeId::of::<Slow>(), "Slow", 1);
        assert!(permit_request(&concurrency, "a", TypeId::of::<Slow>()).is_some());
        assert!(permit_request(&concurrency, "b", TypeId::of::<Quick>()).is_none());
        assert_eq!(
            concurrency.unknown(|key| key == WorkflowKey::Type(TypeId::of::<Quick>())),
            ["Slow".into()]
        );
        assert!(concurrency.unknown(|key| key == WorkflowKey::Type(TypeId::of::<Slow>())).is_empty());
    }

    #[test]
    fn a_start_waits_in_the_queue_until_a_permit_is_there() {
        let mut concurrency = Concurrency::default();
        concurrency.limit_runs(1);
        let [first, second] =
            ["a", "b"].map(|run| permit_request(&concurrency, run, TypeId::of::<Slow>()).unwrap());
        let permit = take(&concurrency, first).unwrap().unwrap();
        let mut waits = pin!(concurrency.take(second, pending()));
        assert!(waits.as_mut().now_or_never().is_none());
        assert_eq!(concurrency.queued(), ["b".into()]);
        drop(permit);
        assert!(waits.now_or_never().unwrap().is_ok());
        assert!(concurrency.queued().is_empty());
    }

    #[test]
    fn a_start_that_waits_is_refused_when_the_engine_shuts_down() {
        let mut concurrency = Concurrency::default();
        concurrency.limit_runs(1);
        let [first, second] =
            ["a", "b"].map(|run| permit_request(&concurrency, run, TypeId::of::<Slow>()).unwrap());
        let _permit = take(&concurrency, first).unwrap().unwrap();
        let refused = concurrency.take(second, ready(())).now_or_never().unwrap();
        assert!(matches!(refused, Err(StartError::ShutDown)));
        assert!(concurrency.queued().is_empty());
    }

    #[test]
    fn a_start_is_refused_at_once_where_it_is_not_to_wait() {
        let mut concurrency = Concurrency { when_full: WhenFull::Refuse, ..Concurrency::default() };
        concurrency.limit_runs_of(TypeId::of::<Slow>(), "Slow", 1);
        let [first, second] =
            ["a", "b"].map(|run| permit_request(&concurrency, run, TypeId::of::<Slow>()).unwrap());
        let _permit = take(&concurrency, first).unwrap().unwrap();
        let refused = take(&concurrency, second).unwrap().unwrap_err();
        assert!(matches!(refused, StartError::Full { limit: 1, workflow: Some(of), .. } if &*of == "Slow"));
    }

    #[test]
    fn children_have_a_limit_of_their_own_and_of_their_depth() {
        let mut concurrency = Concurrency::default();
        concurrency.limit_runs(1);
        concurrency.limit_children(1);
        let run = permit_request(&concurrency, "a", TypeId::of::<Slow>()).unwrap();
        let _permit = take(&concurrency, run).unwrap().unwrap();
        let child = |run: &str| concurrency.child_places(&run.into(), &"Slow".into(), None);
        let _first = child("a/s-x1.1").take().now_or_never().unwrap();
        assert!(child("a/s-x1.2").take().now_or_never().is_none());
        assert!(concurrency.check_depth(DEFAULT_CHILD_DEPTH).is_ok());
        let refused = concurrency.check_depth(DEFAULT_CHILD_DEPTH + 1);
        assert!(matches!(refused, Err(StartError::TooDeep { depth: 4, limit: 3 })));
    }
}
