//! The built-in tools, called as an agent calls them. Nothing beyond loopback is ever reached.

use std::sync::Arc;

use serde_json::Value;
use workflow_agent::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSet};

mod bash;
mod fetch;
mod files;

/// The tools of a set, by name.
#[derive(Clone)]
struct Tools(Vec<Arc<dyn Tool>>);

impl Tools {
    fn of(set: impl ToolSet) -> Self {
        Self(set.into_tools())
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.0.iter().find(|tool| tool.spec().name() == name).expect("the set has the tool");
        tool.call(arguments, ToolContext::detached("call")).await
    }

    /// The text of a call that succeeds.
    async fn text(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments).await.unwrap();
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    /// The error of a call that fails.
    async fn failure(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.map(|output| output.text).unwrap_err().to_string()
    }
}
