//! Functions behind one type: JSON in, JSON out. This file reads inputs and writes outputs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{NodeContext, NodeError};

/// A function that nodes call.
pub(crate) trait Function: Send + Sync {
    /// Calls it for an attempt of a node.
    fn call(&self, input: Value, context: NodeContext) -> BoxFuture<'static, Result<Value, NodeError>>;
}

impl<F> Function for F
where
    F: Fn(Value, NodeContext) -> BoxFuture<'static, Result<Value, NodeError>> + Send + Sync,
{
    fn call(&self, input: Value, context: NodeContext) -> BoxFuture<'static, Result<Value, NodeError>> {
        self(input, context)
    }
}

/// A function, with its schemas if they are known.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) function: Arc<dyn Function>,
    pub(super) input: Option<Arc<Value>>,
    pub(super) output: Option<Arc<Value>>,
}

impl Registered {
    pub(super) fn of<I, O, E, F, R>(name: Arc<str>, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        E: Into<NodeError> + 'static,
        F: Fn(I, NodeContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        let call =
            move |input: Value, context: NodeContext| -> BoxFuture<'static, Result<Value, NodeError>> {
                let (name, function) = (name.clone(), function.clone());
                Box::pin(async move {
                    let returned = function(read(&name, input)?, context).await;
                    written(&name, returned.map_err(Into::into)?)
                })
            };
        Self { function: Arc::new(call), input: None, output: None }
    }

    pub(super) fn described<I: JsonSchema, O: JsonSchema>(self) -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.inline_subschemas = true;
            settings.meta_schema = None;
            settings
        };
        let input = settings().into_generator().into_root_schema_for::<I>().to_value();
        let output = settings().for_serialize().into_generator().into_root_schema_for::<O>().to_value();
        Self { input: Some(Arc::new(input)), output: Some(Arc::new(output)), ..self }
    }
}

fn read<I: DeserializeOwned>(name: &str, input: Value) -> Result<I, NodeError> {
    if let Ok(input) = I::deserialize(&input) {
        return Ok(input);
    }
    // A node without `with` has the input `{}`, and a function without input takes `()`.
    let is_empty = input.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty && let Ok(input) = I::deserialize(Value::Null) {
        return Ok(input);
    }
    // Once more, for the path of the mistake.
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!(" at `{path}`") };
        let message = format!("the input of the function `{name}` cannot be read{at}: {}", error.inner());
        NodeError::permanent(message)
    })
}

fn written(name: &str, output: impl Serialize) -> Result<Value, NodeError> {
    serde_json::to_value(output).map_err(|error| {
        NodeError::permanent(format!("the output of the function `{name}` has no JSON: {error}"))
    })
}
