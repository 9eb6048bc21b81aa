//! Random runs and random queries: each query lists what a scan of all runs finds. The scan has filters of its own, so that
//! a mistake of [`RunQuery::admits`] is found too.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use workflow_core::report::Quality;
use workflow_core::store::{EngineId, EventStore, Position, RunQuery, RunSummary, StoredRun};
use workflow_core::{RunId, RunStatus, ThreadId};

use super::journal::Journal;
use super::samples::moment;
use super::subject::Subject;
use crate::random::Random;

/// How many appends are made at the same time.
const AT_ONCE: usize = 64;

const STATUSES: [RunStatus; 9] = [
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Paused,
    RunStatus::CleaningUp,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Stalled,
    RunStatus::Cancelled,
    RunStatus::TimedOut,
];

const ENGINES: [&str; 4] = ["engine-1", "engine-2", "engine-3", "engine"];

pub fn queries_list_what_a_scan_of_all_runs_finds<S: EventStore>(subject: Subject<S>) {
    // Runs of other checks are in the backend, so that each query names a workflow, a thread or a run.
    queries_of_a_population(subject, Population { runs: 60, queries: 240, alone: false });
}

/// The size of a random test.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    /// How many runs there are.
    pub runs: usize,
    /// How many queries are asked, each page by page.
    pub queries: usize,
    /// Whether the store has no other runs.
    pub alone: bool,
}

/// Fills a store with random runs, and compares the pages of random queries with a scan.
pub fn queries_of_a_population<S: EventStore>(subject: Subject<S>, size: Population) {
    subject.check(move |store| async move {
        let journal = Journal::new(&store);
        let (names, mut random) = (Names::new(&journal, size.runs), Random::of(17));
        let kept = fill(&journal, &names, size.runs, &mut random).await;
        let runs: Vec<&StoredRun> = kept.values().collect();
        for _ in 0..size.queries {
            let ask = Ask::draw(&names, &runs, size.alone, &mut random);
            let expected = ask.scan(&runs);
            // Small pages of large lists would take long.
            let page = random.below(40) + 1 + expected.len() / 20;
            let listed = journal.all_runs(ask.query().at_most(page)).await;
            let demand = "the pages of a query are what a scan of all runs finds";
            let differs = listed.iter().zip(&expected).position(|(listed, expected)| listed != *expected);
            assert_eq!((listed.len(), differs), (expected.len(), None), "{demand}: {ask:?} by {page}");
        }
    });
}

/// The names that runs share.
struct Names {
    stem: RunId,
    workflows: Vec<Arc<str>>,
    threads: Vec<ThreadId>,
}

impl Names {
    fn new(journal: &Journal, runs: usize) -> Self {
        let name = |number: usize| Arc::from(format!("{} {number}", journal.workflow));
        let threads = (0..runs / 12 + 2).map(|number| ThreadId::new(&*name(number))).collect();
        Self { stem: journal.run.clone(), workflows: (0..4).map(name).collect(), threads }
    }

    /// A workflow; the first ones have most runs.
    fn workflow(&self, random: &mut Random) -> Arc<str> {
        Arc::clone(&self.workflows[random.below(4).min(random.below(4))])
    }

    /// An id that has runs below it, if a random run has one above.
    fn above(&self, runs: &[&StoredRun], random: &mut Random) -> RunId {
        let of_child =
            runs[random.below(runs.len())..].iter().find_map(|run| run.id.as_str().rsplit_once('/'));
        of_child.map_or_else(|| self.stem.clone(), |(above, _)| above.into())
    }

    fn thread(&self, random: &mut Random) -> ThreadId {
        self.threads[random.below(self.threads.len())].clone()
    }
}

/// Writes random runs, some of them several times and in several states, and removes some. Returns what is left.
async fn fill(
    journal: &Journal,
    names: &Names,
    runs: usize,
    random: &mut Random,
) -> BTreeMap<RunId, StoredRun> {
    let mut kept = BTreeMap::<RunId, StoredRun>::new();
    let mut ids = Vec::new();
    while kept.len() < runs {
        let id: RunId = match random.below(8) {
            0 if !ids.is_empty() => format!("{}/ask-x1.1", ids[random.below(ids.len())]).into(),
            _ => format!("{}-{:06x}", names.stem, random.below(1 << 24)).into(),
        };
        let run = summary(names, runs, None, random);
        if kept.insert(id.clone(), StoredRun { id: id.clone(), end: Position(1), run }).is_none() {
            ids.push(id);
        }
    }
    put_all(journal, kept.values()).await;
    for id in &ids {
        if random.below(4) > 0 {
            continue;
        }
        let Some(stored) = kept.get_mut(id) else { continue };
        // Usually the start, the thread and the workflow of a run stay, and a store cannot know that they do.
        let stays = (random.below(10) > 0).then_some(&stored.run);
        stored.run = summary(names, runs, stays, random);
        stored.end = Position(2);
    }
    put_all(journal, kept.values().filter(|stored| stored.end == Position(2))).await;
    for id in ids.iter().filter(|_| random.below(30) == 0) {
        assert!(journal.of_run(id.clone()).remove().await, "the run was there");
        kept.remove(id);
    }
    kept
}

async fn put_all(journal: &Journal, runs: impl Iterator<Item = &StoredRun>) {
    let runs: Vec<_> = runs.collect();
    for some in runs.chunks(AT_ONCE) {
        let puts = some.iter().map(|stored| {
            let run = journal.of_run(stored.id.clone());
            async move { run.put_summary(stored.end.0 - 1, stored.run.clone()).await }
        });
        join_all(puts).await;
    }
}

