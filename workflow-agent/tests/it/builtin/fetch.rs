//! The tool for pages: the addresses that it reaches, and its results. Each server is on loopback.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{MethodRouter, get};
use futures::stream;
use futures::{StreamExt as _, future};
use serde_json::json;
use workflow_agent::builtin::{Fetch, FetchError};

use super::Tools;

/// The server that the helper process fetches, which [`a_program_with_proxies_in_its_environment`] is only with this variable.
const TARGET: &str = "WORKFLOW_AGENT_TEST_TARGET";

/// Serves the routes on loopback and returns the port.
async fn serve(routes: Router) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    port
}

/// A server that must not be reached.
struct Untouched(TcpListener);

impl Untouched {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn assert(&self, circumstances: &str) {
        assert_eq!(self.0.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "{circumstances}");
    }
}

/// Names by a table; the others do not exist.
fn names(fetch: Fetch, table: &'static [(&'static str, &'static [&'static str])]) -> Fetch {
    fetch.resolve_with(move |name| {
        let found = table.iter().find(|(known, _)| *known == name).map(|(_, addresses)| addresses);
        let parsed = found.map(|all| all.iter().map(|one| one.parse().unwrap()).collect::<Vec<IpAddr>>());
        future::ready(parsed.ok_or_else(|| io::Error::other("no such name")))
    })
}

/// A tool that may reach `page.test` on this port, which is loopback.
fn page_test(port: u16) -> Fetch {
    names(Fetch::new(), &[("page.test", &["127.0.0.1"])]).allow(&format!("page.test:{port}")).unwrap()
}

fn redirect(to: impl Into<String>) -> MethodRouter {
    let to = to.into();
    get(move || future::ready((StatusCode::FOUND, [("location", to)])))
}

/// A90
#[tokio::test]
async fn a_page_comes_with_status_type_and_text() {
    let routes = Router::new()
        .route("/page", get(|| async { ([("content-type", "text/html")], "<p>Grüezi</p>") }))
        .route("/gone", get(|| async { (StatusCode::GONE, "moved away") }))
        .route("/image", get(|| async { ([("content-type", "image/png")], vec![0_u8; 70]) }))
        .route("/untyped", get(|| async { Body::from("plain").into_response_without_type() }))
        .route(
            "/latin",
            get(|| async { ([("content-type", "text/plain; charset=latin1")], b"Z\xfcrich".to_vec()) }),
        )
        .route("/agent", get(|headers: HeaderMap| async move { format!("{:?}", headers.get("user-agent")) }))
        .route("/old", redirect("/page?moved#part"));
    let port = serve(routes).await;
    let tools = Tools::of(page_test(port));
    let url = |path: &str| json!({ "url": format!("http://page.test:{port}{path}") });
    assert_eq!(tools.text("fetch", url("/page")).await, "200 OK\ncontent-type: text/html\n\n<p>Grüezi</p>");
    let gone = tools.call("fetch", url("/gone")).await.unwrap();
    assert!(gone.is_error);
    assert_eq!(gone.text, "410 Gone\ncontent-type: text/plain; charset=utf-8\n\nmoved away");
    let image = tools.text("fetch", url("/image")).await;
    assert_eq!(
        image,
        "200 OK\ncontent-type: image/png\n\n[the body is no text; it has 70 bytes, which are not shown]"
    );
    assert_eq!(tools.text("fetch", url("/untyped")).await, "200 OK\n\nplain");
    assert!(tools.text("fetch", url("/latin")).await.ends_with("\n\nZürich"));
    assert!(tools.text("fetch", url("/agent")).await.contains("workflow-agent/"));
    let moved = tools.text("fetch", url("/old")).await;
    let expected =
        format!("200 OK\nurl: http://page.test:{port}/page?moved#part\ncontent-type: text/html\n\n<p>");
    assert!(moved.starts_with(&expected), "{moved}");
    let head = json!({ "url": format!("http://page.test:{port}/page"), "method": "HEAD" });
    assert_eq!(tools.text("fetch", head).await, "200 OK\ncontent-type: text/html\ncontent-length: 14\n");
}

/// A response without a content type.
trait WithoutType {
    fn into_response_without_type(self) -> axum::response::Response;
}

impl WithoutType for Body {
    fn into_response_without_type(self) -> axum::response::Response {
        axum::response::Response::new(self)
    }
}

/// A90
#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() {
    let untouched = Untouched::new();
    let port = untouched.port();
    let tools = Tools::of(Fetch::new());
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "127.255.255.254",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fd00::1]",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "１２７.０.０.１",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.1.",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let refused = tools.failure("fetch", json!({ "url": format!("http://{host}:{port}/") })).await;
        assert!(refused.contains("is no public address"), "{host}: {refused}");
        untouched.assert(host);
    }
    for host in ["localhost", "LOCALHOST"] {
        let refused = tools.failure("fetch", json!({ "url": format!("http://{host}:{port}/") })).await;
        assert!(refused.contains("has an address that is not public"), "{host}: {refused}");
        untouched.assert(host);
    }
}

