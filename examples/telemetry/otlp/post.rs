//! A minimal HTTP client: it posts each export over a new connection, without encryption.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// Use it for a collector on this machine or behind an encrypting proxy. It blocks, which is fine on the exporter's own
/// thread.
#[derive(Debug)]
pub(crate) struct Post;

const PATIENCE: Duration = Duration::from_secs(10);

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let uri = request.uri();
        let host = uri.authority().ok_or("the endpoint has no host")?;
        let address = (host.host(), host.port_u16().unwrap_or(80));
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;

        let mut head = Vec::new();
        write!(head, "POST {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", uri.path())?;
        for (name, value) in request.headers() {
            write!(head, "{name}: {}\r\n", value.to_str()?)?;
        }
        write!(head, "Content-Length: {}\r\n\r\n", request.body().len())?;
        connection.write_all(&head)?;
        connection.write_all(request.body())?;

        let mut answer = String::new();
        BufReader::new(connection).read_line(&mut answer)?;
        let status = answer.split_whitespace().nth(1).ok_or("the answer is not HTTP")?;
        Ok(Response::builder().status(status).body(Bytes::new())?)
    }
}
