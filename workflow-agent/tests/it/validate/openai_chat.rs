//! Bodies of OpenAI's chat completions: roles, contents, and exactly one result for each call, directly after it.

use serde_json::Value;
use workflow_agent::Provider;
use workflow_agent::model::ModelRequest;

use super::{arguments, is_word, list, require, text};

/// Why the provider would refuse the request.
pub(crate) fn check(request: &ModelRequest) -> Result<(), String> {
    let body = Provider::request_body("openai", request).map_err(|error| error.to_string())?;
    text(&body, "model")?;
    let mut open: Vec<String> = Vec::new();
    for message in list(&body, "messages")? {
        let role = text(message, "role")?;
        if role == "tool" {
            let id = text(message, "tool_call_id")?;
            text(message, "content")?;
            let at = open.iter().position(|one| one == id);
            open.remove(at.ok_or_else(|| format!("the result of {id} has no call directly before it"))?);
            continue;
        }
        require(open.is_empty(), || format!("{open:?} have no result directly after them"))?;
        match role {
            "system" => drop(text(message, "content")?),
            "user" => content(&message["content"])?,
            "assistant" => open = assistant(message)?,
            other => return Err(format!("`{other}` is no role")),
        }
    }
    require(open.is_empty(), || format!("{open:?} have no result"))?;
    tools(&body)
}

fn content(content: &Value) -> Result<(), String> {
    let Value::Array(parts) = content else {
        return require(content.is_string(), || format!("{content} is no content"));
    };
    require(!parts.is_empty(), || "an empty content".to_owned())?;
    for part in parts {
        match text(part, "type")? {
            "text" => drop(text(part, "text")?),
            "image_url" => drop(text(&part["image_url"], "url")?),
            other => return Err(format!("`{other}` is no type of content")),
        }
    }
    Ok(())
}

/// The ids of the calls.
fn assistant(message: &Value) -> Result<Vec<String>, String> {
    let Some(calls) = message.get("tool_calls") else {
        require(!text(message, "content")?.is_empty(), || "an assistant says nothing".to_owned())?;
        return Ok(Vec::new());
    };
    require(message["content"].is_string() || message["content"].is_null(), || {
        format!("content of {message}")
    })?;
    require(calls.as_array().is_some_and(|calls| !calls.is_empty()), || "an empty list of calls".to_owned())?;
    let mut ids = Vec::new();
    for call in calls.as_array().into_iter().flatten() {
        let id = text(call, "id")?.to_owned();
        require(text(call, "type")? == "function", || format!("the type of {call}"))?;
        require(is_word(text(&call["function"], "name")?, 64), || format!("the name of {call}"))?;
        arguments(&call["function"])?;
        require(is_word(&id, 40), || format!("the id {id}"))?;
        require(!ids.contains(&id), || format!("the id {id} is there twice"))?;
        ids.push(id);
    }
    Ok(ids)
}

fn tools(body: &Value) -> Result<(), String> {
    if body.get("tools").is_none() {
        return require(body.get("tool_choice").is_none(), || "a choice without tools".to_owned());
    }
    for tool in list(body, "tools")? {
        let function = &tool["function"];
        require(is_word(text(function, "name")?, 64), || format!("the name of {tool}"))?;
        require(function["parameters"]["type"] == "object", || format!("the parameters of {tool}"))?;
    }
    Ok(())
}
