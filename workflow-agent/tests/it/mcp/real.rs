//! Real servers, from the registries of Python and npm: these tests install them once into the target folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use workflow_agent::tool::ToolContext;
use workflow_agent::{Mcp, McpServer};

use super::{assert_says, call, ended, has_ended, in_time, kill, tool};

const GIT: &str = "mcp-server-git==2026.10.19";
const NODE: [&str; 2] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// Runs a program of the installation.
fn run(program: impl AsRef<Path>, arguments: &[&str]) {
    let program = program.as_ref();
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{} is needed to install real MCP servers: {error}", program.display())
    });
    assert!(
        output.status.success(),
        "{} {arguments:?} failed: the tests need `python3-venv`, `npm` and both registries\n{}{}",
        program.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The folder of an installation, which is complete if it has the mark.
fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp");
    std::fs::create_dir_all(&all).unwrap();
    // Another process may run these tests at the same time.
    let lock = File::create(all.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let folder = all.join(name);
    let mark = folder.join("complete");
    if !mark.exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        install(&folder);
        std::fs::write(mark, "").unwrap();
    }
    folder
}

fn python_program(name: &str) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        installed(&GIT.replace("==", "-"), |folder| {
            run("python3", &["-m", "venv", folder.to_str().unwrap()]);
            run(folder.join("bin/pip"), &["install", "--quiet", "--disable-pip-version-check", GIT]);
        })
    });
    folder.join("bin").join(name).to_str().unwrap().to_owned()
}

fn node_program(name: &str) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        installed("node-2026.8.31", |folder| {
            let prefix = folder.to_str().unwrap();
            let arguments = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", prefix];
            run("npm", &[&arguments[..], &NODE].concat());
        })
    });
    folder.join("node_modules/.bin").join(name).to_str().unwrap().to_owned()
}

async fn everything() -> McpServer {
    let program = tokio::task::spawn_blocking(|| node_program("mcp-server-everything")).await.unwrap();
    in_time(Mcp::stdio("everything", [program]).connect()).await.unwrap()
}

/// The processes whose command line names the text, but not this one.
fn processes(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(text) && process != std::process::id() && !has_ended(process) {
            found.push(process);
        }
    }
    found
}

async fn output(server: &McpServer, name: &str, arguments: Value) -> String {
    let output = call(server, name, arguments).await.unwrap();
    assert!(!output.is_error, "{}", output.text);
    output.text
}

/// A17, A81
#[tokio::test]
async fn the_git_server_reads_a_repository_and_ends_with_its_handle() {
    let program = tokio::task::spawn_blocking(|| python_program("mcp-server-git")).await.unwrap();
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    run("git", &["-C", folder, "init", "--quiet", "--initial-branch", "trunk"]);
    std::fs::write(repository.path().join("letter.txt"), "Dear reader").unwrap();

    let mcp = Mcp::stdio("git", [program.as_str(), "--repository", folder]).trusted();
    let server = in_time(mcp.connect()).await.unwrap();
    let status = tool(&server, "git_status");
    assert!(status.spec().is_read_only());
    assert!(!tool(&server, "git_commit").spec().is_repeatable());
    let text = output(&server, "git_status", json!({"repo_path": folder})).await;
    assert_says(&text, &text, &["trunk", "letter.txt"]);

    let wrong = call(&server, "git_status", json!({"repo_path": "/no/such/repository"})).await.unwrap();
    assert!(wrong.is_error, "{}", wrong.text);

    let running = processes(folder);
    assert!(!running.is_empty());
    drop((server, status));
    for process in running {
        ended(process).await;
    }
}

