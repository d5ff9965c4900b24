//! A pricing service: `cargo run --release --example service -- --port 8080`.
//!
//! ```text
//! # 1,000 prices of 100 as little-endian f32, and the value of options on them
//! python3 -c "import sys,array; sys.stdout.buffer.write(array.array('f',[100.0]*1000).tobytes())" > prices
//! curl --data-binary @prices 'http://127.0.0.1:8080/price?strike=105&volatility=0.25'
//! curl http://127.0.0.1:8080/stats
//! ```
//!
//! Every request opens a session of its own, so that its cost, its faults and its end do not concern other requests.
//! The service refuses requests beyond its limit (503 with `Retry-After`), cancels requests that take too long (504),
//! tells callers their mistakes (400), and on Ctrl-C or SIGTERM answers the requests that it has accepted before it
//! ends. `cargo bench --bench service` loads it.

mod pricing;
mod server;

use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;
use tidemill::{Error, Runtime};

/// Price books of options over HTTP
#[derive(Parser)]
struct Arguments {
    /// The port of 127.0.0.1 to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Milliseconds that a request may take
    #[arg(long, default_value_t = 1000)]
    timeout_ms: u64,
    /// Requests that are worked on at a time
    #[arg(long, default_value_t = 512)]
    concurrent: usize,
    /// auto, host, gpu or gpu:N
    #[arg(long, default_value = "auto")]
    device: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Error> {
    let runtime = Runtime::builder().device(&arguments.device).drain(Duration::from_secs(5)).start().await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let limits = server::Limits {
        concurrent: arguments.concurrent.max(1),
        timeout: Duration::from_millis(arguments.timeout_ms),
    };
    server::serve(runtime, limits, listener, stopped()).await
}

/// Waits until the process is asked to end.
async fn stopped() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
