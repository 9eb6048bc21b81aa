//! Functions, executors and a workflow for registries of tests.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::prelude::*;

use crate::{
    AgentExecutor, AgentResult, AgentTask, Choice, NodeContext, NodeError, Prompt, Question, ToolExecutor,
};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
pub(super) struct Refund {
    order: String,
    cents: u64,
    #[serde(default)]
    note: String,
    to: Account,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
struct Account {
    iban: String,
    bank: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Refunded {
    cents: u64,
}

pub(super) async fn refund(refund: Refund, _: NodeContext) -> Result<Refunded, NodeError> {
    Ok(Refunded { cents: refund.cents })
}

pub(super) async fn anything(input: Value, _: NodeContext) -> Result<Value, NodeError> {
    Ok(input)
}

/// An executor of these tools, if they are known.
pub(super) struct Tools(pub(super) Option<Vec<String>>);

impl ToolExecutor for Tools {
    fn call<'a>(
        &'a self,
        _: &'a str,
        input: Value,
        _: &'a NodeContext,
    ) -> BoxFuture<'a, Result<Value, NodeError>> {
        Box::pin(async move { Ok(input) })
    }

    fn names(&self) -> Option<Vec<String>> {
        self.0.clone()
    }
}

pub(super) struct Agents;

impl AgentExecutor for Agents {
    fn run<'a>(
        &'a self,
        _: AgentTask<'a>,
        _: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        Box::pin(async { Ok(AgentResult::default()) })
    }

    fn decide<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        Box::pin(async { Ok(Choice::new("end")) })
    }

    fn ask<'a>(&'a self, _: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        Box::pin(async { Ok("yes".to_owned()) })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(super) struct PriceAsked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(super) struct Price;

pub(super) struct Pricing;

#[workflow]
impl Pricing {
    #[step]
    async fn price(&self, _asked: &PriceAsked) -> Price {
        Price
    }
}
