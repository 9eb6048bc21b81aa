//! Bodies of Anthropic's messages: alternating roles, blocks that are not empty, and all results of an assistant's calls
//! first in the message directly after it.

use std::collections::BTreeSet;

use serde_json::Value;
use workflow_agent::Provider;
use workflow_agent::model::ModelRequest;

use super::{is_word, list, require, text};

/// Why the provider would refuse the request.
pub(crate) fn check(request: &ModelRequest) -> Result<(), String> {
    let body = Provider::request_body("anthropic", request).map_err(|error| error.to_string())?;
    text(&body, "model")?;
    require(body["max_tokens"].as_u64() > Some(0), || "`max_tokens` is zero".to_owned())?;
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut has_calls = false;
    for (number, message) in list(&body, "messages")?.iter().enumerate() {
        let expected = if number % 2 == 0 { "user" } else { "assistant" };
        require(text(message, "role")? == expected, || format!("message {number} is not of the {expected}"))?;
        let blocks = list(message, "content")?;
        if expected == "user" {
            user(blocks, std::mem::take(&mut open))?;
        } else {
            open = assistant(blocks)?;
            has_calls |= !open.is_empty();
        }
    }
    require(open.is_empty(), || format!("{open:?} have no result"))?;
    tools(&body, has_calls)
}

fn user(blocks: &[Value], mut open: BTreeSet<String>) -> Result<(), String> {
    let mut is_after_results = false;
    for block in blocks {
        match text(block, "type")? {
            "tool_result" => {
                let id = text(block, "tool_use_id")?;
                require(!is_after_results, || format!("the result of {id} comes after other blocks"))?;
                require(open.remove(id), || format!("the result of {id} has no call, or is there twice"))?;
                if let Some(content) = block.get("content") {
                    require(content.as_str().is_some_and(|text| !text.is_empty()), || format!("{block}"))?;
                }
            }
            "text" => {
                is_after_results = true;
                said(block)?;
            }
            "image" => {
                is_after_results = true;
                text(&block["source"], "type")?;
            }
            other => return Err(format!("`{other}` is no block of a user")),
        }
    }
    require(open.is_empty(), || format!("{open:?} have no result in the message directly after them"))
}

/// The ids of the calls.
fn assistant(blocks: &[Value]) -> Result<BTreeSet<String>, String> {
    let mut ids = BTreeSet::new();
    for block in blocks {
        match text(block, "type")? {
            "text" => said(block)?,
            "thinking" => {
                text(block, "thinking")?;
                text(block, "signature")?;
            }
            "redacted_thinking" => drop(text(block, "data")?),
            "tool_use" => {
                let id = text(block, "id")?;
                require(is_word(id, 64), || format!("the id {id}"))?;
                require(is_word(text(block, "name")?, 64), || format!("the name of {block}"))?;
                require(block["input"].is_object(), || format!("the input of {block}"))?;
                require(ids.insert(id.to_owned()), || format!("the id {id} is there twice"))?;
            }
            other => return Err(format!("`{other}` is no block of an assistant")),
        }
    }
    let last = blocks.last().map(|block| &block["type"]);
    require(last.is_some_and(|kind| kind != "thinking"), || "a message ends with a thought".to_owned())?;
    Ok(ids)
}

fn said(block: &Value) -> Result<(), String> {
    require(!text(block, "text")?.trim().is_empty(), || "an empty text".to_owned())
}

fn tools(body: &Value, has_calls: bool) -> Result<(), String> {
    if body.get("tools").is_none() {
        return require(!has_calls, || "calls without tools".to_owned());
    }
    for tool in list(body, "tools")? {
        require(is_word(text(tool, "name")?, 64), || format!("the name of {tool}"))?;
        require(tool["input_schema"]["type"] == "object", || format!("the schema of {tool}"))?;
    }
    Ok(())
}
