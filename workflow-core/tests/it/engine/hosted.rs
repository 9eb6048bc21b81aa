//! Hosted workflows as data, with schemas, for front ends (S56).

use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::signature::Roles;
use workflow_core::{HostedEvent, HostedWorkflow};

use crate::fixtures::{Begin, Done};

#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema, Event)]
#[event(start)]
struct Order {
    cents: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct Approval {
    granted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Approval, version = 2, upgrade = unchanged)]
struct Approve;

#[expect(clippy::unnecessary_wraps, reason = "an upgrade answers a result")]
fn unchanged(_: u32, data: serde_json::Value) -> Result<serde_json::Value, String> {
    Ok(data)
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Limits {
    #[serde(default)]
    cents: u32,
}

/// A configuration without a schema.
#[derive(Debug, Deserialize)]
struct Plain {
    #[serde(default)]
    polite: bool,
}

struct Orders;

/// Approves orders.
#[workflow]
impl Orders {
    /// Asks for large orders.
    #[step]
    async fn ask(&self, order: &Order, limits: &Config<Limits>) -> Option<Approve> {
        (order.cents > limits.cents).then_some(Approve)
    }

    #[step]
    async fn end(&self, _reply: &Reply<Approve>, plain: Config<Plain>, _limits: Config<Limits>) -> Done {
        Done(u32::from(plain.polite))
    }
}

/// A type whose schema panics.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Vague;

impl schemars::JsonSchema for Vague {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Vague".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        panic!("it has no shape")
    }
}

struct Other;

#[workflow]
impl Other {
    #[step]
    async fn end(&self, begin: &Begin, _vague: Passive<&Vague>) -> Done {
        Done(begin.0)
    }
}

// S55, S56
#[test]
fn hosted_workflows_are_data_with_names_events_configurations_and_drawings() {
    let engine = Engine::builder().workflow_named("orders", Orders).workflow(Other).build().unwrap();
    let hosted = engine.hosted();
    assert_eq!(hosted.iter().map(|workflow| &*workflow.name).collect::<Vec<_>>(), ["Other", "orders"]);
    let vague = hosted[0].events.iter().find(|event| &*event.name == "Vague").expect("it is there");
    assert_eq!(vague.schema, None, "a panic stays inside");
    let orders = &hosted[1];
    assert_eq!(&*orders.description, "Approves orders.");
    assert_eq!(&*orders.graph.workflow, "orders");
    let mut shape = Orders::shape();
    shape.workflow = "orders".into();
    assert_eq!(orders.table.shape().unwrap(), shape);

    let event = |name: &str| orders.events.iter().find(|event| &*event.name == name).expect("it is there");
    let HostedEvent { roles, version, schema, .. } = event("Order");
    assert_eq!((*roles, *version), (Roles::NONE.start(), 1));
    assert_eq!(schema.as_ref().unwrap()["required"], json!(["cents"]));
    assert_eq!((event("Approve").version, &event("Approve").schema), (2, &None));
    let reply = event("Approve.reply");
    assert!(reply.roles.is_reply());
    assert_eq!(reply.schema.as_ref().unwrap()["properties"]["granted"]["type"], json!("boolean"));

    let configs: Vec<_> = orders.configs.iter().map(|config| config.schema.is_some()).collect();
    assert_eq!(configs, [true, false], "each once, with a schema where the type has one");
    assert!(orders.configs[0].name.ends_with("Limits"));
}

// S56
#[test]
fn hosted_workflows_can_be_written_and_read_back() {
    let engine = Engine::builder().workflow(Orders).build().unwrap();
    let text = serde_json::to_string(&engine.hosted()).unwrap();
    let read: Vec<HostedWorkflow> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    assert_eq!(read[0].graph, Orders::graph());
    assert_eq!(read[0].table.fingerprint(), engine.hosted()[0].table.fingerprint());
}
