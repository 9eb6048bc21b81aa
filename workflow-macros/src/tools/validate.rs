//! The rules of a block of tools, without those of single tools.

use super::block::Block;
use crate::mistakes::Mistakes;
use crate::tool::definition::Definition;

/// Reports every mistake in the block.
pub(super) fn validate(block: &Block, mistakes: &mut Mistakes) {
    if let Some((path, _)) = &block.item.trait_ {
        mistakes.at(path, "tools are an impl block of their own: write `impl TheTools`, without a trait");
    }
    for lifetime in block.item.generics.lifetimes() {
        let message =
            format!("tools own their data: leave out `{}` and hold owned values", lifetime.lifetime);
        mistakes.at(lifetime, message);
    }
    if block.tools.is_empty() {
        mistakes.at(&block.item.self_ty, "the block has no tools: write `#[tool]` above an async method");
    }
    reject_twins(&block.tools, mistakes);
}

fn reject_twins(tools: &[Definition], mistakes: &mut Mistakes) {
    for (index, tool) in tools.iter().enumerate() {
        // Two of different configurations may have one name. The compiler itself reports two methods of one name.
        let is_twin = |earlier: &&Definition| {
            let conditional = earlier.conditions().chain(tool.conditions()).next().is_some();
            !conditional && earlier.name() == tool.name() && earlier.ident != tool.ident
        };
        if tools[..index].iter().any(|earlier| is_twin(&earlier)) {
            let message = format!(
                "two tools are named `{}`: give this one another name, `#[tool(name = \"…\")]`",
                tool.name()
            );
            match &tool.attribute.name {
                Some(name) => mistakes.at(name, message),
                None => mistakes.at(&tool.ident, message),
            }
        }
    }
}
