//! Entities of a thread: people, places and things with facts and relations, merged from what an agent extracts. This
//! file owns the extracted types and the store. `directory` decides which entities stay, `detail` merges the facts of
//! each, `named` finds names in a text. The agent that extracts is not here.
//!
//! ```text
//! agent/memory/entities     the directory: a slot for each name, when it was mentioned last, the runs merged last
//! agent/memory/entity/042   the details of the entity in this slot
//! ```
//!
//! The directory changes first, atomically, and decides alone. A crash afterwards leaves entities without details, which
//! the repeated merge adds. The slot of a removed entity is that of the next new one, so nothing is left to remove.

use std::collections::{BTreeMap, HashMap};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workflow_core::errors::ContextError;
use workflow_core::{RunId, ThreadContext};

mod detail;
mod directory;
mod named;

use detail::{Detail, Link, Mention};
use directory::{Directory, Entry};

use super::{Recalled, RecalledKind};

/// The most entities and relations that one recall returns.
const RECALLED: usize = 20;

/// The most entities and relations that one merge takes.
const MOST_MERGED: usize = 64;

/// The most bytes of texts.
const NAME: usize = 100;
const KIND: usize = 100;
const FACT: usize = 300;

const DIRECTORY: &str = "agent/memory/entities";

/// The number of calls of the store at a time.
const AT_A_TIME: usize = 8;

/// The entities and relations that a text speaks of: the output of the agent that extracts them.
///
/// ```
/// use workflow_agent::memory::Entities;
///
/// let json = r#"{"entities": [{"name": "Ada", "kind": "person", "facts": ["lives in Bern"]}],
///                "relations": [{"from": "Ada", "relation": "works for", "to": "Acme"}]}"#;
/// let extracted: Entities = serde_json::from_str(json)?;
/// assert_eq!(extracted.entities[0].facts, ["lives in Bern"]);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entities {
    /// People, places, organisations, things.
    #[serde(default)]
    pub entities: Vec<Entity>,
    /// Relations between them.
    #[serde(default)]
    pub relations: Vec<Relation>,
}

/// A person, place, organisation or thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// The full name, as the text has it.
    pub name: String,
    /// The kind in one or two words, such as `person`.
    #[serde(default)]
    pub kind: String,
    /// Lasting facts, one short sentence each.
    #[serde(default)]
    pub facts: Vec<String>,
}

/// A relation from one entity to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Relation {
    /// The name of the first entity.
    pub from: String,
    /// The relation as a verb, such as `works for`.
    pub relation: String,
    /// The name of the second entity.
    pub to: String,
}

/// The entities that a thread's runs spoke of, in the context of the thread.
///
/// Names that differ in case and spacing only are one entity. A thread keeps 1,000 entities, and a new one replaces
/// the one whose last mention is the oldest. Each has the latest 20 facts of at most 300 bytes and the latest 20
/// relations; names have at most 100 bytes. Longer texts are cut. All writers of a thread may work at the same time,
/// in any process.
///
/// ```
/// use workflow_agent::memory::{Entities, Entity, EntityStore};
/// use workflow_core::ThreadContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
/// let thread = ThreadContext::in_memory();
/// let store = EntityStore::new(&thread);
/// let ada = Entity { name: "Ada Byron".into(), kind: "person".into(), facts: vec!["lives in Bern".into()] };
/// store.merge(&"s-1/1".into(), &Entities { entities: vec![ada], relations: vec![] }).await?;
///
/// let recalled = store.named_in("Where does ada byron live?").await?;
/// assert_eq!(recalled[0].text, "Ada Byron (person): lives in Bern");
/// assert!(store.named_in("Where does Canada lie?").await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EntityStore<'a> {
    thread: &'a ThreadContext,
}

impl<'a> EntityStore<'a> {
    /// The store of a thread.
    pub fn new(thread: &'a ThreadContext) -> Self {
        Self { thread }
    }

