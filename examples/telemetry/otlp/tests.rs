//! Tests of the spans that arrive at a collector.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use super::collector::{Collector, attribute};
use super::{exporting, run};

#[tokio::test]
async fn a_run_and_its_executions_arrive_at_the_collector_nested_and_named() {
    let collector = Collector::start().unwrap();
    let (provider, subscriber) = exporting(&collector.endpoint()).unwrap();
    let traced = tracing::subscriber::set_default(subscriber);
    assert_eq!(run().await.unwrap().cents, 2_120);
    drop(traced);
    provider.shutdown().unwrap();

    let spans = collector.spans();
    let named = |name: &str| -> &Span { spans.iter().find(|span| span.name == name).unwrap() };
    let run = named("run Shop");
    assert_eq!((spans.len(), &run.parent_span_id[..]), (7, &[][..]));
    assert_eq!(attribute(run, "workflow.name").unwrap(), "Shop");
    assert_eq!(attribute(run, "workflow.run.status").unwrap(), "completed");
    assert!(attribute(run, "workflow.run.id").is_some() && attribute(run, "workflow.thread.id").is_some());
    for (step, outcome) in [("add_up", "succeeded"), ("recommend", "failed"), ("bill", "succeeded")] {
        let execution = named(&format!("execute {step}"));
        assert_eq!((&execution.trace_id, &execution.parent_span_id), (&run.trace_id, &run.span_id));
        assert_eq!(attribute(execution, "workflow.step.name").unwrap(), step);
        assert_eq!(attribute(execution, "workflow.execution.outcome").unwrap(), outcome);
        assert_eq!(attribute(execution, "workflow.execution.attempt").unwrap(), "1");
        assert!(run.start_time_unix_nano <= execution.start_time_unix_nano);
        assert!(execution.end_time_unix_nano <= run.end_time_unix_nano);
    }
    let (bill, child) = (named("execute bill"), named("run Shipping"));
    assert_eq!((&child.trace_id, &child.parent_span_id), (&bill.trace_id, &bill.span_id));
    let attempts = spans.iter().filter(|span| span.name == "execute weigh");
    let attempts = attempts.map(|span| {
        assert_eq!(span.parent_span_id, child.span_id);
        attribute(span, "workflow.execution.attempt").unwrap()
    });
    let mut attempts: Vec<_> = attempts.collect();
    attempts.sort();
    assert_eq!(attempts, ["1", "2"]);
    assert_eq!(named("execute add_up").events[0].name, "adding up");
    let failed = named("execute recommend");
    let status = failed.status.as_ref().unwrap();
    assert_eq!((status.code(), &*status.message), (StatusCode::Error, "the recommender does not answer"));
    assert_eq!(attribute(failed, "error.type").unwrap(), "transient");
    assert!(run.status.as_ref().is_none_or(|status| status.code() == StatusCode::Unset));
}

#[test]
fn a_collector_that_is_not_there_is_no_concern_of_the_run() {
    // No process listens there: the port was free a moment ago.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (provider, subscriber) = exporting(&format!("http://{nobody}")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let invoice = tracing::subscriber::with_default(subscriber, || runtime.block_on(run()));
    assert_eq!(invoice.unwrap().cents, 2_120);
    // The exporter may or may not report an error.
    let _ = provider.shutdown();
}
