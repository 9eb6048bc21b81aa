//! Skills that a document defines itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::skill::InlineSkill;

const KEYS: [&str; 7] = ["name", "description", "category", "instruction", "mcp", "config", "mcpAliases"];

pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> BTreeMap<Arc<str>, InlineSkill> {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`skills`", "a map of ids to skills");
        return BTreeMap::new();
    };
    let skills =
        pairs.iter().filter_map(|(key, tree)| Some((key.name.clone(), skill(&key.name, tree, reading)?)));
    skills.collect()
}

fn skill(id: &Arc<str>, tree: &Tree, reading: &mut Reading<'_>) -> Option<InlineSkill> {
    let fields = Fields::new(tree, "a skill", &KEYS, reading)?;
    if fields.get("instruction").is_none() && fields.get("mcp").is_none() && !fields.has_unknown() {
        let message = format!("the skill `{id}` has neither `instruction` nor `mcp`");
        reading.problems.add(Code::MissingKey, tree.at, message, "add one of them");
    }
    Some(InlineSkill {
        id: id.clone(),
        name: fields.text("name", reading).unwrap_or_else(|| id.clone()),
        description: fields.text("description", reading),
        category: fields.text("category", reading),
        instruction: fields.text("instruction", reading),
        mcp: fields.get("mcp").and_then(|tree| map(tree, "mcp", reading)),
        config: fields.get("config").and_then(|tree| map(tree, "config", reading)),
        aliases: fields.get("mcpAliases").map(|tree| aliases(tree, reading)).unwrap_or_default(),
    })
}

fn map(tree: &Tree, key: &str, reading: &mut Reading<'_>) -> Option<serde_json::Value> {
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, &format!("`{key}`"), "a map");
        return None;
    }
    Some(tree.to_json())
}

fn aliases(tree: &Tree, reading: &mut Reading<'_>) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`mcpAliases`", "a map of tools to lists of names");
        return BTreeMap::new();
    };
    let lists = pairs.iter().map(|(key, tree)| {
        let names = reading.names(tree, "mcpAliases");
        (key.name.clone(), names.into_iter().map(|name| name.value).collect())
    });
    lists.collect()
}
