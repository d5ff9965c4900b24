//! Many small programs at once: `cargo run --release --example concurrent -- --trace out.json`.

#[path = "program.rs"]
mod concurrent;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;

/// Run a thousand small array programs at once and check their results
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: concurrent::Options,
}

fn main() -> std::process::ExitCode {
    let Arguments { options } = Arguments::parse();
    shared::conclude(concurrent::run(&options))
}
