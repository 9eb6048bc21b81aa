//! Streams that are cut, anywhere, into chunks or for good.

use workflow_agent::Provider;
use workflow_agent::model::ModelEvent;
use workflow_core::ErrorClass;

use super::recorded::{expected, streamed};
use super::server::{self, Server};
use super::{KINDS, at, hello, reply};

/// A80
#[test]
fn chunk_boundaries_change_nothing() {
    for kind in KINDS {
        for stream in [streamed(kind), streamed(kind).replace('\n', "\r\n")] {
            let bytes = stream.as_bytes();
            let events = |chunks: Vec<&[u8]>| -> Vec<ModelEvent> {
                Provider::replay(kind, chunks).unwrap().into_iter().map(Result::unwrap).collect()
            };
            let whole = events(vec![bytes]);
            assert_eq!(whole.last(), Some(&ModelEvent::Finished(expected(kind, kind))), "{kind}");
            for cut in 0..bytes.len() {
                assert_eq!(events(vec![&bytes[..cut], &bytes[cut..]]), whole, "{kind} cut at {cut}");
            }
            assert_eq!(events(bytes.chunks(1).collect()), whole, "{kind}");
        }
    }
}

/// A80
#[tokio::test]
async fn a_connection_that_breaks_off_is_transient() {
    for kind in KINDS {
        for streaming in [true, false] {
            let server = Server::start(move |_| {
                let stream = streamed(kind);
                let half = stream.as_bytes()[..stream.len() / 2].to_vec();
                let broken = futures::stream::iter([Ok(half), Err(std::io::Error::other("gone"))]);
                server::streamed(kind, axum::body::Body::from_stream(broken))
            })
            .await;
            let model = at(kind, &server).streaming(streaming).build().unwrap();
            let error = reply(&model, hello()).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Transient, "{kind}: {error}");
        }
    }
}

/// A80
#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    let server = Server::start(|_| server::streamed("openai", "")).await;
    let model = at("openai", &server).build().unwrap();
    let url = server.url.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = format!("http://{}", listener.local_addr().unwrap());
    drop((server, listener));
    let gone = Provider::new("openai::m-1").unwrap().endpoint(&free).without_key().build().unwrap();
    let error = reply(&gone, hello()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient);
    assert!(error.message().contains(&free), "{error}");
    assert!(format!("{model:?}").contains(&url));
}
