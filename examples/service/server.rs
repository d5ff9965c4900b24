//! The service: its routes, limits, time-outs and shutdown.
//!
//! Must hold: every request is answered: 200 with a quote, 400 for a caller's mistake, 503 with `Retry-After` if there
//! are too many requests, 504 if the answer takes too long. If a request is cancelled, by its time-out or because the
//! caller hung up, its session is dropped, and with it the work that has not begun.

use super::pricing::{self, Terms};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidemill::{Error, ErrorKind, Runtime};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The most bytes of a request: a million prices.
const BODY_BYTES_MAX: usize = 4 << 20;

/// The limits of the service.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most requests in progress. One more is refused at once.
    pub concurrent: usize,
    /// How long a request may take.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { concurrent: 512, timeout: Duration::from_millis(1000) }
    }
}

/// Counters of requests by their outcome.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    wrong: AtomicU64,
    turned_away: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
}

struct Service {
    runtime: Runtime,
    limits: Limits,
    room: Semaphore,
    counts: Counts,
}

/// The body of an answer without a quote.
#[derive(Serialize)]
struct Refusal {
    error: String,
}

fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    let told = axum::Json(Refusal { error: error.into() });
    match status {
        StatusCode::SERVICE_UNAVAILABLE => (status, [(header::RETRY_AFTER, "1")], told).into_response(),
        _ => (status, told).into_response(),
    }
}

/// The status that tells a caller whether its request, the load or the service is at fault.
fn status(error: &Error) -> StatusCode {
    match error.kind() {
        ErrorKind::Domain | ErrorKind::Shape | ErrorKind::TooLarge => StatusCode::BAD_REQUEST,
        ErrorKind::Overloaded
        | ErrorKind::OutOfMemory
        | ErrorKind::DeviceLost
        | ErrorKind::Shutdown
        | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// `POST /price?strike=100&rate=0.03&volatility=0.2&years=1`, with prices as little-endian f32 in the body.
async fn price(State(service): State<Arc<Service>>, Query(terms): Query<Terms>, body: Bytes) -> Response {
    let counts = &service.counts;
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let Ok(_place) = service.room.try_acquire() else {
        count(&counts.turned_away);
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once");
    };
    let prices = match terms.check().and_then(|()| prices(&body)) {
        Ok(prices) => prices,
        Err(words) => {
            count(&counts.wrong);
            return refuse(StatusCode::BAD_REQUEST, words);
        }
    };
    match tokio::time::timeout(service.limits.timeout, pricing::price(&service.runtime, prices, terms)).await {
        Ok(Ok(quote)) => {
            count(&counts.answered);
            axum::Json(quote).into_response()
        }
        Ok(Err(error)) => {
            let status = status(&error);
            count(if status == StatusCode::BAD_REQUEST { &counts.wrong } else { &counts.failed });
            refuse(status, error.message())
        }
        Err(_) => {
            count(&counts.late);
            refuse(StatusCode::GATEWAY_TIMEOUT, "the answer took too long")
        }
    }
}

fn prices(body: &[u8]) -> Result<Vec<f32>, String> {
    if body.is_empty() || !body.len().is_multiple_of(4) {
        return Err(format!("the body has {} bytes, and has to hold prices of 4 bytes each", body.len()));
    }
    Ok(body.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// `GET /stats`: the counters, one on each line, in the form that scrapers of metrics read.
async fn stats(State(service): State<Arc<Service>>) -> String {
    let Counts { answered, wrong, turned_away, late, failed } = &service.counts;
    let runtime = service.runtime.stats();
    let busy = service.limits.concurrent - service.room.available_permits();
    let mut lines = format!("requests_in_progress {busy}\n");
    for (name, value) in [
        ("requests_answered_total", answered.load(Ordering::Relaxed)),
        ("requests_wrong_total", wrong.load(Ordering::Relaxed)),
        ("requests_turned_away_total", turned_away.load(Ordering::Relaxed)),
        ("requests_late_total", late.load(Ordering::Relaxed)),
        ("requests_failed_total", failed.load(Ordering::Relaxed)),
        ("tidemill_ops_recorded_total", runtime.ops_recorded),
        ("tidemill_bytes_resident", runtime.bytes_resident_now),
    ] {
        lines.push_str(&format!("{name} {value}\n"));
    }
    lines
}

/// Serves until `stop` resolves, lets the requests in progress end, and shuts the runtime down.
///
/// # Errors
/// If accepting connections or shutting the runtime down fails.
pub async fn serve(
    runtime: Runtime,
    limits: Limits,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let room = Semaphore::new(limits.concurrent);
    let service = Arc::new(Service { runtime, limits, room, counts: Counts::default() });
    let routes = Router::new()
        .route("/price", post(price))
        .route("/stats", get(stats))
        .route("/health", get(async || "ok\n"))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(service.clone());
    axum::serve(listener, routes).with_graceful_shutdown(stop).await?;
    service.runtime.shutdown().await
}
