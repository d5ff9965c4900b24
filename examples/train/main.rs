//! Learns to read handwritten digits: `cargo run --release --example train -- --epochs 20`.
//!
//! Two models on the same data: a logistic regression with stochastic gradient descent, and a network of one hidden
//! layer with Adam. A step is array code: a batch is taken by index, the loss is recorded, its gradients are recorded
//! after it, and the parameters are overwritten. Nothing is awaited within an epoch.

mod model;

use clap::Parser;
use model::{Digits, Model, Optimiser};
use std::path::Path;
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
        ("logistic regression, SGD", Model::logistic(&s), Optimiser::sgd(0.2)),
        ("network of 64-32-10, Adam", Model::network(&s, 32), Optimiser::adam(0.005)),
    ];
    for (name, mut model, mut optimiser) in models {
        println!("{name}");
        for epoch in 1..=arguments.epochs {
            let loss = model.learn(&s, &mut optimiser, &seen, arguments.batch)?;
            let (loss, right) = tokio::try_join!(loss.item::<f32>(), model.accuracy(&unseen)?.item::<f64>())?;
            let bar = "#".repeat((f64::from(loss) * 20.0).min(60.0) as usize);
            println!("epoch {epoch:>3}  loss {loss:.4}  unseen digits right {:5.1} %  {bar}", right * 100.0);
        }
    }
    runtime.shutdown().await
}
