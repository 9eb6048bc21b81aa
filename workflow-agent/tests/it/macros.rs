//! Tools by `#[tool]` and `#[tools]`: schemas, descriptions, calls by hand and by a model, results of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow_agent::model::ScriptedModel;
use workflow_agent::tool::{FnTool, IntoTool, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec};
use workflow_agent::{Agent, Approval, tool, tools};

/// What a tool answers to a model.
async fn answered(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, String> {
    let context = ToolContext::detached("call-1");
    tool.call(arguments, context).await.map_err(|error| error.to_string())
}

/// The text of a result that is no error.
async fn text(tool: &dyn Tool, arguments: Value) -> String {
    let output = answered(tool, arguments).await.unwrap();
    assert!(!output.is_error);
    output.text
}

/// A place on earth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scale {
    Celsius,
    Kelvin,
}

/// Forecasts the weather.
///
///  * Only for cities.
#[tool(read_only, timeout = "1500ms")]
async fn weather(
    /** City, in English */
    city: String,
    /// The number of days,
    /// from today.
    days: Option<u8>,
    #[serde(default = "celsius", rename = "unit")] scale: Scale,
    #[schemars(range(min = 1, max = 3))] stations: Vec<u32>,
    context: &ToolContext,
) -> String {
    let days = days.unwrap_or(1);
    format!("{city} {days} {scale:?} {stations:?} {} {}", context.call(), context.idempotency_key())
}

fn celsius() -> Scale {
    Scale::Celsius
}

#[test]
fn the_schema_has_each_argument_with_its_description_and_refuses_others() {
    let tool = weather.into_tool();
    let schema = tool.spec().schema();
    let properties: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["city", "days", "stations", "unit"]);
    assert_eq!(schema["properties"]["city"], json!({"type": "string", "description": "City, in English"}));
    let days = &schema["properties"]["days"];
    assert_eq!(days["description"], "The number of days,\nfrom today.");
    assert_eq!((&days["type"], &days["maximum"]), (&json!(["integer", "null"]), &json!(255)));
    assert_eq!(schema["properties"]["unit"]["default"], "celsius");
    assert_eq!(schema["required"], json!(["city", "stations"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!((&schema["type"], schema.get("title"), schema.get("$schema")), (&json!("object"), None, None));
    assert!(schema.get("$defs").is_none(), "{schema}");
}

#[test]
fn the_specification_has_the_name_the_doc_comment_and_the_keys() {
    let tool = weather.into_tool();
    let spec = tool.spec();
    assert_eq!(
        (spec.name(), spec.description()),
        ("weather", "Forecasts the weather.\n\n* Only for cities.")
    );
    assert_eq!(spec.longest(), Duration::from_millis(1_500));
    assert!(spec.is_read_only() && spec.is_repeatable());

    /// Sends.
    #[tool(idempotent, name = "send-mail", timeout = "2d")]
    async fn send() {}
    let tool = send.into_tool();
    assert_eq!(tool.spec().name(), "send-mail");
    assert_eq!(tool.spec().longest(), Duration::from_hours(48));
    assert!(!tool.spec().is_read_only() && tool.spec().is_repeatable());

    /// Does nothing in particular.
    #[tool]
    async fn plain() {}
    let tool = plain.into_tool();
    assert_eq!(tool.spec().longest(), Duration::from_mins(2));
    assert!(!tool.spec().is_repeatable());
}

#[test]
fn a_tool_without_arguments_has_an_empty_object_as_its_schema() {
    /// Tosses a coin.
    #[tool]
    async fn toss(_context: &ToolContext) {}
    let expected = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(toss.into_tool().spec().schema(), &expected);
}

#[test]
fn a_doc_comment_may_be_made_by_a_macro() {
    /// First,
    #[doc = concat!("then ", "second.")]
    #[tool]
    async fn both() {}
    assert_eq!(both.into_tool().spec().description(), "First,\nthen second.");
}

#[tokio::test]
async fn a_call_by_hand_is_a_plain_call() {
    let context = ToolContext::detached("by-hand");
    let weather = weather("Bern".into(), None, Scale::Kelvin, vec![7], &context).await;
    assert_eq!(weather, "Bern 1 Kelvin [7] by-hand detached/by-hand");
    assert_eq!(halves(4, 2).await, Ok(2));
    assert_eq!(halves(4, 3).await, Err(Odd));
}

#[tokio::test]
async fn a_call_of_the_model_has_its_arguments_and_the_context() {
    let tool = weather.into_tool();
    let all = json!({"city": "Bern", "days": 3, "unit": "kelvin", "stations": [1, 2]});
    assert_eq!(text(&tool, all).await, "Bern 3 Kelvin [1, 2] call-1 detached/call-1");
    let least = json!({"city": "Bern", "stations": []});
    assert_eq!(text(&tool, least).await, "Bern 1 Celsius [] call-1 detached/call-1");
    let null = json!({"city": "Bern", "days": null, "stations": []});
    assert_eq!(text(&tool, null).await, "Bern 1 Celsius [] call-1 detached/call-1");
}

/// A10
#[tokio::test]
async fn arguments_that_do_not_fit_are_errors_that_name_the_misfit_and_nothing_runs() {
    static RUNS: AtomicU32 = AtomicU32::new(0);

    /// Counts.
    #[tool]
    async fn count(by: u32, #[serde(rename = "type")] kind: Option<String>) -> u32 {
        drop(kind);
        RUNS.fetch_add(by, Ordering::Relaxed)
    }

    let tool = count.into_tool();
    for (arguments, misfit) in [
        (json!({}), ": missing field `by`"),
        (json!({"by": "one"}), " at `/by`: invalid type: string \"one\", expected u32"),
        (json!({"by": -1}), " at `/by`: invalid value: integer `-1`, expected u32"),
        (json!({"by": 1, "of": 2}), " at `/of`: unknown field `of`, expected `by` or `type`"),
        (json!("one"), ": invalid type: string \"one\", expected the arguments of `count`"),
    ] {
        let error = answered(&tool, arguments).await.unwrap_err();
        assert_eq!(error, format!("the arguments cannot be read{misfit}"));
    }
    assert_eq!(RUNS.load(Ordering::Relaxed), 0);
    assert_eq!(text(&tool, json!({"by": 1, "type": null})).await, "0");
}

#[derive(Debug, PartialEq, Serialize)]
struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rest is not 0")
    }
}

