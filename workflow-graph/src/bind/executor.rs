//! `no-executor`, `unknown-tool`, `commands-not-allowed`: a registry can do the work of a node.

use std::collections::BTreeSet;

use crate::Registry;
use crate::document::model::hive::HiveNode;
use crate::document::model::{Next, Node, Rule, Work};
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

/// `tools` are those that there are, if that is known.
pub(super) fn check(
    node: &Node,
    registry: &Registry,
    tools: Option<&BTreeSet<String>>,
    problems: &mut Problems,
) {
    if registry.executors().agents().is_none()
        && let Some((at, need)) = need_of_agents(node)
    {
        let message = format!("`{}` {need}, and the registry has no executor of agents", node.id.value);
        problems.add(Code::NoExecutor, at, message, "add one with `Registry::agents`");
    }
    tool(node, registry, tools, problems);
    let may_run = registry.allows_commands() || registry.executors().script().is_some();
    if matches!(node.work, Work::Command(_)) && !may_run {
        let message = format!("`{}` runs a program, and the registry allows none", node.id.value);
        let remedy = "call `Registry::allow_commands` if you trust the document, or use a function";
        problems.add(Code::CommandsNotAllowed, node.id.at, message, remedy);
    }
}

/// The first place where a node needs a model. One problem a node is enough.
fn need_of_agents(node: &Node) -> Option<(At, &'static str)> {
    if matches!(node.work, Work::Agent(_)) {
        return Some((node.id.at, "is work for an agent"));
    }
    let requires = node.requires.iter().flat_map(|requires| &requires.all);
    let ensure = node.ensure.iter().flat_map(|ensure| &ensure.all);
    let judge = requires.chain(ensure).find(|check| matches!(check.rule, Rule::Judge { .. }));
    if let Some(check) = judge {
        return Some((check.at, "asks a model to judge"));
    }
    let asks_model = node.hive().is_some_and(HiveNode::asks_model);
    (asks_model || matches!(node.next, Next::Decide(_) | Next::Sweny(_)))
        .then_some((node.id.at, "lets a model choose its route"))
}

fn tool(node: &Node, registry: &Registry, tools: Option<&BTreeSet<String>>, problems: &mut Problems) {
    let Work::Tool(name) = &node.work else { return };
    let id = &node.id.value;
    if registry.executors().tools().is_none() {
        let message =
            format!("`{id}` calls the tool `{}`, and the registry has no executor of tools", name.value);
        problems.add(Code::NoExecutor, name.at, message, "add one with `Registry::tools`");
        return;
    }
    let Some(known) = tools.filter(|known| !known.contains(&*name.value)) else { return };
    let message =
        format!("`{id}` calls the tool `{}`, and the executor of tools has no such tool", name.value);
    let known = known.iter().map(String::as_str);
    let otherwise = || "name another, or add it to the executor".to_owned();
    problems.add_unknown(Code::UnknownTool, name.at, message, &name.value, known, otherwise);
}
