//! Learns to read handwritten digits: `cargo run --release --example train -- --epochs 20`.
//!
//! Two models on the same data: a logistic regression with stochastic gradient descent, and a network of one hidden
//! layer with Adam. A step is array code: a batch is taken by index, the loss is recorded, its gradients are recorded
//! after it, and the parameters are overwritten. Nothing is awaited within an epoch. In the end, the weights are saved
//! and the losses are drawn. `--load` begins with saved weights.

mod curve;
mod model;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Digits, Model, Optimiser};
use std::path::{Path, PathBuf};
use tidemill::{Result, Runtime};

/// Learn to read handwritten digits
#[derive(Parser)]
struct Arguments {
    /// Passes through the data
    #[arg(long, default_value_t = 20)]
    epochs: usize,
    /// Digits in a batch
    #[arg(long, default_value_t = 50)]
    batch: usize,
    /// Folder for the weights (logistic.safetensors, network.safetensors) and the losses (loss.png); made if it is
    /// missing
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Folder of weights to begin with, as --save wrote them
    #[arg(long, value_name = "DIR")]
    load: Option<PathBuf>,
    /// auto, host, gpu or gpu:N
    #[arg(long, default_value = "auto")]
    device: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = Runtime::builder().device(arguments.device.as_str()).start().await?;
    let s = runtime.session("train").seed(1).open();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv");
    let (seen, unseen) = Digits::read(&s, &path, 1500)?;
    let models = [
        ("logistic", "logistic regression, SGD", Model::logistic(&s), Optimiser::sgd(0.2)),
        ("network", "network of 64-32-10, Adam", Model::network(&s, 32), Optimiser::adam(0.005)),
    ];
    let mut curves = Vec::new();
    for (file, name, mut model, mut optimiser) in models {
        println!("{name}");
        if let Some(folder) = &arguments.load {
            model.load(&s, &folder.join(file).with_extension("safetensors")).await?;
        }
        let bar = progress_bar(arguments.epochs);
        let mut losses = Vec::new();
        for epoch in 1..=arguments.epochs {
            let loss = model.learn(&s, &mut optimiser, &seen, arguments.batch)?;
            let (loss, right) = tokio::try_join!(loss.item::<f32>(), model.accuracy(&unseen)?.item::<f64>())?;
            losses.push(loss);
            let line = format!("epoch {epoch:>3}  loss {loss:.4}  unseen digits right {:5.1} %", right * 100.0);
            bar.suspend(|| println!("{line}"));
            bar.inc(1);
        }
        bar.finish_and_clear();
        curves.push((name, losses));
        if let Some(folder) = &arguments.save {
            std::fs::create_dir_all(folder)?;
            model.save(&folder.join(file).with_extension("safetensors")).await?;
        }
    }
    if let Some(folder) = &arguments.save {
        curve::draw(&folder.join("loss.png"), &curves)?;
    }
    runtime.shutdown().await
}

fn progress_bar(epochs: usize) -> ProgressBar {
    let bar = ProgressBar::new(epochs as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} epochs, {eta} left") {
        bar.set_style(style);
    }
    bar
}
