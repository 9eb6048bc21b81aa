//! Long failures stand once in an explanation: at its begin, or else at the node that failed. All other places have their
//! first words.

use super::NodeExplanation;
use crate::trace::on_one_line;

/// The longest message that stands in every place, in bytes.
const SHORT: usize = 80;

/// The most characters that stand for a long message.
const BRIEF: usize = 60;

/// The most messages that are looked for. Those of further nodes stand in every place.
const MOST: usize = 64;

/// Shortens the messages of the nodes where they stand again. `parts`: the begin of the explanation, and then each node's.
pub(super) fn once(parts: &mut [String], nodes: &[NodeExplanation]) {
    let errors = nodes.iter().enumerate().flat_map(|(place, node)| {
        let errors = node.ends.iter().filter_map(|ends| ends.error.as_ref());
        errors.map(move |error| (place, on_one_line(&error.message)))
    });
    let mut long: Vec<_> = errors.filter(|(_, message)| message.len() > SHORT).take(MOST).collect();
    // A message may quote a shorter one.
    long.sort_by_key(|(_, message)| std::cmp::Reverse(message.len()));
    for (place, message) in long {
        let is_begin = parts[0].contains(&message);
        let kept = if is_begin { 0 } else { place + 1 };
        let whither = if is_begin { "above".to_owned() } else { format!("`{}`", nodes[place].node) };
        let short = format!("{}, see {whither}", brief(&message));
        for (place, part) in parts.iter_mut().enumerate() {
            let from = match part.find(&message) {
                None => continue,
                Some(first) if place == kept => first + message.len(),
                Some(_) => 0,
            };
            let shortened = part[from..].replace(&message, &short);
            part.replace_range(from.., &shortened);
        }
    }
}

/// The first words of a message.
fn brief(message: &str) -> String {
    let clause = message.split([':', ';']).next().unwrap_or_default();
    if clause.chars().count() <= BRIEF {
        return clause.to_owned();
    }
    let cut: String = clause.chars().take(BRIEF).collect();
    format!("{}…", cut.rsplit_once(' ').map_or(&*cut, |(words, _)| words))
}
