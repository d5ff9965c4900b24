//! A small HTTP/1.1 client with connections that stay open, each with one request at a time.

use super::pricing::{Quote, Terms};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};

/// A pool of open connections. A request uses one of them.
#[derive(Clone)]
pub struct Connections {
    idle: Arc<Mutex<Vec<TcpStream>>>,
    count: Arc<Semaphore>,
}

impl Connections {
    pub async fn open(address: SocketAddr, count: usize) -> io::Result<Connections> {
        let mut idle = Vec::new();
        for _ in 0..count {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            idle.push(stream);
        }
        Ok(Connections { idle: Arc::new(Mutex::new(idle)), count: Arc::new(Semaphore::new(count)) })
    }

    /// Asks for a quote.
    ///
    /// # Errors
    /// The connection fails, or the server sends no valid answer.
    pub async fn post(&self, prices: &[f32], terms: Terms) -> io::Result<Quote> {
        let _place = self.count.acquire().await.map_err(io::Error::other)?;
        let stream = self.idle.lock().await.pop();
        let mut stream = stream.ok_or_else(|| io::Error::other("no connection is left"))?;
        let answer = ask(&mut stream, prices, terms).await;
        self.idle.lock().await.push(stream);
        answer
    }
}

async fn ask(stream: &mut TcpStream, prices: &[f32], terms: Terms) -> io::Result<Quote> {
    let Terms { strike, rate, volatility, years } = terms;
    let head = format!(
        "POST /price?strike={strike}&rate={rate}&volatility={volatility}&years={years} HTTP/1.1\r\n\
         Host: 127.0.0.1\r\nContent-Length: {}\r\n\r\n",
        prices.len() * 4
    );
    let mut bytes = head.into_bytes();
    bytes.extend(prices.iter().flat_map(|price| price.to_le_bytes()));
    stream.write_all(&bytes).await?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
        if answer.len() < end + 4 + length {
            continue;
        }
        if !head.starts_with("http/1.1 200") {
            return Err(io::Error::other(head));
        }
        return serde_json::from_slice(&answer[end + 4..][..length]).map_err(io::Error::other);
    }
}