/// A90
#[tokio::test]
async fn names_that_lead_to_private_addresses_are_refused() {
    let untouched = Untouched::new();
    let table: &[(&str, &[&str])] = &[
        ("loop.test", &["127.0.0.1"]),
        ("localhost.", &["127.0.0.1"]),
        ("loop6.test", &["::1"]),
        ("mapped.test", &["::ffff:127.0.0.1"]),
        ("nat64.test", &["64:ff9b::7f00:1"]),
        ("metadata.test", &["169.254.169.254"]),
        ("private.test", &["10.1.2.3"]),
        ("local.test", &["fd12::1"]),
        // The client would try one after the other.
        ("mixed.test", &["8.8.8.8", "127.0.0.1"]),
        ("mixed6.test", &["2620:fe::fe", "::1"]),
    ];
    let tools = Tools::of(names(Fetch::new(), table));
    for (name, addresses) in table {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{name}:{}/", untouched.port());
            let refused = tools.failure("fetch", json!({ "url": url })).await;
            assert_eq!(
                refused,
                format!("`{name}` has an address that is not public, so it cannot be fetched")
            );
            assert!(addresses.iter().all(|address| !refused.contains(address)));
        }
    }
    untouched.assert("no name leads to loopback");
    let unknown = tools.failure("fetch", json!({ "url": "http://unknown.test/" })).await;
    assert!(unknown.contains("no such name"), "{unknown}");
}

/// A90
#[tokio::test]
async fn a_name_is_looked_up_once_for_each_request_so_it_cannot_change_in_between() {
    let port = serve(Router::new().route("/", get(|| async { "first" }))).await;
    let untouched = Untouched::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let changing = move |_name| {
        let first = counted.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let address: IpAddr = if first { "127.0.0.1" } else { "127.0.0.2" }.parse().unwrap();
        future::ready(Ok(vec![address]))
    };
    let fetch = Fetch::new().resolve_with(changing).allow(&format!("changing.test:{port}")).unwrap();
    let tools = Tools::of(fetch);
    let text = tools.text("fetch", json!({ "url": format!("http://changing.test:{port}/") })).await;
    assert!(text.ends_with("first"));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // Where nothing is allowed, a second answer is judged like the first: no connection is left from before.
    let refused = format!("http://changing.test:{}/", untouched.port());
    tools.failure("fetch", json!({ "url": refused })).await;
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    untouched.assert("the allowed port is another");
}