/// A random summary, of the same run as the one before if there is one.
fn summary(names: &Names, runs: usize, before: Option<&RunSummary>, random: &mut Random) -> RunSummary {
    let mut run = before.cloned().unwrap_or_else(|| {
        // Several runs start at once.
        let started = random.below(runs / 2 + 1) as u64;
        let started = moment(started / 10) + Duration::from_nanos(started % 10);
        let mut run = RunSummary::running(names.workflow(random), started);
        run.thread = (random.below(3) > 0).then(|| names.thread(random));
        run
    });
    let status = STATUSES[random.below(STATUSES.len())];
    run = if status.is_ended() { run.ended(status) } else { run.running_again() };
    run.status = status;
    run.ended = status.is_ended().then(|| run.started + Duration::from_secs(random.below(99) as u64));
    run.quality = status.is_ended().then_some(Quality::Degraded);
    run.owned_by(engine(random))
}

fn engine(random: &mut Random) -> Option<EngineId> {
    ENGINES.get(random.below(ENGINES.len() + 1)).copied().map(EngineId::new)
}

/// A random query, as its parts.
#[derive(Debug, Default)]
struct Ask {
    run: Option<RunId>,
    below: Option<RunId>,
    workflow: Option<Arc<str>>,
    thread: Option<ThreadId>,
    open: bool,
    statuses: Vec<RunStatus>,
    not_owned_by: Vec<EngineId>,
    newest_first: bool,
    after: Option<RunId>,
    older_than: Option<(SystemTime, RunId)>,
}

impl Ask {
    fn draw(names: &Names, runs: &[&StoredRun], alone: bool, random: &mut Random) -> Self {
        let a_run = |random: &mut Random| runs[random.below(runs.len())];
        let mut ask =
            Self { newest_first: random.below(3) > 0, open: random.below(4) == 0, ..Self::default() };
        ask.run = (random.below(20) == 0).then(|| a_run(random).id.clone());
        ask.below = (random.below(6) == 0).then(|| names.above(runs, random));
        ask.workflow = (random.below(2) == 0).then(|| names.workflow(random));
        ask.thread = (random.below(3) == 0).then(|| names.thread(random));
        for _ in 0..random.below(4) / 2 * (random.below(2) + 1) {
            ask.statuses.push(STATUSES[random.below(STATUSES.len())]);
        }
        for _ in 0..random.below(6) / 3 {
            ask.not_owned_by.extend(engine(random));
        }
        ask.after = (random.below(6) == 0).then(|| a_run(random).id.clone());
        if random.below(3) == 0 {
            let [time, id] = [a_run(random), a_run(random)];
            let id = if random.below(2) == 0 { &time.id } else { &id.id };
            ask.older_than = Some((time.run.started, id.clone()));
        }
        if !alone && ask.run.is_none() && ask.thread.is_none() && ask.workflow.is_none() {
            ask.workflow = Some(names.workflow(random));
        }
        ask
    }

    fn query(&self) -> RunQuery {
        let mut query = RunQuery::new().not_owned_by(self.not_owned_by.iter().cloned());
        query = self.statuses.iter().fold(query, |query, status| query.status(*status));
        if let Some(run) = &self.run {
            query = query.run(run.clone());
        }
        if let Some(above) = &self.below {
            query = query.below(above.clone());
        }
        if let Some(workflow) = &self.workflow {
            query = query.workflow(Arc::clone(workflow));
        }
        if let Some(thread) = &self.thread {
            query = query.thread(thread.clone());
        }
        if let Some(after) = &self.after {
            query = query.after(after.clone());
        }
        if let Some((started, run)) = &self.older_than {
            query = query.older_than(*started, run.clone());
        }
        query = if self.open { query.open() } else { query };
        if self.newest_first { query.newest_first() } else { query }
    }

    /// The runs that a query lists, by a scan of all.
    fn scan<'r>(&self, runs: &[&'r StoredRun]) -> Vec<&'r StoredRun> {
        let mut found: Vec<&StoredRun> = runs.iter().copied().filter(|stored| self.takes(stored)).collect();
        if self.newest_first {
            found.sort_by_key(|stored| Reverse((stored.run.started, stored.id.as_str())));
        }
        found
    }

    fn takes(&self, StoredRun { id, run, .. }: &StoredRun) -> bool {
        let is_same = |asked: Option<&str>, found: Option<&str>| asked.is_none() || asked == found;
        let is_older = match &self.older_than {
            Some((started, _)) if run.started > *started => false,
            Some((started, before)) if run.started == *started => id.as_str() < before.as_str(),
            _ => true,
        };
        let owner = run.owner.as_ref();
        is_same(self.run.as_ref().map(RunId::as_str), Some(id.as_str()))
            && is_same(self.workflow.as_deref(), Some(&run.workflow))
            && is_same(self.thread.as_ref().map(ThreadId::as_str), run.thread.as_ref().map(ThreadId::as_str))
            && (!self.open || !run.status.is_ended())
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && !self.not_owned_by.iter().any(|engine| owner == Some(engine))
            && self.after.as_ref().is_none_or(|after| id.as_str() > after.as_str())
            && self.below.as_ref().is_none_or(|above| id.as_str().starts_with(&format!("{above}/")))
            && is_older
    }
}