    /// Merges the entities of a run. Takes the first 64 entities and the first 64 relations.
    ///
    /// A second call with the same run and entities changes nothing, as long as fewer than 64 other runs were merged
    /// since. Later ones then count as another mention. The order in which runs are merged decides only how late their
    /// mentions are.
    ///
    /// # Errors
    /// Errors of the context store. Part of the work may be done then, and a repeated call completes it.
    pub async fn merge(&self, run: &RunId, extracted: &Entities) -> Result<(), ContextError> {
        let mentions = mentions(extracted);
        if mentions.is_empty() {
            return Ok(());
        }
        let enter = |directory: Option<Directory>| {
            let mut directory = directory.unwrap_or_default();
            directory.enter(run, mentions.keys());
            directory
        };
        let directory = self.thread.update(DIRECTORY, enter).await?;
        let number = directory.number(run);
        // Boxed: a step's future must be `Send` for every lifetime, which the compiler does not see through the stream.
        let mut writes: Vec<BoxFuture<'_, Result<(), ContextError>>> = Vec::with_capacity(mentions.len());
        for (name, mention) in &mentions {
            if let Some(entry) = directory.entry(name) {
                writes.push(self.write(entry, number, mention).boxed());
            }
        }
        stream::iter(writes).buffered(AT_A_TIME).try_collect::<()>().await
    }

    async fn write(&self, entry: Entry, number: u64, mention: &Mention) -> Result<(), ContextError> {
        let merge = |there: Option<Detail>| match there {
            // The slot has another entity by now.
            Some(newer) if newer.id() > entry.id => newer,
            Some(mut detail) if detail.id() == entry.id => {
                detail.merge(number, mention);
                detail
            }
            _ => {
                let mut detail = Detail::new(entry.id);
                detail.merge(number, mention);
                detail
            }
        };
        self.thread.update(&detail_key(entry), merge).await.map(drop)
    }

    /// Returns the entities whose names stand in a text as whole words, and their relations.
    ///
    /// Those mentioned last come first, at most 20 entities and after them at most 20 relations. Reading the text takes
    /// time in proportion to its length.
    ///
    /// # Errors
    /// Errors of the context store.
    pub async fn named_in(&self, text: &str) -> Result<Vec<Recalled>, ContextError> {
        let Some(directory) = self.thread.get::<Directory>(DIRECTORY).await? else { return Ok(Vec::new()) };
        let mut entries: Vec<(&str, Entry)> = named::named(text, directory.names())
            .into_iter()
            .filter_map(|name| Some((name, directory.entry(name)?)))
            .collect();
        entries.sort_by(|(a, x), (b, y)| y.mention.cmp(&x.mention).then(a.cmp(b)));
        entries.truncate(RECALLED);
        let entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
        let reads = entries.into_iter().map(|entry| async move {
            let detail = self.thread.get::<Detail>(&detail_key(entry)).await?;
            Ok(detail.filter(|detail| detail.id() == entry.id))
        });
        let details: Vec<Option<Detail>> = stream::iter(reads).buffered(AT_A_TIME).try_collect().await?;
        let details: Vec<Detail> = details.into_iter().flatten().collect();
        Ok(recalled(&details))
    }
}

fn recalled(details: &[Detail]) -> Vec<Recalled> {
    let entities = details.iter().filter_map(Detail::text);
    let entities = entities.map(|text| Recalled::new(RecalledKind::Entity, text));
    let relations = relations(details).into_iter().map(|text| Recalled::new(RecalledKind::Relation, text));
    entities.chain(relations).collect()
}

/// The relations of some entities, each once, the latest first.
fn relations(details: &[Detail]) -> Vec<String> {
    let mut latest: HashMap<String, &Link> = HashMap::new();
    for link in details.iter().flat_map(Detail::links) {
        let there = latest.entry(link.key()).or_insert(link);
        if link.rank() > there.rank() {
            *there = link;
        }
    }
    let mut links: Vec<&Link> = latest.into_values().collect();
    links.sort_by(|a, b| b.rank().cmp(&a.rank()));
    links.into_iter().take(RECALLED).map(Link::text).collect()
}

