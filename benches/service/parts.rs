//! The parts of the bench. Each prints one figure.

use super::load::{self, Ended, Measured, Peak};
use super::peer;
use super::pricing::{self, Quote, Terms};
use super::shared::resident_bytes;
use super::{http, server};
use ndarray::Array1;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemill::{Error, ErrorKind, Runtime};
use tokio::sync::Semaphore;

/// Options of a request's book.
const OPTIONS: usize = 10_000;
/// The number of different books, so that answers differ.
const BOOKS: usize = 8;
/// How long a request may take under overload.
const LIMIT: Duration = Duration::from_millis(250);
/// The number of concurrent requests that make a full load.
const FULL: usize = 256;

struct Book {
    prices: Vec<f32>,
    terms: Terms,
    /// The answer that ndarray computes.
    quote: Quote,
}

impl Book {
    fn new(number: usize) -> Book {
        let price = |i: usize| 60.0 + ((i * 7 + number * 13) % 1000) as f32 * 0.08;
        let prices: Vec<f32> = (0..OPTIONS).map(price).collect();
        let terms = Terms { strike: 95.0 + number as f32, ..Terms::default() };
        let quote = peer::price(&Array1::from_vec(prices.clone()), terms).expect("all prices are positive");
        Book { prices, terms, quote }
    }

    fn is(&self, quote: &Quote) -> bool {
        let near = |a: f32, b: f32| (a - b).abs() <= 1e-3 * b.abs().max(1.0);
        let (a, b) = (quote, &self.quote);
        a.options == b.options
            && near(a.calls, b.calls)
            && near(a.puts, b.puts)
            && near(a.delta, b.delta)
            && near(a.vega, b.vega)
    }
}

fn ended(book: &Book, quote: Result<Quote, Error>) -> Ended {
    match quote {
        Ok(quote) if book.is(&quote) => Ended::Answered,
        _ => Ended::Wrong,
    }
}

/// A runtime and the books that its requests price.
pub struct Bench {
    runtime: Arc<Runtime>,
    books: Arc<Vec<Book>>,
    time: Duration,
}

impl Bench {
    pub async fn new(runtime: Runtime, time: Duration) -> Result<Bench, Error> {
        let bench = Bench { runtime: Arc::new(runtime), books: Arc::new((0..BOOKS).map(Book::new).collect()), time };
        for book in bench.books.iter() {
            let quote = pricing::price(&bench.runtime, book.prices.clone(), book.terms).await?;
            if !book.is(&quote) {
                let message = format!("wrong: {quote:?} beside ndarray's {:?}", book.quote);
                return Err(Error::new(ErrorKind::Internal, message));
            }
        }
        println!("a request: {OPTIONS} prices (f32) up, some fifty ops, four sums down; a session each");
        Ok(bench)
    }

    pub async fn end(self) -> Result<(), Error> {
        self.runtime.shutdown().await
    }

