//! `agent`: the task of an agent. Its checks and retries belong to the node.

use super::Reading;
use super::fields::Fields;
use crate::document::model::Agent;
use crate::document::template::Template;
use crate::document::tree::{Kind, Text, Tree};

const KEYS: [&str; 7] = ["instruction", "model", "tools", "skills", "max_turns", "rules", "background"];

pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> Option<Agent> {
    if matches!(tree.kind, Kind::Text(_)) {
        return Some(Agent {
            instruction: reading.template(tree),
            model: None,
            allow: None,
            deny: Vec::new(),
            skills: Vec::new(),
            max_turns: None,
            rules: Vec::new(),
            background: Vec::new(),
        });
    }
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "`agent`", "a text or a map");
        return None;
    }
    let fields = Fields::new(tree, "an agent", &KEYS, reading)?;
    let instruction = fields.required("instruction", reading).and_then(|tree| instruction(tree, reading));
    let tools =
        fields.get("tools").and_then(|tree| Fields::new(tree, "`tools`", &["allow", "deny"], reading));
    let allow = tools.as_ref().and_then(|tools| tools.names("allow", reading));
    let deny = tools.as_ref().and_then(|tools| tools.names("deny", reading)).unwrap_or_default();
    let agent = Agent {
        instruction: instruction.unwrap_or(Template::Value(serde_json::Value::Null)),
        model: fields.text("model", reading),
        allow,
        deny,
        skills: fields.names("skills", reading).unwrap_or_default(),
        max_turns: fields.number("max_turns", (1, u32::MAX), reading),
        rules: texts(&fields, "rules", reading),
        background: texts(&fields, "background", reading),
    };
    Some(agent)
}

/// A text, or `{file: path}`.
fn instruction(tree: &Tree, reading: &mut Reading<'_>) -> Option<Template> {
    if !matches!(tree.kind, Kind::Map(_)) {
        return reading.text_template(tree, "instruction");
    }
    let fields = Fields::new(tree, "`instruction`", &["file"], reading)?;
    let file = fields.required("file", reading)?;
    let path = reading.text(file, "file")?;
    let value = reading.files.read(&path.value, file.at, reading.problems)?;
    // Places within the file are those of its path: the problem is found by the name that the document has.
    let text = Text { value, span: (0, 0) };
    Some(Template::of_text(&text, file.at, reading.source, reading.problems))
}

/// A text, or a list of texts.
fn texts(fields: &Fields<'_>, key: &'static str, reading: &mut Reading<'_>) -> Vec<Template> {
    match fields.get(key) {
        None => Vec::new(),
        Some(tree) if matches!(tree.kind, Kind::Text(_)) => vec![reading.template(tree)],
        Some(tree) => {
            let items = reading.list(tree, key);
            items.iter().filter_map(|item| reading.text_template(item, key)).collect()
        }
    }
}
