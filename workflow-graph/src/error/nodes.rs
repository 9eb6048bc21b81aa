//! Texts of the engine about steps and events, in nodes and routes. It knows names, and no meaning.

/// The words that stand before a name, and are dropped before a phrase.
const BEFORE: [&str; 8] =
    ["an event ", "event ", "a request ", "request ", "a reply ", "reply ", "events ", "requests "];

/// The text with the names of the document for those of its table.
pub(super) fn in_nodes(text: &str) -> String {
    let mut words = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 0 {
            words.push_str(&part.replace("steps ", "nodes ").replace("step ", "node "));
            continue;
        }
        if let Some(phrase) = phrase(part) {
            let before = BEFORE.iter().find_map(|before| words.strip_suffix(before));
            let rest = before.map_or(words.len(), str::len);
            words.truncate(rest);
            words.push_str(&phrase);
        } else {
            words.push('`');
            words.push_str(part);
            words.push('`');
        }
    }
    words
}

/// The meaning of a name of the table in the document; nothing if it is a name there, too.
fn phrase(name: &str) -> Option<String> {
    if let Some((from, to)) = name.split_once("->").or_else(|| name.split_once("=>")) {
        return Some(format!("route from `{from}` to `{to}`"));
    }
    if let Some((node, part)) = name.split_once(':') {
        return Some(match part {
            "ask" => format!("question of `{node}`"),
            "answer" => format!("answer to `{node}`"),
            "taken" | "count" => format!("counts of `{node}`"),
            _ => format!("`{node}`"),
        });
    }
    match name {
        "graph.input" => Some("input".to_owned()),
        "graph.output" => Some("output".to_owned()),
        _ => name.strip_prefix("vars.").map(|variable| format!("variable `{variable}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::in_nodes;

    // G1
    #[test]
    fn names_of_steps_and_events_become_nodes_and_routes() {
        let text = "- step `gate:reply` is missing\n- step `a` emits no event `a->b` any more, and no `gate:ask`\n\
                    - step `b` takes `vars.x` and `graph.input`";
        assert_eq!(
            in_nodes(text),
            "- node `gate` is missing\n- node `a` emits no route from `a` to `b` any more, and no question of `gate`\n\
             - node `b` takes variable `x` and input"
        );
    }
}
