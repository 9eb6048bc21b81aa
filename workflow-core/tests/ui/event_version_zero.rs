use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 0, upgrade = from_earlier)]
struct Question;

fn from_earlier(_: u32, data: serde_json::Value) -> Result<serde_json::Value, String> {
    Ok(data)
}

fn main() {}
