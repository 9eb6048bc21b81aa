//! The tools of a server: their pages, bounds, names and rules. It calls none.

use std::sync::Arc;

use serde_json::Value;

use super::connection::Connection;
use super::content::short;
use super::{Mcp, McpError};
use crate::approval::Approval;
use crate::tool::{Schema, ToolSpec, cut, fitted, terminal_safe};

/// The most tools of a server: one less than an agent may have.
const TOOLS: usize = 127;
/// The most pages of a list.
const PAGES: usize = 128;
/// The longest description in bytes.
const DESCRIPTION: usize = 4 * 1024;
/// The longest schema in bytes.
const SCHEMA: usize = 64 * 1024;

/// A tool by the name that its server gives it, and its specification for the agent.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) remote: String,
    pub(super) spec: ToolSpec,
}

pub(super) async fn list(mcp: &Mcp, connection: &Connection) -> Result<Vec<Listed>, McpError> {
    let mut listed = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let page = connection.list(mcp, cursor).await?;
        add(mcp, &page, &mut listed)?;
        cursor = page["nextCursor"].as_str().filter(|next| !next.is_empty()).map(str::to_owned);
        if cursor.is_none() {
            complete(mcp, &listed)?;
            return Ok(listed);
        }
    }
    Err(protocol(mcp, format!("its list of tools has more than {PAGES} pages")))
}

fn add(mcp: &Mcp, page: &Value, listed: &mut Vec<Listed>) -> Result<(), McpError> {
    let Some(tools) = page["tools"].as_array() else {
        return Err(protocol(mcp, "its answer to `tools/list` has no tools".to_owned()));
    };
    for tool in tools {
        let Some(remote) = tool["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(protocol(mcp, "one of its tools has no name".to_owned()));
        };
        if mcp.only.as_ref().is_some_and(|only| !only.iter().any(|chosen| chosen == remote)) {
            continue;
        }
        if listed.len() == TOOLS {
            return Err(McpError::TooManyTools { server: Arc::clone(&mcp.name), most: TOOLS });
        }
        let spec = spec(mcp, remote, tool)?;
        if let Some(first) = listed.iter().find(|first| first.spec.name() == spec.name()) {
            return Err(McpError::DuplicateTool {
                server: Arc::clone(&mcp.name),
                name: spec.name().to_owned(),
                first: short(&first.remote, 100),
                second: short(remote, 100),
            });
        }
        listed.push(Listed { remote: remote.to_owned(), spec });
    }
    Ok(())
}

fn complete(mcp: &Mcp, listed: &[Listed]) -> Result<(), McpError> {
    let is_missing = |name: &&String| !listed.iter().any(|tool| tool.remote == **name);
    let tools: Vec<String> = mcp.only.iter().flatten().filter(is_missing).cloned().collect();
    if tools.is_empty() {
        return Ok(());
    }
    Err(McpError::UnknownTools { server: Arc::clone(&mcp.name), tools })
}

fn spec(mcp: &Mcp, remote: &str, tool: &Value) -> Result<ToolSpec, McpError> {
    let schema = schema(&tool["inputSchema"]).map_err(|problem| McpError::Schema {
        server: Arc::clone(&mcp.name),
        tool: short(remote, 100),
        problem,
    })?;
    let description = [&tool["description"], &tool["title"], &tool["annotations"]["title"]]
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or_default();
    let description = terminal_safe(description);
    let spec = ToolSpec::new(full_name(&mcp.name, remote), &*cut(&description, DESCRIPTION), schema);
    Ok(with_rules(mcp, spec, &tool["annotations"]))
}

/// The hints of a server count only if it is trusted: else they would repeat calls, or run them side by side.
fn with_rules(mcp: &Mcp, mut spec: ToolSpec, hints: &Value) -> ToolSpec {
    if !mcp.is_trusted {
        return spec.approval(Approval::Always);
    }
    if hints["readOnlyHint"] == true {
        spec = spec.read_only();
    }
    if hints["idempotentHint"] == true {
        spec = spec.idempotent();
    }
    spec.approval(Approval::Never)
}

/// The server's name is short enough that it stays whole when the tool's is shortened.
fn full_name(server: &str, remote: &str) -> String {
    fitted(&format!("mcp__{server}__{remote}"))
}

fn schema(schema: &Value) -> Result<Value, String> {
    let Value::Object(object) = schema else { return Err("is not an object".to_owned()) };
    let size = schema.to_string().len();
    if size > SCHEMA {
        return Err(format!("has {size} bytes, and {SCHEMA} at most are allowed"));
    }
    let mut object = object.clone();
    // Providers insist on the type, which servers may leave out.
    match object.entry("type").or_insert_with(|| "object".into()) {
        Value::String(kind) if kind == "object" => {}
        other => return Err(format!("has the type {}, not `object`", short(&other.to_string(), 50))),
    }
    let schema = Value::Object(object);
    match Schema::new(&schema) {
        Ok(_) => Ok(schema),
        Err(problem) => Err(format!("is not valid ({})", short(&problem, 300))),
    }
}

