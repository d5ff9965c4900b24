//! Develops pictures on a device: `cargo run --release --example photo -- examples/data/*.png -o out`.

#[path = "program.rs"]
mod photo;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;

/// Develop pictures: linear light, normalisation, tone, blur, sharpening
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: photo::Options,
}

fn main() -> std::process::ExitCode {
    let Arguments { options } = Arguments::parse();
    shared::conclude(photo::run(&options))
}
