//! The transport through standard input and output: one message a line. It bounds lines, passes over other text, and ends
//! the process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::content::short;
use super::delivery::{Delivery, Fate};
use super::process::{Asides, Process};

/// The longest line that a server may write.
const LINE: usize = 16 * 1024 * 1024;
/// The time that a server has to end by itself after its standard input closed.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Stdio {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    lines: Lines,
    process: Arc<Process>,
    asides: Asides,
}

impl Stdio {
    pub(super) fn new(
        process: Arc<Process>,
        stdin: ChildStdin,
        stdout: ChildStdout,
        asides: &Asides,
    ) -> Self {
        let lines = Lines { stdout: BufReader::new(stdout), line: Vec::new() };
        Self { stdin: Arc::new(Mutex::new(Some(stdin))), lines, process, asides: asides.clone() }
    }

    /// The message of a line. Other text is passed over, but an answer that cannot be read is an error of its request: else
    /// the call would wait for its time limit.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        let error = match serde_json::from_slice(line) {
            Ok(message) => return Some(message),
            Err(error) => error,
        };
        if let Ok(Envelope { id, method: None }) = serde_json::from_slice(line) {
            let problem = format!("the answer cannot be read: {error}");
            return Some(ServerJsonRpcMessage::error(ErrorData::internal_error(problem, None), Some(id)));
        }
        self.asides.note(|| {
            let text = short(&String::from_utf8_lossy(line), 200);
            format!("it wrote to its standard output, where only messages belong: {text}")
        });
        None
    }
}

/// As much as is needed to tell which request an answer is for.
#[derive(Deserialize)]
struct Envelope {
    id: RequestId,
    method: Option<IgnoredAny>,
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let pipe = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let delivery = Delivery::of(&message);
            delivery.set(Fate::Sent);
            let written = pipe.write_all(&line).await;
            if written.is_err() {
                // A line without its end is no message, and nothing can follow it.
                delivery.set(Fate::Unsent);
                *stdin = None;
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.lines.next().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.asides.note(|| error.to_string());
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let stdin = Arc::clone(&self.stdin);
        // A request that the server does not read may still hold the pipe.
        let _ = timeout(GRACE, async {
            drop(stdin.lock().await.take());
            while let Ok(Some(_)) = self.lines.next().await {}
        })
        .await;
        self.process.end().await;
        Ok(())
    }
}

/// Lines of bounded length.
struct Lines {
    stdout: BufReader<ChildStdout>,
    /// The beginning of the next line, also after a read was dropped.
    line: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let read = self.stdout.fill_buf().await?;
            if read.is_empty() {
                let last = std::mem::take(&mut self.line);
                return Ok(Some(last).filter(|last| !last.is_empty()));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |end| end + 1);
            if self.line.len() + taken > LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it wrote a line of more than 16 MiB to its standard output",
                ));
            }
            self.line.extend_from_slice(&read[..taken]);
            self.stdout.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}