/// The mentions of an extraction, by name. Both ends of a relation are mentioned.
fn mentions(extracted: &Entities) -> BTreeMap<String, Mention> {
    let mut mentions: BTreeMap<String, Mention> = BTreeMap::new();
    for entity in extracted.entities.iter().take(MOST_MERGED) {
        if let Some(mention) = mentioned(&mut mentions, &entity.name) {
            mention
                .describe(&bounded(&entity.kind, KIND), entity.facts.iter().map(|fact| bounded(fact, FACT)));
        }
    }
    for relation in extracted.relations.iter().take(MOST_MERGED) {
        let [from, verb, to] =
            [&relation.from, &relation.relation, &relation.to].map(|text| bounded(text, NAME));
        if [&from, &verb, &to].into_iter().any(String::is_empty) {
            continue;
        }
        let relation = Relation { from, relation: verb, to };
        let ends = [&relation.from, &relation.to];
        // A relation of an entity to itself has one end.
        let ends = if folded(ends[0]) == folded(ends[1]) { &ends[..1] } else { &ends[..] };
        for end in ends {
            if let Some(mention) = mentioned(&mut mentions, end) {
                mention.relate(&relation);
            }
        }
    }
    mentions
}

/// The mention of a name; `None` for a name without visible characters.
fn mentioned<'a>(mentions: &'a mut BTreeMap<String, Mention>, name: &str) -> Option<&'a mut Mention> {
    let name = bounded(name, NAME);
    (!name.is_empty()).then(|| mentions.entry(folded(&name)).or_insert_with(|| Mention::of(&name)))
}

/// The form by which names and facts are the same: in lower case.
fn folded(text: &str) -> String {
    text.to_lowercase()
}

/// A text with single spaces, cut between characters.
fn bounded(text: &str, most: usize) -> String {
    let mut bounded = String::new();
    for word in text.split_whitespace() {
        if !bounded.is_empty() {
            bounded.push(' ');
        }
        bounded.push_str(word);
        if bounded.len() > most {
            let end = (0..=most - '…'.len_utf8()).rev().find(|at| bounded.is_char_boundary(*at));
            bounded.truncate(end.unwrap_or(0));
            bounded.push('…');
            break;
        }
    }
    bounded
}

fn detail_key(entry: Entry) -> String {
    format!("agent/memory/entity/{:03}", entry.slot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A44
        #[test]
        fn texts_have_single_spaces_and_a_bound(text in "[aé🙂 \t\n]{0,80}", most in 3_usize..60) {
            let short = bounded(&text, most);
            prop_assert!(short.len() <= most);
            let words: Vec<_> = text.split_whitespace().collect();
            match short.strip_suffix('…') {
                None => prop_assert_eq!(short, words.join(" ")),
                Some(head) => prop_assert!(words.join(" ").starts_with(head)),
            }
        }
    }

    /// A44
    #[test]
    fn both_ends_of_a_relation_are_mentioned_and_empty_names_are_not() {
        let relation =
            |from: &str, to: &str| Relation { from: from.into(), relation: "knows".into(), to: to.into() };
        let relations = vec![relation("Ada", " ADA "), relation("Ada", "Grace"), relation("", "Eve")];
        let entities = vec![Entity { name: " \n".into(), ..Entity::default() }];
        let mentions = mentions(&Entities { entities, relations });
        assert_eq!(mentions.keys().collect::<Vec<_>>(), ["ada", "grace"]);
    }

    /// A45
    #[tokio::test]
    async fn a_slow_writer_does_not_overwrite_the_entity_that_has_its_slot_by_now() {
        let thread = ThreadContext::in_memory();
        let store = EntityStore::new(&thread);
        let mut mention = Mention::of("Ada");
        mention.describe("person", std::iter::empty());
        let entry = |id| Entry { slot: 7, id, mention: id };
        store.write(entry(2), 2, &mention).await.unwrap();
        store.write(entry(1), 1, &Mention::of("Bob")).await.unwrap();
        let there: Detail = thread.get("agent/memory/entity/007").await.unwrap().unwrap();
        assert_eq!((there.id(), there.text().as_deref()), (2, Some("Ada (person)")));
        store.write(entry(3), 3, &Mention::of("Eve")).await.unwrap();
        let there: Detail = thread.get("agent/memory/entity/007").await.unwrap().unwrap();
        assert_eq!((there.id(), there.text()), (3, None));
    }
}