/// A81
#[tokio::test]
async fn the_filesystem_server_writes_reads_and_refuses() {
    let program = tokio::task::spawn_blocking(|| node_program("mcp-server-filesystem")).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().canonicalize().unwrap();
    let mcp = Mcp::stdio("files", [program.as_str(), folder.to_str().unwrap()]);
    let server = in_time(mcp.only(["write_file", "read_text_file"]).connect()).await.unwrap();
    assert_eq!(server.tools().len(), 2);

    let path = folder.join("letter.txt");
    output(&server, "write_file", json!({"path": path, "content": "Dear reader"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "Dear reader");
    assert_eq!(output(&server, "read_text_file", json!({"path": path})).await, "Dear reader");
    let outside = call(&server, "read_text_file", json!({"path": "/etc/hostname"})).await.unwrap();
    assert!(outside.is_error, "{}", outside.text);

    // Killed between two calls: the next one starts it again.
    for process in processes(folder.to_str().unwrap()) {
        kill(process);
        ended(process).await;
    }
    assert_eq!(output(&server, "read_text_file", json!({"path": path})).await, "Dear reader");
    in_time(server.close()).await;
    assert_eq!(processes(folder.to_str().unwrap()), [0_u32; 0]);
}

/// A81
#[tokio::test]
async fn the_everything_server_answers_with_texts_images_and_errors() {
    let server = everything().await;
    assert_eq!(output(&server, "echo", json!({"message": "hi"})).await, "Echo: hi");
    let sum = output(&server, "get-sum", json!({"a": 2, "b": 40})).await;
    assert_says(&sum, &sum, &["42"]);
    let image = output(&server, "get-tiny-image", json!({})).await;
    assert_says(&image, &image, &["[image image/png, "]);
    let wrong = call(&server, "get-sum", json!({"a": "two"})).await.unwrap();
    assert!(wrong.is_error, "{}", wrong.text);
    in_time(server.close()).await;
}

/// A15, A81
#[tokio::test]
async fn the_everything_server_survives_a_cancelled_call_and_is_restarted_after_its_death() {
    let marker = tempfile::tempdir().unwrap();
    let marker = marker.path().to_str().unwrap().to_owned();
    let program = tokio::task::spawn_blocking(|| node_program("mcp-server-everything")).await.unwrap();
    // The server ignores further arguments; this one finds its process.
    let mcp = Mcp::stdio("everything", [program.as_str(), "stdio", &marker]);
    let server = in_time(mcp.connect()).await.unwrap();
    let long = tool(&server, "trigger-long-running-operation");
    let arguments = json!({"duration": 600, "steps": 600});

    let begun = long.call(arguments.clone(), ToolContext::detached("cancelled"));
    let begun = tokio::spawn(begun);
    assert_eq!(output(&server, "echo", json!({"message": "meanwhile"})).await, "Echo: meanwhile");
    begun.abort();
    assert!(begun.await.unwrap_err().is_cancelled());
    assert_eq!(output(&server, "echo", json!({"message": "after"})).await, "Echo: after");

    let begun = tokio::spawn(long.call(arguments, ToolContext::detached("killed")));
    assert_eq!(output(&server, "echo", json!({"message": "meanwhile"})).await, "Echo: meanwhile");
    for process in processes(&marker) {
        kill(process);
    }
    let error = in_time(begun).await.unwrap().unwrap_err();
    assert_says(&error, &error.to_string(), &["was interrupted and may have happened"]);
    assert_eq!(output(&server, "echo", json!({"message": "again"})).await, "Echo: again");

    drop((server, long));
    for process in processes(&marker) {
        ended(process).await;
    }
}

/// Starts the server by HTTP, and waits until it listens.
async fn listening(port: u16) -> tokio::process::Child {
    let program = tokio::task::spawn_blocking(|| node_program("mcp-server-everything")).await.unwrap();
    let mut process = tokio::process::Command::new(program)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    in_time(async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the server ended");
            if line.contains("listening on port") {
                break;
            }
        }
    })
    .await;
    // Nobody reads further lines, but the pipe stays open.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    process
}

/// A15, A81
#[tokio::test]
async fn the_everything_server_by_http_is_reached_again_after_its_restart() {
    // Below the ports that the system gives out itself, so that nobody takes it between two starts.
    let free = std::iter::repeat_with(|| fastrand::u16(20_000..32_000))
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap();
    let mut process = listening(free).await;
    let mcp = Mcp::http("everything", format!("http://127.0.0.1:{free}/mcp"));
    let server = in_time(mcp.connect()).await.unwrap();
    assert_eq!(output(&server, "echo", json!({"message": "hi"})).await, "Echo: hi");

    process.kill().await.unwrap();
    let error = call(&server, "echo", json!({"message": "nobody"})).await.unwrap_err();
    assert_says(&error, &error.to_string(), &["the connection to the MCP server `everything` failed"]);

    let mut process = listening(free).await;
    assert_eq!(output(&server, "echo", json!({"message": "again"})).await, "Echo: again");

    // Restarted between two calls: the session is lost, and nobody noticed.
    process.kill().await.unwrap();
    let _process = listening(free).await;
    assert_eq!(output(&server, "echo", json!({"message": "once more"})).await, "Echo: once more");
    in_time(server.close()).await;
}
