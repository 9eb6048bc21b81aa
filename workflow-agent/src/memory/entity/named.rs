//! Finds names in a text as whole words. It reads the text once: from each word, it follows a tree of the names' words,
//! whose depth is bounded by the length of names.

use std::collections::{BTreeSet, HashMap};

use crate::memory::words::tokens;

/// The names that stand in a text.
pub(super) fn named<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let tree = Tree::of(names);
    let tokens = tokens(text);
    (0..tokens.len()).flat_map(|from| tree.along(&tokens[from..])).collect()
}

/// The words of names; names that begin alike share their first nodes.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

#[derive(Default)]
struct Node<'a> {
    next: HashMap<String, usize>,
    /// The names that end here. They differ in spacing or apostrophes only.
    names: Vec<&'a str>,
}

impl<'a> Tree<'a> {
    fn of(names: impl Iterator<Item = &'a str>) -> Self {
        let mut tree = Self { nodes: vec![Node::default()] };
        for name in names {
            let tokens = tokens(name);
            // A name without visible characters would stand everywhere.
            if !tokens.is_empty() {
                let end = tokens.into_iter().fold(0, |node, token| tree.child(node, token));
                tree.nodes[end].names.push(name);
            }
        }
        tree
    }

    fn child(&mut self, node: usize, token: String) -> usize {
        let new = self.nodes.len();
        let child = *self.nodes[node].next.entry(token).or_insert(new);
        if child == new {
            self.nodes.push(Node::default());
        }
        child
    }

    /// The names with which the tokens begin.
    fn along(&self, tokens: &[String]) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut node = &self.nodes[0];
        for token in tokens {
            let Some(next) = node.next.get(token) else { break };
            node = &self.nodes[*next];
            found.extend(&node.names);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, names: &[&'static str]) -> Vec<&'static str> {
        named(text, names.iter().copied()).into_iter().collect()
    }

    /// A44
    #[test]
    fn names_are_found_as_whole_words_in_any_case() {
        let names = ["ada", "ada lovelace", "acme", "new york", "o'brien", "c++", "王明"];
        assert_eq!(found("Canada, Adam, acmes", &names), Vec::<&str>::new());
        assert_eq!(found("ADA's brother", &names), ["ada"]);
        assert_eq!(found("Did Ada \n Lovelace visit New-York?", &names), ["ada", "ada lovelace"]);
        assert_eq!(found("NEW YORK (O’Brien)", &names), ["new york", "o'brien"]);
        assert_eq!(found("C++ for 王明先生", &names), ["c++", "王明"]);
        assert_eq!(found("new yorker", &names), Vec::<&str>::new());
    }

    proptest! {
        /// A44
        #[test]
        fn a_name_between_any_words_is_found(before in "[ab ]{0,20}", name in "[ab]{1,3}( [ab]{1,3}){0,2}", after in "[ab ]{0,20}") {
            let text = format!("{before} {name} {after}");
            prop_assert!(named(&text, std::iter::once(name.as_str())).contains(name.as_str()));
        }
    }
}
