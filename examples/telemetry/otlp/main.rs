//! Spans of runs and executions, exported to an OpenTelemetry collector by OTLP over HTTP.
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318` sends them to your collector. Without it the example starts a
//! small one and prints what arrived there.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

mod collector;
mod post;
#[cfg(test)]
mod tests;

use std::error::Error;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt as _;
use workflow_core::RetryPolicy;
use workflow_core::observe::TracingObserver;
use workflow_core::prelude::*;

use collector::Collector;
use post::Post;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    prices: Vec<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Subtotal {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Invoice {
    cents: u64,
}

struct Shop;

#[workflow]
impl Shop {
    #[step]
    async fn add_up(&self, order: &Order) -> Subtotal {
        // The collector receives this as an event of the execution's span.
        tracing::info!(prices = order.prices.len(), "adding up");
        Subtotal { cents: order.prices.iter().sum() }
    }

    /// Fails with a class that is not retried, and the run continues; its span still has the error.
    #[step(on_error = "continue", retry = RetryPolicy::none())]
    async fn recommend(&self, order: &Order) -> Result<(), StepError> {
        Err(StepError::transient("the recommender does not answer"))
    }

    #[step]
    async fn bill(&self, subtotal: &Subtotal, children: &Children) -> Result<Invoice, RunError> {
        let postage = children.run::<Shipping>(Parcel { cents: subtotal.cents }).await?;
        Ok(Invoice { cents: subtotal.cents + postage.cents })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Parcel {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Postage {
    cents: u64,
}

/// A child run within `bill`, so its span is inside; the scale answers the second time.
struct Shipping;

#[workflow]
impl Shipping {
    #[step]
    async fn weigh(&self, parcel: &Parcel, info: &RunInfo) -> Result<Postage, StepError> {
        if info.attempt() == 1 {
            return Err(StepError::tool("the scale is settling"));
        }
        Ok(Postage { cents: if parcel.cents > 5_000 { 0 } else { 490 } })
    }
}

/// Builds the exporter and the tracing layer. A separate thread sends spans in batches; `shutdown` sends the rest.
fn exporting(
    endpoint: &str,
) -> Result<(SdkTracerProvider, impl tracing::Subscriber + use<>), Box<dyn Error>> {
    // A program with the feature `reqwest-blocking-client` of `opentelemetry-otlp` needs no client of its own.
    let exporter = SpanExporter::builder().with_http().with_http_client(Post);
    let exporter = exporter.with_endpoint(format!("{endpoint}/v1/traces")).build()?;
    let service = Resource::builder().with_service_name("shop").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(service).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("workflow"));
    let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
    let subscriber = tracing_subscriber::registry().with(layer);
    Ok((provider, subscriber))
}

async fn run() -> Result<Invoice, Box<dyn Error>> {
    let engine =
        Engine::builder().workflow(Shop).workflow(Shipping).observer(TracingObserver::new()).build()?;
    let run = engine.start::<Shop>(Order { prices: vec![1_250, 300, 80] }).await?;
    Ok(run.outcome().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let collector = Collector::start()?;
    let given = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok();
    let endpoint = given.clone().unwrap_or_else(|| collector.endpoint());
    let (provider, subscriber) = exporting(&endpoint)?;
    tracing::subscriber::set_global_default(subscriber)?;
    let invoice = run().await?;
    tokio::task::spawn_blocking(move || provider.shutdown()).await??;
    println!("{} cents; the spans are at {endpoint}", invoice.cents);
    if given.is_none() {
        println!("{}", collector.tree());
    }
    Ok(())
}