fn protocol(mcp: &Mcp, problem: String) -> McpError {
    McpError::Protocol { server: Arc::clone(&mcp.name), problem, stderr: String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DESCRIPTION, Listed, Mcp, McpError, add, full_name, schema, spec};
    use crate::tool::is_fit;

    fn mcp() -> Mcp {
        Mcp::stdio("files", ["server"])
    }

    fn tool(name: &str, annotations: &Value) -> Value {
        json!({"name": name, "description": "Does.", "inputSchema": {"type": "object"}, "annotations": annotations})
    }

    /// A17
    #[test]
    fn tools_are_named_after_their_server_and_shortened_with_a_hash() {
        assert_eq!(full_name("files", "read"), "mcp__files__read");
        assert_eq!(full_name("files", "a__b"), "mcp__files__a__b");
        for remote in ["read file", "größe", &"x".repeat(100), "a/b", "a.b"] {
            let name = full_name("files", remote);
            assert!(is_fit(&name) && name.starts_with("mcp__files__"), "{name}");
        }
        assert_ne!(full_name("files", "a/b"), full_name("files", "a.b"));
        assert!(
            full_name(&"s".repeat(32), &"x".repeat(100)).starts_with(&format!("mcp__{}__", "s".repeat(32)))
        );
    }

    /// A20, A81
    #[test]
    fn hints_count_only_for_trusted_servers_and_others_need_approval() {
        let both = json!({"readOnlyHint": true, "idempotentHint": true});
        let untrusted = spec(&mcp(), "read", &tool("read", &both)).unwrap();
        assert!(untrusted.needs_approval(&json!({})));
        assert!(!untrusted.is_read_only() && !untrusted.is_repeatable());

        let trusted = spec(&mcp().trusted(), "read", &tool("read", &both)).unwrap();
        assert!(!trusted.needs_approval(&json!({})));
        assert!(trusted.is_read_only() && trusted.is_repeatable());

        let idempotent = tool("set", &json!({"idempotentHint": true}));
        let idempotent = spec(&mcp().trusted(), "set", &idempotent).unwrap();
        assert!(!idempotent.is_read_only() && idempotent.is_repeatable());

        let plain = spec(&mcp().trusted(), "set", &tool("set", &json!({}))).unwrap();
        assert!(!plain.is_repeatable() && !plain.needs_approval(&json!({})));
    }

    /// A81
    #[test]
    fn long_descriptions_are_cut_and_lose_control_sequences() {
        let long = json!({"description": "ä".repeat(DESCRIPTION), "inputSchema": {}});
        assert!(spec(&mcp(), "long", &long).unwrap().description().len() <= DESCRIPTION);
        let sly = json!({"description": "Reads.\x1b[8m", "inputSchema": {}});
        assert_eq!(spec(&mcp(), "sly", &sly).unwrap().description(), "Reads.");
        let titled = json!({"title": "Reads", "inputSchema": {}});
        assert_eq!(spec(&mcp(), "titled", &titled).unwrap().description(), "Reads");
    }

    /// A81
    #[test]
    fn schemas_that_cannot_be_used_are_errors_that_say_why() {
        assert_eq!(schema(&json!({})), Ok(json!({"type": "object"})));
        let problem = |unfit: Value| schema(&unfit).unwrap_err();
        assert_eq!(problem(json!([])), "is not an object");
        assert_eq!(problem(json!({"type": "string"})), "has the type \"string\", not `object`");
        assert!(problem(json!({"description": "x".repeat(70_000)})).contains("65536 at most"));
        assert!(problem(json!({"properties": {"a": {"type": "nonsense"}}})).contains("not valid"));
        let elsewhere = json!({"properties": {"a": {"$ref": "https://example.com/schema.json"}}});
        assert!(problem(elsewhere).contains("not valid"));
    }

    /// A17, A81
    #[test]
    fn pages_add_up_to_127_tools_with_different_names() {
        let page = |names: Vec<String>| json!({"tools": names.iter().map(|name| tool(name, &json!({}))).collect::<Vec<_>>()});
        let mut listed: Vec<Listed> = Vec::new();
        add(&mcp(), &page((0..127).map(|n| n.to_string()).collect()), &mut listed).unwrap();
        let error = add(&mcp(), &page(vec!["more".into()]), &mut listed).unwrap_err();
        assert!(
            matches!(error, McpError::TooManyTools { most: 127, .. }) && error.to_string().contains(".only(")
        );

        let mut listed: Vec<Listed> = Vec::new();
        let error = add(&mcp(), &page(vec!["same".into(), "same".into()]), &mut listed).unwrap_err();
        assert!(matches!(error, McpError::DuplicateTool { name, .. } if name == "mcp__files__same"));
    }
}