    fn request(&self) -> impl Fn(u64) -> std::pin::Pin<Box<dyn Future<Output = Ended> + Send>> + Send + Sync + 'static {
        let (runtime, books) = (self.runtime.clone(), self.books.clone());
        move |n| {
            let (runtime, books) = (runtime.clone(), books.clone());
            Box::pin(async move {
                let book = &books[n as usize % BOOKS];
                ended(book, pricing::price(&runtime, book.prices.clone(), book.terms).await)
            })
        }
    }

    fn on_ndarray(
        &self,
    ) -> impl Fn(u64) -> std::pin::Pin<Box<dyn Future<Output = Ended> + Send>> + Send + Sync + 'static {
        let books = self.books.clone();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let places = Arc::new(Semaphore::new(cores));
        move |n| {
            let (books, places) = (books.clone(), places.clone());
            Box::pin(async move {
                let Ok(_place) = places.acquire_owned().await else { return Ended::Wrong };
                let priced = tokio::task::spawn_blocking(move || {
                    let book = &books[n as usize % BOOKS];
                    let quote = peer::price(&Array1::from_vec(book.prices.clone()), book.terms);
                    if quote.is_ok_and(|quote| book.is(&quote)) { Ended::Answered } else { Ended::Wrong }
                });
                priced.await.unwrap_or(Ended::Wrong)
            })
        }
    }

    async fn full(&self, time: Duration) -> Measured {
        load::closed(FULL, time, self.request()).await
    }

    pub async fn closed(&self) -> Result<(), Error> {
        println!("\nclosed loop       answers/s   p50 ms   p99 ms   ndarray/s   p50 ms   p99 ms    ratio");
        for callers in [1, 16, 256] {
            // The two programs alternate, so that slow changes of the machine's speed affect both.
            let (mut own, mut peer) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                own.push(load::closed(callers, self.time / 2, self.request()).await);
                peer.push(load::closed(callers, self.time / 2, self.on_ndarray()).await);
            }
            let (own, peer) = (joined(own)?, joined(peer)?);
            println!(
                "{callers:4} at once    {:12.0} {:8.2} {:8.2} {:11.0} {:8.2} {:8.2} {:8.2}",
                own.throughput(),
                own.latency_ms(0.5),
                own.latency_ms(0.99),
                peer.throughput(),
                peer.latency_ms(0.5),
                peer.latency_ms(0.99),
                own.throughput() / peer.throughput()
            );
        }
        Ok(())
    }

    pub async fn open(&self) -> Result<(), Error> {
        let full = self.full(self.time).await.throughput();
        println!("\nopen loop         asked/s  answers/s   p50 ms   p99 ms");
        for share in [0.5, 0.8] {
            let limit = Duration::from_secs(5);
            let measured = checked(load::open(full * share, self.time, limit, self.request()).await)?;
            println!(
                "{:3.0} % of closed {:9.0} {:10.0} {:8.2} {:8.2}",
                share * 100.0,
                full * share,
                measured.throughput(),
                measured.latency_ms(0.5),
                measured.latency_ms(0.99)
            );
        }
        Ok(())
    }

    /// Measures a mix of requests: a tenth is dropped while in progress, and a twentieth has a price of zero.
    pub async fn mixed(&self) -> Result<(), Error> {
        let (runtime, books) = (self.runtime.clone(), self.books.clone());
        let request = move |n: u64| {
            let (runtime, books) = (runtime.clone(), books.clone());
            Box::pin(async move {
                let book = &books[n as usize % BOOKS];
                let mut prices = book.prices.clone();
                match n % 20 {
                    0 | 10 => {
                        let priced = pricing::price(&runtime, prices, book.terms);
                        let limit = Duration::from_micros(n * 37 % 400);
                        match tokio::time::timeout(limit, priced).await {
                            Ok(quote) => ended(book, quote),
                            Err(_) => Ended::Dropped,
                        }
                    }
                    5 => {
                        prices[n as usize % OPTIONS] = 0.0;
                        match pricing::price(&runtime, prices, book.terms).await {
                            Err(error) if error.kind() == ErrorKind::Domain => Ended::Refused,
                            _ => Ended::Wrong,
                        }
                    }
                    _ => ended(book, pricing::price(&runtime, prices, book.terms).await),
                }
            })
        };
        println!("\n10 % cancelled, 5 % faults   answers/s   p99 ms   cancelled   refused   wrong");
        for callers in [16, 256] {
            let measured = checked(load::closed(callers, self.time, request.clone()).await)?;
            println!(
                "{callers:4} at once              {:12.0} {:8.2} {:11} {:9} {:7}",
                measured.throughput(),
                measured.latency_ms(0.99),
                measured.dropped,
                measured.refused,
                measured.wrong
            );
        }
        Ok(())
    }

    pub async fn overload(&self) -> Result<(), Error> {
        let idle = self.lone(5).await?;
        let before = resident_bytes();
        let watch = Peak::watch();
        let full = checked(self.full(self.time).await)?.throughput();
        let at_full = watch.end();
        let watch = Peak::watch();
        // Requests that the runtime refuses count as not answered, as late ones do.
        let measured = load::open(full * 2.0, self.time.mul_f64(2.0), LIMIT, self.request()).await;
        let at_overload = watch.end();
        let after = self.lone(1).await?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!("\noverload: {:.0} requests/s, twice the closed loop's, each dropped after 250 ms", full * 2.0);
        println!("answered in time       {:10.0} /s", measured.throughput());
        println!("  of the closed loop's {:10.2}      (goal 0.90)", measured.throughput() / full);
        println!("  in the worst second  {:10.2}", measured.worst_second() / full);
        println!("  p99                  {:10.2} ms", measured.latency_ms(0.99));
        println!("given up               {:10}", measured.dropped);
        println!("turned away or wrong   {:10}", measured.wrong + measured.refused);
        println!("memory at full load    {:10.1} MiB  ({:.1} before it)", mib(at_full), mib(before));
        println!("memory at overload     {:10.1} MiB  ({:.2} of full load's; goal 3)", mib(at_overload), {
            at_overload as f64 / at_full.max(1) as f64
        });
        println!("a lone request, idle   {:10.2} ms", idle);
        println!("  a second later       {:10.2} ms   ({:.2} of idle; goal 2)", after, after / idle);
        Ok(())
    }

    /// The median latency of this many requests, each after a second of rest, in milliseconds.
    async fn lone(&self, requests: u64) -> Result<f64, Error> {
        let request = self.request();
        let mut measured = Measured::default();
        for n in 0..requests {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let asked = Instant::now();
            if request(n).await != Ended::Answered {
                return Err(Error::new(ErrorKind::Internal, "a lone request got no right answer"));
            }
            measured.answers.push((Duration::ZERO, asked.elapsed()));
        }
        Ok(measured.latency_ms(0.5))
    }

    /// Measures a session of weight 8 that always has four jobs in progress, beside 16 callers that open a session for
    /// each request.
    pub async fn weight(&self) -> Result<(), Error> {
        const WEIGHT: u32 = 8;
        const OTHERS: usize = 16;
        let session = self.runtime.session("steady").weight(WEIGHT).open();
        let books = self.books.clone();
        let steady = move |n: u64| {
            let (session, books) = (session.clone(), books.clone());
            Box::pin(async move {
                let book = &books[n as usize % BOOKS];
                ended(book, pricing::price_in(&session, book.prices.clone(), book.terms).await)
            })
        };
        let time = self.time.mul_f64(2.0);
        let (steady, others) =
            futures::join!(load::closed(4, time, steady), load::closed(OTHERS, time, self.request()));
        let (steady, others) = (checked(steady)?, checked(others)?);
        let all = (steady.answers.len() + others.answers.len()).max(1) as f64;
        let share = steady.answers.len() as f64 / all;
        let due = f64::from(WEIGHT) / (f64::from(WEIGHT) + OTHERS as f64);
        println!("\na session of weight 8 with 4 jobs outstanding, beside 16 tasks that open a session a request");
        println!("jobs                   {:10}      beside {}", steady.answers.len(), others.answers.len());
        println!("share                  {share:10.3}      of w / sum {due:.3}: {:.2} (goal 0.80)", share / due);
        println!(
            "p99                    {:10.2} ms   beside {:.2} ms: {:.2} (goal 2)",
            steady.latency_ms(0.99),
            others.latency_ms(0.99),
            steady.latency_ms(0.99) / others.latency_ms(0.99)
        );
        Ok(())
    }

    /// Measures the service with its routes over the loopback, and ends the runtime.
    pub async fn http(self) -> Result<(), Error> {
        let Ok(runtime) = Arc::try_unwrap(self.runtime) else {
            return Err(Error::new(ErrorKind::Internal, "a part of the bench still holds the runtime"));
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(server::serve(runtime, server::Limits::default(), listener, async {
            let _ = stopped.await;
        }));
        println!("\nhttp, keep-alive  answers/s   p50 ms   p99 ms");
        for callers in [1, 16] {
            let connections = http::Connections::open(address, callers).await?;
            let books = self.books.clone();
            let measured = load::closed(callers, self.time, move |n| {
                let (connections, books) = (connections.clone(), books.clone());
                async move {
                    let book = &books[n as usize % BOOKS];
                    match connections.post(&book.prices, book.terms).await {
                        Ok(quote) if book.is(&quote) => Ended::Answered,
                        _ => Ended::Wrong,
                    }
                }
            })
            .await;
            let measured = checked(measured)?;
            println!(
                "{callers:4} at once     {:10.0} {:8.2} {:8.2}",
                measured.throughput(),
                measured.latency_ms(0.5),
                measured.latency_ms(0.99)
            );
        }
        drop(stop);
        served.await.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?
    }
}

fn joined(parts: Vec<Measured>) -> Result<Measured, Error> {
    let mut all = Measured::default();
    for part in parts {
        let part = checked(part)?;
        all.took += part.took;
        all.answers.extend(part.answers);
    }
    Ok(all)
}

/// Ends the bench if an answer was wrong, so that no wrong computation is reported as fast.
fn checked(measured: Measured) -> Result<Measured, Error> {
    match measured.wrong {
        0 => Ok(measured),
        wrong => Err(Error::new(ErrorKind::Internal, format!("{wrong} requests got a wrong answer or error"))),
    }
}