impl std::error::Error for Odd {}

/// Divides whole numbers.
#[tool(read_only)]
async fn halves(of: u32, by: u32) -> Result<u32, Odd> {
    if of.is_multiple_of(by) { Ok(of / by) } else { Err(Odd) }
}

type Renamed<T> = Result<T, ToolError>;

#[tokio::test]
async fn every_kind_of_return_value_is_an_output() {
    /// Returns nothing.
    #[tool]
    async fn nothing() {}
    /// Returns text.
    #[tool]
    async fn words() -> &'static str {
        "plain \"text\""
    }
    /// Returns an object.
    #[tool]
    async fn object() -> BTreeMap<String, Vec<u8>> {
        BTreeMap::from([("a".into(), vec![1])])
    }
    /// Returns an option.
    #[tool]
    async fn option(some: bool) -> Option<u8> {
        some.then_some(3)
    }
    /// Returns an output.
    #[tool]
    async fn output() -> ToolOutput {
        ToolOutput::error("by itself")
    }
    /// Returns a type without a name.
    #[tool]
    async fn unnamed() -> impl Serialize {
        (1, "two")
    }
    /// Returns text of its context.
    #[tool]
    async fn borrowed(context: &ToolContext) -> &str {
        context.call()
    }
    /// Returns a result by another name.
    #[tool]
    async fn renamed(fails: bool) -> Renamed<ToolOutput> {
        if fails { Err(ToolError::transient("try again")) } else { Ok(ToolOutput::new("done")) }
    }

    assert_eq!(text(&nothing.into_tool(), json!({})).await, "null");
    assert_eq!(text(&words.into_tool(), json!({})).await, "plain \"text\"");
    assert_eq!(text(&object.into_tool(), json!({})).await, r#"{"a":[1]}"#);
    assert_eq!(text(&option.into_tool(), json!({"some": true})).await, "3");
    assert_eq!(text(&unnamed.into_tool(), json!({})).await, r#"[1,"two"]"#);
    assert_eq!(text(&borrowed.into_tool(), json!({})).await, "call-1");
    assert_eq!(answered(&output.into_tool(), json!({})).await, Ok(ToolOutput::error("by itself")));
    assert_eq!(text(&renamed.into_tool(), json!({"fails": false})).await, "done");
    assert_eq!(answered(&renamed.into_tool(), json!({"fails": true})).await, Err("try again".into()));
}

/// A13
#[tokio::test]
async fn an_error_is_the_failure_of_the_call_also_one_that_could_be_serialised() {
    let tool = halves.into_tool();
    assert_eq!(text(&tool, json!({"of": 4, "by": 2})).await, "2");
    assert_eq!(answered(&tool, json!({"of": 4, "by": 3})).await, Err("the rest is not 0".into()));
}

/// Orders of a shop.
struct Orders {
    refunded: AtomicU32,
    dropped: Arc<()>,
}

#[tools]
impl Orders {
    fn new(dropped: &Arc<()>) -> Self {
        Self { refunded: AtomicU32::new(0), dropped: Arc::clone(dropped) }
    }

    /// Refunds an order.
    #[tool(approval, timeout = "30s")]
    async fn refund(&self, order: u32, context: &ToolContext) -> Result<String, ToolError> {
        tokio::task::yield_now().await;
        self.note(order);
        Ok(format!("{order} by {}", context.idempotency_key()))
    }

    /// Sums the refunds.
    #[tool(read_only, name = "refunds")]
    async fn sum_of_refunds(&self) -> u32 {
        self.refunded.load(Ordering::Relaxed)
    }

    /// States the limit.
    #[tool]
    async fn limit() -> u32 {
        1_000
    }

    fn note(&self, order: u32) {
        assert!(Arc::strong_count(&self.dropped) > 1);
        self.refunded.fetch_add(order, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn the_tools_of_a_block_share_its_value_and_keep_it_as_long_as_they_live() {
    let dropped = Arc::new(());
    let tools = Orders::new(&dropped).into_tools();
    let specs: Vec<(&str, &str)> =
        tools.iter().map(|tool| (tool.spec().name(), tool.spec().description())).collect();
    let expected =
        [("refund", "Refunds an order."), ("refunds", "Sums the refunds."), ("limit", "States the limit.")];
    assert_eq!(specs, expected);
    assert_eq!(tools[0].spec().longest(), Duration::from_secs(30));
    assert!(tools[1].spec().is_read_only() && !tools[0].spec().is_read_only());

    assert_eq!(text(&tools[0], json!({"order": 7})).await, "7 by detached/call-1");
    assert_eq!(text(&tools[0], json!({"order": 5})).await, "5 by detached/call-1");
    assert_eq!(text(&tools[1], json!({})).await, "12");
    assert_eq!(text(&tools[2], json!({})).await, "1000");

    let refunds = Arc::clone(&tools[1]);
    drop(tools);
    assert_eq!((Arc::strong_count(&dropped), text(&refunds, json!({})).await), (2, "12".into()));
    drop(refunds);
    assert_eq!(Arc::strong_count(&dropped), 1);
}

#[tokio::test]
async fn methods_with_the_attribute_are_methods_like_any_other() {
    let orders = Orders::new(&Arc::new(()));
    orders.refunded.store(3, Ordering::Relaxed);
    assert_eq!((orders.sum_of_refunds().await, Orders::limit().await), (3, 1_000));
}

#[test]
fn an_agent_takes_functions_closures_shared_tools_and_sets_alike() {
    let sum = FnTool::new("sum", "Adds.", |numbers: BTreeMap<String, u32>, _| async move {
        Ok::<_, ToolError>(numbers.values().sum::<u32>())
    });
    let shared: Arc<dyn Tool> =
        Arc::new(FnTool::of(ToolSpec::new("shared", "Shared.", json!({"type": "object"})), |_, _| {
            Box::pin(async { Ok(ToolOutput::new("")) })
        }));
    let agent = Agent::builder("assistant")
        .model(ScriptedModel::new([]))
        .tool(weather)
        .tool(halves.into_tool().approval(Approval::Always))
        .tool(sum)
        .tool(shared)
        .tools(Orders::new(&Arc::new(())))
        .build()
        .unwrap();
    let mut names: Vec<_> = agent.tools().map(ToolSpec::name).collect();
    names.sort_unstable();
    assert_eq!(names, ["halves", "limit", "refund", "refunds", "shared", "sum", "weather"]);
}

#[tokio::test]
async fn the_future_of_a_call_by_hand_can_move_between_threads() {
    fn sent<F: Future + Send + 'static>(future: F) -> F {
        future
    }
    let by_hand = tokio::spawn(sent(halves(4, 4))).await.unwrap();
    assert_eq!(by_hand, Ok(1));
}

#[tokio::test]
async fn raw_names_are_the_names_for_the_model_without_their_mark() {
    /// Matches.
    #[tool]
    async fn r#match(r#type: u8) -> u8 {
        r#type
    }
    let tool = r#match.into_tool();
    assert_eq!(tool.spec().name(), "match");
    assert_eq!(tool.spec().schema()["required"], json!(["type"]));
    assert_eq!(text(&tool, json!({"type": 3})).await, "3");
}
