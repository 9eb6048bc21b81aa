//! The workflow: a loop whose every round fetches one level of pages, in parallel, and gathers their links.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};

use crate::web::{self, Web};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Crawl {
    pub(crate) seeds: Vec<String>,
}

/// The addresses that are as many links away from the seeds as the level's number.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Level {
    pub(crate) number: u32,
    pub(crate) urls: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(crate) struct Page {
    pub(crate) url: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Fetched {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) words: usize,
    links: Vec<String>,
}

/// The result of a level. Links that lead nowhere are listed with the reason.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Visited {
    pages: Vec<Fetched>,
    broken: Vec<(String, String)>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Crawled {
    pub(crate) pages: Vec<Fetched>,
    pub(crate) broken: Vec<(String, String)>,
    /// How many addresses were found and not visited, because of a bound.
    pub(crate) left_out: usize,
}

#[derive(Debug, EventSet)]
pub(crate) enum Next {
    Level(Level),
    Crawled(Crawled),
}

/// Shown while the run goes on.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
pub(crate) enum Progress {
    Level { number: u32, urls: usize },
    Fetched { url: String, words: usize },
}

pub(crate) struct Crawler {
    pub(crate) web: Arc<Web>,
    /// The crawl ends after the level with this number.
    pub(crate) depth: u32,
    /// The most pages of the whole crawl.
    pub(crate) most: usize,
}

#[workflow]
impl Crawler {
    #[step]
    async fn begin(&self, crawl: &Crawl) -> Level {
        let seeds: BTreeSet<String> = crawl.seeds.iter().cloned().collect();
        Level { number: 0, urls: seeds.into_iter().take(self.most).collect() }
    }

    /// Sixteen pages are open at a time, however long the level is.
    #[step]
    async fn plan(&self, level: &Level, display: &Display) -> FanOut<Page> {
        display.show(Progress::Level { number: level.number, urls: level.urls.len() });
        let pages = level.urls.iter().map(|url| Page { url: url.clone() });
        pages.collect::<FanOut<_>>().concurrency(16).continue_others()
    }

    /// The key of the limit: the host of the page.
    fn host(page: &Page) -> String {
        web::host(&page.url).to_owned()
    }

    /// The limit `host` of the engine bounds the attempts to each host, over all runs.
    #[step(limit = "host", limit_key = host, timeout = "10s", retry = Self::twice())]
    async fn fetch(&self, page: &Page, display: &Display) -> Result<Fetched, StepError> {
        let text = self.web.get(&page.url).await?;
        let words = web::words(&text);
        display.show(Progress::Fetched { url: page.url.clone(), words });
        let (title, links) = (web::title(&text).to_owned(), web::links(&page.url, &text));
        Ok(Fetched { url: page.url.clone(), title, words, links })
    }

    /// Takes each gather once, beside the level that it belongs to. The lists have all levels so far.
    #[step(loops, reruns)]
    async fn follow(
        &self,
        level: &Level,
        fetched: &Gather<Fetched>,
        levels: &List<Level>,
        before: Option<&List<Visited>>,
    ) -> (Visited, Next) {
        let broken = fetched.failed().filter_map(|branch| {
            Some((branch.item::<Page>()?.url.clone(), branch.failure()?.error().to_string()))
        });
        let visited = Visited { pages: fetched.ok().cloned().collect(), broken: broken.collect() };
        let seen: BTreeSet<&String> = levels.iter().flat_map(|level| &level.urls).collect();
        let links: BTreeSet<&String> = visited.pages.iter().flat_map(|page| &page.links).collect();
        let found: Vec<String> = links.difference(&seen).map(|url| (*url).clone()).collect();
        let room = if level.number < self.depth { self.most - seen.len() } else { 0 };
        let urls: Vec<String> = found.iter().take(room).cloned().collect();
        let next = if urls.is_empty() {
            let all = || before.into_iter().flat_map(List::iter).chain([&visited]);
            let pages = all().flat_map(|visited| visited.pages.clone()).collect();
            let broken = all().flat_map(|visited| visited.broken.clone()).collect();
            Next::Crawled(Crawled { pages, broken, left_out: found.len() })
        } else {
            Next::Level(Level { number: level.number + 1, urls })
        };
        (visited, next)
    }
}

impl Crawler {
    fn twice() -> RetryPolicy {
        RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(2, Duration::from_millis(50)))
    }
}
