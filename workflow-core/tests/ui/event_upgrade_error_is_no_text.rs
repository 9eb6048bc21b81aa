use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 2, upgrade = from_earlier)]
struct Question;

struct Mute;

fn from_earlier(_: u32, data: serde_json::Value) -> Result<serde_json::Value, Mute> {
    if data.is_null() { Err(Mute) } else { Ok(data) }
}

fn main() {}
