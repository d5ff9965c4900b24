//! Tests the example service over a port: answers, callers' mistakes, limits, time-outs, callers that hang up, and the
//! end of the service.

#[path = "../examples/service/pricing.rs"]
#[allow(dead_code)]
mod pricing;
#[path = "../examples/service/server.rs"]
mod server;

use pricing::Quote;
use server::Limits;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemill::Runtime;
use tidemill::testing::{Hold, Injection};

/// Far longer than any step of these tests takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running service on a port of its own. `stop` is `None` once the service was told to end.
struct Running {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    ended: std::thread::JoinHandle<Result<(), tidemill::Error>>,
}

fn start(limits: Limits, injection: Injection) -> Running {
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ended = std::thread::spawn(move || {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        executor.block_on(async {
            let builder = Runtime::builder().device("host").injection(injection).drain(Duration::from_secs(30));
            let runtime = builder.start().await?;
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            tell.send(listener.local_addr()?).unwrap();
            server::serve(runtime, limits, listener, async {
                let _ = stopped.await;
            })
            .await
        })
    });
    Running { address: told.recv().unwrap(), stop: Some(stop), ended }
}

impl Running {
    fn send(&self, target: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let method = if body.is_empty() && target != "/price" { "GET" } else { "POST" };
        let length = body.len();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    fn ask(&self, target: &str, body: &[u8]) -> (u16, String) {
        answer(self.send(target, body))
    }

    fn counter(&self, name: &str) -> u64 {
        let (_, lines) = self.ask("/stats", &[]);
        let line = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect("a counter");
        line.trim().parse().unwrap()
    }

    fn until(&self, name: &str, value: u64) {
        let begun = Instant::now();
        while self.counter(name) != value {
            assert!(begun.elapsed() < PATIENCE, "{name} does not become {value}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(mut self) {
        drop(self.stop.take());
        self.ended.join().unwrap().unwrap();
    }
}

/// The status and the body of an answer. For a refusal, the headers precede the body.
fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, if status == 200 { body.into() } else { format!("{}\n{body}", head.to_ascii_lowercase()) })
}

fn bytes(prices: &[f32]) -> Vec<u8> {
    prices.iter().flat_map(|price| price.to_le_bytes()).collect()
}

#[test]
fn a_book_is_priced_as_the_formula_says() {
    let service = start(Limits::default(), Injection::default());
    // An example of Hull's textbook: a call is worth 4.76 and a put 0.81.
    let target = "/price?strike=40&rate=0.1&volatility=0.2&years=0.5";
    let (status, text) = service.ask(target, &bytes(&[42.0; 1000]));
    assert_eq!(status, 200, "{text}");
    let quote: Quote = serde_json::from_str(&text).unwrap();
    let near = |got: f32, due: f32| assert!((got / 1000.0 - due).abs() < 2e-3, "{quote:?}");
    assert_eq!(quote.options, 1000);
    near(quote.calls, 4.7594);
    near(quote.puts, 0.8086);
    near(quote.delta, 0.7791);
    near(quote.vega, 8.8134);
    assert_eq!(service.ask("/health", &[]).1, "ok\n");
    assert_eq!(service.counter("requests_answered_total"), 1);
    service.end();
}

#[test]
fn a_callers_mistakes_are_told_and_harm_no_other_request() {
    let service = start(Limits::default(), Injection::default());
    for (target, body, says) in [
        ("/price", vec![], "0 bytes"),
        ("/price", vec![1, 2, 3], "3 bytes"),
        ("/price", bytes(&[100.0, -1.0]), "a price has to be positive"),
        ("/price", bytes(&[f32::NAN; 5000]), "a price has to be positive"),
        ("/price?strike=-5", bytes(&[100.0]), "strike is -5"),
        ("/price?years=NaN", bytes(&[100.0]), "years is NaN"),
        ("/price?rate=inf", bytes(&[100.0]), "rate is inf"),
        ("/price?strike=much", bytes(&[100.0]), "strike"),
    ] {
        let (status, text) = service.ask(target, &body);
        assert!(status == 400 && text.contains(says), "{target}: {status} {text}");
    }
    assert_eq!(service.ask("/nowhere", &[]).0, 404);
    assert_eq!(service.ask("/price", &bytes(&[100.0; 64])).0, 200);
    assert_eq!(service.counter("requests_in_progress"), 0);
    service.end();
}

#[test]
fn what_is_too_much_or_takes_too_long_is_turned_away_and_the_service_goes_on() {
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
    let limits = Limits { concurrent: 1, timeout: Duration::from_millis(300) };
    let service = start(limits, injection);
    let body = bytes(&[100.0; 10_000]);
    // The device holds the first request. A second one finds no room, and the first one times out.
    let first = service.send("/price", &body);
    service.until("requests_in_progress", 1);
    let (status, text) = service.ask("/price", &body);
    assert!(status == 503 && text.contains("retry-after"), "{status} {text}");
    assert_eq!(answer(first).0, 504);
    hold.release();
    service.until("requests_in_progress", 0);
    assert_eq!((service.counter("requests_late_total"), service.counter("requests_turned_away_total")), (1, 1));
    assert_eq!(service.ask("/price", &bytes(&[100.0])).0, 200);
    service.end();
}

#[test]
fn a_caller_that_hangs_up_leaves_nothing_behind_and_the_end_waits_for_those_that_wait() {
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
    let limits = Limits { timeout: Duration::from_secs(50), ..Limits::default() };
    let mut service = start(limits, injection);
    let body = bytes(&[100.0; 10_000]);
    let waits = service.send("/price", &body);
    service.until("requests_in_progress", 1);
    let hung_up = service.send("/price", &body);
    service.until("requests_in_progress", 2);
    drop(hung_up);
    service.until("requests_in_progress", 1);
    // The service was told to end. It still answers the requests that it has accepted, and then shuts the runtime down.
    drop(service.stop.take());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!service.ended.is_finished());
    hold.release();
    assert_eq!(answer(waits).0, 200);
    let address = service.address;
    service.end();
    assert!(TcpStream::connect(address).is_err());
}
