//! A collector that stores received spans, for the example and its test.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Listens on a free port of this machine, until the program ends.
#[derive(Debug)]
pub(crate) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let arrived = Arc::clone(&spans);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // Other requests get no answer.
                let _ = serve(&connection, &arrived);
            }
        });
        Ok(Self { address, spans })
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans received so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same as a tree.
    pub(crate) fn tree(&self) -> String {
        let mut spans = self.spans();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        let mut text = String::new();
        for root in spans.iter().filter(|span| span.parent_span_id.is_empty()) {
            write(&mut text, root, &spans, 0);
        }
        text
    }
}

/// The value of an attribute as text.
pub(crate) fn attribute(span: &Span, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

/// Handles one request, and answers once its spans are stored.
fn serve(mut connection: &TcpStream, spans: &Mutex<Vec<Span>>) -> Result<(), Box<dyn Error>> {
    let mut request = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while request.read_line(&mut line)? > "\r\n".len() {
        if let Some(("content-length", value)) = line.to_ascii_lowercase().split_once(':') {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body)?;
    let exported = ExportTraceServiceRequest::decode(&body[..])?;
    let scopes = exported.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let new = scopes.flat_map(|scope| scope.spans);
    spans.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
    connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok(())
}

fn write(text: &mut String, span: &Span, all: &[Span], depth: usize) {
    let status = span.status.as_ref().map_or("", |status| &status.message);
    let end =
        attribute(span, "workflow.run.status").or_else(|| attribute(span, "workflow.execution.outcome"));
    let indent = "  ".repeat(depth);
    // Writing to a `String` does not fail.
    let _ = write!(text, "{indent}{}: {}", span.name, end.unwrap_or_default());
    let _ = writeln!(text, "{}{status}", if status.is_empty() { "" } else { ", " });
    for event in &span.events {
        let _ = writeln!(text, "{indent}  - {}", event.name);
    }
    for child in all.iter().filter(|child| child.parent_span_id == span.span_id) {
        write(text, child, all, depth + 1);
    }
}
