//! Bodies of OpenAI's responses: items of known types, and exactly one output for each call, somewhere after it.

use std::collections::BTreeSet;

use serde_json::Value;
use workflow_agent::Provider;
use workflow_agent::model::ModelRequest;

use super::{arguments, is_word, list, require, text};

/// Why the provider would refuse the request.
pub(crate) fn check(request: &ModelRequest) -> Result<(), String> {
    let body = Provider::request_body("openai_resp", request).map_err(|error| error.to_string())?;
    text(&body, "model")?;
    require(body["store"] == false, || "the provider would store the response".to_owned())?;
    let (mut open, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut is_reasoning = false;
    for item in list(&body, "input")? {
        let kind = text(item, "type")?;
        match kind {
            "message" => message(item)?,
            "function_call" => {
                let id = text(item, "call_id")?;
                require(is_word(id, 64) && seen.insert(id), || format!("the id of {item}"))?;
                require(is_word(text(item, "name")?, 64), || format!("the name of {item}"))?;
                arguments(item)?;
                open.insert(id);
            }
            "function_call_output" => {
                let id = text(item, "call_id")?;
                text(item, "output")?;
                require(open.remove(id), || {
                    format!("the output of {id} has no call before it, or is there twice")
                })?;
            }
            "reasoning" => {
                text(item, "encrypted_content")?;
                require(item["summary"].is_array(), || format!("the summary of {item}"))?;
            }
            other => return Err(format!("`{other}` is no type of items that the agent sends")),
        }
        let is_reply = kind == "function_call" || (kind == "message" && item["role"] == "assistant");
        require(!is_reasoning || is_reply || kind == "reasoning", || {
            "nothing follows on reasoning".to_owned()
        })?;
        is_reasoning = kind == "reasoning";
    }
    require(!is_reasoning, || "nothing follows on reasoning".to_owned())?;
    require(open.is_empty(), || format!("{open:?} have no output"))?;
    if body.get("tools").is_some() {
        for tool in list(&body, "tools")? {
            require(is_word(text(tool, "name")?, 64), || format!("the name of {tool}"))?;
            require(tool["parameters"]["type"] == "object", || format!("the parameters of {tool}"))?;
        }
    }
    Ok(())
}

fn message(item: &Value) -> Result<(), String> {
    let types: &[&str] = match text(item, "role")? {
        "user" => &["input_text", "input_image"],
        "assistant" => &["output_text"],
        other => return Err(format!("`{other}` is no role")),
    };
    for part in list(item, "content")? {
        let kind = text(part, "type")?;
        require(types.contains(&kind), || format!("`{kind}` in {item}"))?;
        text(part, if kind == "input_image" { "image_url" } else { "text" })?;
    }
    Ok(())
}
