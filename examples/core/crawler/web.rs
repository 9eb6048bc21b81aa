//! A folder that stands for the web: one folder per host, with its pages. It notes how it was used.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use workflow_core::prelude::*;

/// How long a page takes.
const LATENCY: Duration = Duration::from_millis(15);

pub(crate) struct Web {
    root: PathBuf,
    use_of_hosts: Mutex<BTreeMap<String, Use>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Use {
    now: usize,
    pub(crate) most_at_a_time: usize,
    pub(crate) requests: usize,
}

impl Web {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, use_of_hosts: Mutex::default() }
    }

    /// The text of a page.
    pub(crate) async fn get(&self, url: &str) -> Result<String, StepError> {
        let Some(path) = url.strip_prefix("http://").filter(|path| !path.contains("..")) else {
            return Err(StepError::rejected(format!("{url} is no address of this web")));
        };
        self.note(host(url), |host| {
            host.now += 1;
            host.requests += 1;
            host.most_at_a_time = host.most_at_a_time.max(host.now);
        });
        tokio::time::sleep(LATENCY).await;
        let page = tokio::fs::read_to_string(self.root.join(path)).await;
        self.note(host(url), |host| host.now -= 1);
        page.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StepError::rejected("there is no such page"),
            _ => StepError::transient(error),
        })
    }

    pub(crate) fn use_of_hosts(&self) -> Vec<(String, Use)> {
        self.hosts().iter().map(|(host, used)| (host.clone(), *used)).collect()
    }

    fn note(&self, host: &str, note: impl FnOnce(&mut Use)) {
        note(self.hosts().entry(host.to_owned()).or_default());
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Use>> {
        self.use_of_hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn host(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split_once('/').map_or(rest, |(host, _)| host)
}

pub(crate) fn title(text: &str) -> &str {
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or("(no title)", |(title, _)| title)
}

/// The words outside of tags.
pub(crate) fn words(text: &str) -> usize {
    text.split('<')
        .filter_map(|part| part.split_once('>'))
        .flat_map(|(_, text)| text.split_whitespace())
        .count()
}

/// The links of a page, as whole addresses.
pub(crate) fn links(url: &str, text: &str) -> Vec<String> {
    let targets = text.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let whole = targets.map(|(target, _)| match target.strip_prefix('/') {
        Some(path) => format!("http://{}/{path}", host(url)),
        None => target.to_owned(),
    });
    whole.collect()
}
