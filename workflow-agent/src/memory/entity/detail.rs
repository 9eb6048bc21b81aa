//! The details of one entity: its name as people write it, its kind, facts and relations. Merging takes the union and
//! keeps the latest, so neither repetition nor order of merges matters. It stores nothing.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{Relation, folded};

/// The most facts and relations of an entity.
const MOST: usize = 20;

/// The stored details of an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Detail {
    id: u64,
    /// The latest spelling, with the number of the run that used it.
    name: (u64, String),
    kind: (u64, String),
    facts: Vec<Fact>,
    links: Vec<Link>,
}

/// All that one run says of an entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mention {
    name: String,
    kind: String,
    facts: Vec<String>,
    relations: Vec<Relation>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Fact {
    /// The number of the run, and the place among its facts.
    run: u64,
    place: u16,
    text: String,
}

/// A relation, stored with both of its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Link {
    run: u64,
    place: u16,
    from: String,
    relation: String,
    to: String,
}

/// The order of age: later runs are newer, and within a run the first are kept longest.
type Rank<'a> = (u64, Reverse<u16>, [&'a str; 3]);

/// A part of a detail that is stored once and has an age.
trait Part {
    fn key(&self) -> String;
    fn rank(&self) -> Rank<'_>;
}

impl Part for Fact {
    fn key(&self) -> String {
        folded(&self.text)
    }

    fn rank(&self) -> Rank<'_> {
        (self.run, Reverse(self.place), [&self.text, "", ""])
    }
}

impl Part for Link {
    fn key(&self) -> String {
        Link::key(self)
    }

    fn rank(&self) -> Rank<'_> {
        Link::rank(self)
    }
}

impl Link {
    pub(super) fn key(&self) -> String {
        folded(&format!("{}\n{}\n{}", self.from, self.relation, self.to))
    }

    pub(super) fn rank(&self) -> Rank<'_> {
        (self.run, Reverse(self.place), [&self.from, &self.relation, &self.to])
    }

    pub(super) fn text(&self) -> String {
        format!("{} {} {}", self.from, self.relation, self.to)
    }
}

impl Mention {
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), kind: String::new(), facts: Vec::new(), relations: Vec::new() }
    }

    /// Adds what one entry of an extraction says. Its first kind counts.
    pub(super) fn describe(&mut self, kind: &str, facts: impl Iterator<Item = String>) {
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
        let room = MOST - self.facts.len();
        self.facts.extend(facts.filter(|fact| !fact.is_empty()).take(room));
    }

    pub(super) fn relate(&mut self, relation: &Relation) {
        if self.relations.len() < MOST {
            self.relations.push(relation.clone());
        }
    }
}

impl Detail {
    pub(super) fn new(id: u64) -> Self {
        Self { id, name: (0, String::new()), kind: (0, String::new()), facts: Vec::new(), links: Vec::new() }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Adds what a run says.
    pub(super) fn merge(&mut self, run: u64, mention: &Mention) {
        for (there, text) in [(&mut self.name, &mention.name), (&mut self.kind, &mention.kind)] {
            if !text.is_empty() && (run, text) > (there.0, &there.1) {
                *there = (run, text.clone());
            }
        }
        let facts = (0..).zip(&mention.facts).map(|(place, text)| Fact { run, place, text: text.clone() });
        keep_latest(&mut self.facts, facts);
        let links = (0..).zip(mention.relations.iter().cloned()).map(|(place, relation)| {
            let Relation { from, relation, to } = relation;
            Link { run, place, from, relation, to }
        });
        keep_latest(&mut self.links, links);
    }

    /// The entity in one line; `None` if there is nothing to say of it.
    pub(super) fn text(&self) -> Option<String> {
        let facts: Vec<&str> = self.facts.iter().map(|fact| fact.text.as_str()).collect();
        let kind = if self.kind.1.is_empty() { String::new() } else { format!(" ({})", self.kind.1) };
        let text = format!("{}{kind}", self.name.1);
        match facts.as_slice() {
            [] => (!kind.is_empty()).then_some(text),
            facts => Some(format!("{text}: {}", facts.join("; "))),
        }
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }
}

/// Adds parts, each once with its latest mention, and keeps the latest. They stay in the order of their mentions.
fn keep_latest<P: Part>(parts: &mut Vec<P>, new: impl Iterator<Item = P>) {
    for part in new {
        let key = part.key();
        match parts.iter_mut().find(|there| there.key() == key) {
            Some(there) if there.rank() < part.rank() => *there = part,
            Some(_) => {}
            None => parts.push(part),
        }
    }
    parts.sort_by(|a, b| b.rank().cmp(&a.rank()));
    parts.truncate(MOST);
    parts.sort_by(|a, b| mentioned(a.rank()).cmp(&mentioned(b.rank())));
}

/// The order of mentions: later runs last, and within a run as it listed them.
fn mentioned((run, Reverse(place), texts): Rank<'_>) -> (u64, u16, [&str; 3]) {
    (run, place, texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mention() -> impl Strategy<Value = Mention> {
        let relation =
            ("[ab]", "[kK]", "[ab]").prop_map(|(from, relation, to)| Relation { from, relation, to });
        let facts = prop::collection::vec("[a-eA-E]{1,2}", 0..12);
        ("[aA]", "[xy]?", facts, prop::collection::vec(relation, 0..4))
            .prop_map(|(name, kind, facts, relations)| Mention { name, kind, facts, relations })
    }

    fn merged(mentions: &[(u64, Mention)]) -> Detail {
        let mut detail = Detail::new(1);
        for (run, mention) in mentions {
            detail.merge(*run, mention);
        }
        detail
    }

    proptest! {
        /// A44
        #[test]
        fn neither_order_nor_repetition_of_merges_matters(
            mentions in prop::collection::vec(mention(), 1..6),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mentions: Vec<_> = (1..).zip(mentions).collect();
            let once = merged(&mentions);
            prop_assert!(once.facts.len() <= MOST && once.links.len() <= MOST);
            let mut shuffled: Vec<_> = order.iter().map(|at| at.get(&mentions).clone()).collect();
            shuffled.extend(mentions.into_iter().rev());
            prop_assert_eq!(merged(&shuffled), once);
        }
    }

    /// A44
    #[test]
    fn the_latest_facts_stay_in_the_order_of_their_mentions() {
        let facts = |range: std::ops::Range<u32>| range.map(|fact| fact.to_string()).collect();
        let mention = |facts| Mention { facts, ..Mention::of("Ada") };
        let detail = merged(&[(1, mention(facts(0..15))), (2, mention(facts(20..30)))]);
        let expected: Vec<String> = (0..10).chain(20..30).map(|fact| fact.to_string()).collect();
        assert_eq!(detail.text().unwrap(), format!("Ada: {}", expected.join("; ")));
    }

    #[test]
    fn an_entity_of_which_nothing_is_known_has_no_text() {
        assert_eq!(merged(&[(1, Mention::of("Ada"))]).text(), None);
        assert_eq!(
            merged(&[(1, Mention { kind: "cat".into(), ..Mention::of("Ada") })]).text().unwrap(),
            "Ada (cat)"
        );
    }
}