/// A90
#[tokio::test]
async fn each_redirect_is_checked() {
    let untouched = Untouched::new();
    let other = untouched.port();
    let routes = Router::new()
        .route("/loop", redirect(format!("http://127.0.0.1:{other}/")))
        .route("/odd", redirect(format!("http://0x7f.1:{other}/")))
        .route("/name", redirect(format!("//other.test:{other}/")))
        .route("/port", redirect(format!("http://page.test:{other}/")))
        .route("/metadata", redirect("http://169.254.169.254/latest/meta-data/"))
        .route("/file", redirect("file:///etc/passwd"))
        .route("/user", redirect("http://user:word@page.test/"))
        .route("/again", redirect("/loop"));
    let port = serve(routes).await;
    let table: &[(&str, &[&str])] = &[("page.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])];
    let tools = Tools::of(names(Fetch::new(), table).allow(&format!("page.test:{port}")).unwrap());
    for (path, reason) in [
        ("loop", "`127.0.0.1` is no public address"),
        ("odd", "`127.0.0.1` is no public address"),
        ("name", "`other.test` has an address that is not public"),
        ("port", "`page.test` has an address that is not public"),
        ("metadata", "`169.254.169.254` is no public address"),
        ("file", "URLs with `file:` cannot be fetched"),
        ("user", "a user or a password"),
        ("again", "`127.0.0.1` is no public address"),
    ] {
        let refused =
            tools.failure("fetch", json!({ "url": format!("http://page.test:{port}/{path}") })).await;
        assert!(refused.contains(reason), "{path}: {refused}");
        untouched.assert(path);
    }
}

/// A90
#[tokio::test]
async fn a_call_follows_five_redirects() {
    let step = |Path(left): Path<u32>| async move {
        let status = if left == 0 { StatusCode::OK } else { StatusCode::TEMPORARY_REDIRECT };
        (status, [("location", format!("/{}", left.saturating_sub(1)))], "the end")
    };
    let port = serve(Router::new().route("/{left}", get(step))).await;
    let tools = Tools::of(page_test(port));
    let url = |left: u32| json!({ "url": format!("http://page.test:{port}/{left}") });
    assert!(tools.text("fetch", url(5)).await.ends_with("the end"));
    let refused = tools.failure("fetch", url(6)).await;
    assert!(refused.contains("more than 5 times"), "{refused}");
}

/// A90
#[tokio::test]
async fn an_exception_holds_for_one_host_and_port() {
    let port = serve(Router::new().route("/", get(|| async { "hello" }))).await;
    let untouched = Untouched::new();
    let allow = |endpoint: String| Tools::of(Fetch::new().allow(&endpoint).unwrap());
    let url = |host: &str, port: u16| json!({ "url": format!("http://{host}:{port}/") });
    let by_address = allow(format!("127.0.0.1:{port}"));
    assert!(by_address.text("fetch", url("127.0.0.1", port)).await.ends_with("hello"));
    assert!(by_address.text("fetch", url("0x7f.1", port)).await.ends_with("hello"));
    by_address.failure("fetch", url("localhost", port)).await;
    by_address.failure("fetch", url("127.0.0.2", port)).await;
    by_address.failure("fetch", url("127.0.0.1", untouched.port())).await;
    let by_name = allow(format!("LocalHost:{port}"));
    assert!(by_name.text("fetch", url("localhost", port)).await.ends_with("hello"));
    by_name.failure("fetch", url("127.0.0.1", port)).await;
    by_name.failure("fetch", url("sub.localhost", port)).await;
    by_name.failure("fetch", url("localhost", untouched.port())).await;
    untouched.assert("no other port is allowed");
    let FetchError::NoEndpoint { given } = Fetch::new().allow("localhost").unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(given, "localhost");
}

/// A90
#[tokio::test]
async fn other_schemes_methods_and_credentials_are_refused() {
    let untouched = Untouched::new();
    let port = untouched.port();
    let tools = Tools::of(Fetch::new().allow(&format!("127.0.0.1:{port}")).unwrap());
    for url in [
        format!("ftp://127.0.0.1:{port}/"),
        "file:///etc/passwd".into(),
        "data:text/plain,x".into(),
        format!("ws://127.0.0.1:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        format!("http://user:word@127.0.0.1:{port}/"),
        format!("http://:word@127.0.0.1:{port}/"),
        format!("127.0.0.1:{port}"),
        "/path".into(),
        String::new(),
    ] {
        let refused = tools.failure("fetch", json!({ "url": url })).await;
        assert!(!refused.contains("word@"), "{refused}");
        untouched.assert(&url);
    }
    let url = format!("http://127.0.0.1:{port}/");
    tools.failure("fetch", json!({ "url": url, "method": "POST" })).await;
    untouched.assert("POST");
}

/// A90, A16
#[tokio::test]
async fn five_mebibytes_of_a_body_are_read() {
    const BODY: usize = 5 * 1024 * 1024;
    let endless = || {
        let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
        Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone())))
    };
    let routes = Router::new()
        .route("/endless", get(move || future::ready(endless())))
        .route("/whole", get(|| future::ready("y".repeat(BODY))));
    let port = serve(routes).await;
    let tools = Tools::of(page_test(port));
    let url = |path: &str| json!({ "url": format!("http://page.test:{port}/{path}") });
    let endless = tools.text("fetch", url("endless")).await;
    assert!(endless.ends_with("x\n[the body has more than 5242880 bytes; the rest was not read]"));
    assert_eq!(endless.matches('x').count(), BODY);
    let whole = tools.text("fetch", url("whole")).await;
    assert!(whole.ends_with('y') && whole.len() > BODY);
}

/// A90
#[tokio::test]
async fn a_server_that_does_not_answer_or_never_ends_costs_no_more_than_the_timeout() {
    let dripping = || {
        let first = stream::iter([Ok::<_, io::Error>("a beginning")]);
        Body::from_stream(first.chain(stream::pending()))
    };
    let routes = Router::new()
        .route("/silent", get(future::pending::<&str>))
        .route("/dripping", get(move || future::ready(dripping())));
    let port = serve(routes).await;
    let tools = Tools::of(page_test(port).timeout(Duration::from_millis(300)));
    for path in ["silent", "dripping"] {
        let late = tools.failure("fetch", json!({ "url": format!("http://page.test:{port}/{path}") })).await;
        assert_eq!(late, "the page was not complete after 0.3 s");
    }
}

/// A90
#[tokio::test]
async fn the_proxies_of_the_environment_are_not_used() {
    let port = serve(Router::new().route("/", get(|| async { "direct" }))).await;
    let untouched = Untouched::new();
    let proxy = format!("http://127.0.0.1:{}", untouched.port());
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "builtin::fetch::a_program_with_proxies_in_its_environment"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        program.env(name, &proxy);
    }
    program.env_remove("NO_PROXY").env_remove("no_proxy").env(TARGET, format!("127.0.0.1:{port}"));
    program.stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || program.output().unwrap()).await.unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    untouched.assert("the proxy");
}

/// The other process of the test before.
#[tokio::test]
async fn a_program_with_proxies_in_its_environment() {
    let Ok(target) = std::env::var(TARGET) else { return };
    let tools = Tools::of(Fetch::new().allow(&target).unwrap());
    let text = tools.text("fetch", json!({ "url": format!("http://{target}/") })).await;
    assert!(text.ends_with("direct"), "{text}");
}
