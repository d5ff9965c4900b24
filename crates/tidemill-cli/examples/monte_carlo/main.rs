//! Prices an option by simulation: `cargo run --release --example monte_carlo`.

#[path = "program.rs"]
mod monte_carlo;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;

/// Price a call option by simulating its underlying
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: monte_carlo::Options,
}

fn main() -> std::process::ExitCode {
    let Arguments { options } = Arguments::parse();
    shared::conclude(monte_carlo::run(&options))
}
