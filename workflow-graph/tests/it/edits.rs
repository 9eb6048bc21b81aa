//! Random edits of the examples: each is refused near the edit, or still loads. `EDITS` sets how many an example gets.

use serde_json::Value;
use workflow_graph::{Document, Problem};

use super::support::{EXAMPLES, example, number};

/// The documents of a YAML file, by another reader than the crate's.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// A document whose maps may have one key twice.
#[derive(Clone)]
enum Tree {
    Scalar(Value),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    fn of(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.into_iter().map(Self::of).collect()),
            Value::Object(pairs) => {
                Self::Map(pairs.into_iter().map(|(key, value)| (key, Self::of(value))).collect())
            }
            scalar => Self::Scalar(scalar),
        }
    }

    /// JSON with a line for each key and item.
    fn write(&self, indent: usize, to: &mut String) {
        let (open, close, items): (_, _, Vec<(Option<&String>, &Tree)>) = match self {
            Self::Scalar(value) => return to.push_str(&value.to_string()),
            Self::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
            Self::Map(pairs) => ('{', '}', pairs.iter().map(|(key, value)| (Some(key), value)).collect()),
        };
        to.push(open);
        for (index, (key, value)) in items.iter().enumerate() {
            to.push_str(if index > 0 { ",\n" } else { "\n" });
            to.push_str(&" ".repeat(indent + 2));
            if let Some(key) = key {
                to.push_str(&Value::from(key.as_str()).to_string());
                to.push_str(": ");
            }
            value.write(indent + 2, to);
        }
        to.push('\n');
        to.push_str(&" ".repeat(indent));
        to.push(close);
    }

    /// The keys and texts in it.
    fn words(&self, words: &mut Vec<String>) {
        match self {
            Self::Scalar(Value::String(text)) => words.push(text.clone()),
            Self::Scalar(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.words(words)),
            Self::Map(pairs) => {
                for (key, value) in pairs {
                    words.push(key.clone());
                    value.words(words);
                }
            }
        }
    }

    fn maps(&mut self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::List(items) => items.iter_mut().map(Self::maps).sum(),
            Self::Map(pairs) => {
                usize::from(!pairs.is_empty())
                    + pairs.iter_mut().map(|(_, value)| value.maps()).sum::<usize>()
            }
        }
    }

    /// The map of this number, counted from the top.
    fn map(&mut self, number: &mut usize) -> Option<&mut Vec<(String, Tree)>> {
        match self {
            Self::Scalar(_) => None,
            Self::List(items) => items.iter_mut().find_map(|item| item.map(number)),
            Self::Map(pairs) => {
                if !pairs.is_empty() {
                    if *number == 0 {
                        return Some(pairs);
                    }
                    *number -= 1;
                }
                pairs.iter_mut().find_map(|(_, value)| value.map(number))
            }
        }
    }
}

fn text(documents: &[Tree]) -> String {
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        document.write(0, &mut text);
        text.push('\n');
    }
    text
}

/// Edits one key somewhere. Returns the words that a problem of the edit may name instead of being near to it.
fn edit(documents: &mut [Tree], random: &mut fastrand::Rng) -> Vec<String> {
    let document = random.usize(..documents.len());
    let document = &mut documents[document];
    let mut map = random.usize(..document.maps());
    let pairs = document.map(&mut map).unwrap();
    let place = random.usize(..pairs.len());
    let mut words = vec![pairs[place].0.clone()];
    pairs[place].1.words(&mut words);
    match random.u8(..5) {
        0 => drop(pairs.remove(place)),
        1 => pairs[place].0.push_str("_x"),
        2 => {
            let copy = pairs[place].clone();
            pairs.insert(place + 1, copy);
        }
        3 => {
            pairs[place].1 = match random.u8(..4) {
                0 => Tree::Scalar(7.into()),
                1 => Tree::Scalar("text".into()),
                2 => Tree::List(vec![Tree::Scalar("text".into())]),
                _ => Tree::Map(vec![("text".to_owned(), Tree::Scalar(true.into()))]),
            };
        }
        _ => {
            let target = ["end", "nowhere", "pay", "draft", "decide", "report"][random.usize(..6)];
            pairs[place].1 = Tree::Scalar(target.into());
        }
    }
    words
}

/// The first and the last line, from 1, of `after` that are not those of `before`, and the line that opens what they are in.
fn edited(before: &str, after: &str) -> (usize, usize, usize) {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = (before.len() - same).min(after.len() - same);
    let same_end = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let last = (after.len() - same_end).max(same + 1);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = after.get(same).or(after.last()).map_or(0, |line| indent(line));
    let opens = after[..same.min(after.len())].iter().rposition(|line| indent(line) < first).unwrap_or(0);
    (same + 1, last, opens + 1)
}

fn is_near(problem: &Problem, (first, last, opens): (usize, usize, usize), words: &[String]) -> bool {
    let line = problem.location.line as usize;
    (first.saturating_sub(1)..=last + 1).contains(&line)
        || line == opens
        || (opens..=last + 1).any(|line| problem.message.contains(&format!("line {line}")))
        || words
            .iter()
            .map(|word| format!("`{word}`"))
            .any(|word| problem.message.contains(&word) || problem.remedy.contains(&word))
}

/// G3
#[test]
fn an_edit_is_refused_near_to_where_it_was_made_or_still_loads() {
    let mut refused = 0;
    for name in EXAMPLES {
        let original: Vec<Tree> = documents(&example(name)).into_iter().map(Tree::of).collect();
        let before = text(&original);
        Document::parse(&before, name).unwrap();
        for seed in 0..number("EDITS", 200) {
            let mut changed = original.clone();
            let words = edit(&mut changed, &mut fastrand::Rng::with_seed(seed as u64));
            let after = text(&changed);
            let Err(error) = Document::parse(&after, name) else { continue };
            refused += 1;
            let place = edited(&before, &after);
            // The removed part may be missed elsewhere.
            let is_located = error.problems.iter().any(|problem| is_near(problem, place, &words));
            assert!(is_located, "{name}, seed {seed}, lines {place:?}:\n{error}\n{after}");
        }
    }
    assert!(refused > 0);
}

/// G3
#[test]
fn an_edited_line_is_read_or_refused_without_a_panic() {
    for name in EXAMPLES {
        let before = example(name);
        let lines: Vec<&str> = before.lines().collect();
        for seed in 0..number("EDITS", 200) {
            let mut random = fastrand::Rng::with_seed(seed as u64);
            let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let place = random.usize(..changed.len());
            match random.u8(..5) {
                0 => drop(changed.remove(place)),
                1 => changed[place].insert(0, ' '),
                2 => changed[place] = changed[place].replace(": ", ":"),
                3 => changed[place] = changed[place].replacen(['{', '[', '"'], "", 1),
                _ => changed.insert(place, lines[random.usize(..lines.len())].to_owned()),
            }
            drop(Document::parse(&changed.join("\n"), name));
        }
    }
}
