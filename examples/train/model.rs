//! Two classifiers of digits, and two optimisers.

use std::path::Path;
use tidemill::{Array, DType, Error, ErrorKind, Result, Session};
use tidemill_files::{Tensor, safetensors};

/// Pixels of a digit.
const PIXELS: usize = 64;
/// The classes.
const CLASSES: usize = 10;

/// Digits: a column of pixels from 0 to 1 for each digit, and the labels.
pub struct Digits {
    images: Array,
    labels: Array,
    count: usize,
}

/// A classifier: its parameters, and the function that computes scores from parameters and images.
pub struct Model {
    parameters: Vec<Array>,
    /// The parameters' names in a file. Biases are vectors there.
    names: &'static [&'static str],
    scores: fn(&[Array], &Array) -> Array,
}

/// An optimiser: how parameters change by their gradients.
pub enum Optimiser {
    /// Stochastic gradient descent.
    Sgd {
        /// The length of a step.
        rate: f64,
    },
    /// Adam: steps by running means of the gradients and of their squares.
    Adam {
        /// The length of a step.
        rate: f64,
        /// The running means of the gradients, and of their squares, of each parameter.
        means: Vec<(Array, Array)>,
        /// Steps so far.
        steps: i32,
    },
}

impl Digits {
    /// Reads digits: the first `seen` of them, and the others.
    ///
    /// # Errors
    /// `ErrorKind::Argument` for a line that is not 64 pixels and a label; the error of reading the file otherwise.
    pub fn read(s: &Session, path: &Path, seen: usize) -> Result<(Digits, Digits)> {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for line in std::fs::read_to_string(path)?.lines() {
            let numbers: Option<Vec<u8>> = line.split(',').map(|number| number.parse().ok()).collect();
            let Some([image @ .., label]) = numbers.as_deref().filter(|numbers| numbers.len() == PIXELS + 1) else {
                return Err(Error::new(ErrorKind::Argument, format!("not {PIXELS} pixels and a digit: {line}")));
            };
            pixels.extend(image.iter().map(|&pixel| f32::from(pixel) / 16.0));
            labels.push(u32::from(*label));
        }
        let part = |from: usize, to: usize| -> Result<Digits> {
            let count = to - from;
            let images = s.from_slice(&pixels[from * PIXELS..to * PIXELS], [PIXELS, count])?;
            Ok(Digits { images, labels: s.from_slice(&labels[from..to], [1, count])?, count })
        };
        let seen = seen.min(labels.len());
        Ok((part(0, seen)?, part(seen, labels.len())?))
    }
}

impl Model {
    /// The scores of a digit are weighted sums of its pixels.
    pub fn logistic(s: &Session) -> Model {
        let parameters = vec![s.zeros::<f32>([CLASSES, PIXELS]), s.zeros::<f32>([CLASSES, 1])];
        Model { parameters, names: &["weights", "biases"], scores: |p, images| p[0].matmul(images) + &p[1] }
    }

    /// A network with one hidden layer: `hidden` values, each the `tanh` of a weighted sum of the pixels, feed the
    /// scores.
    pub fn network(s: &Session, hidden: usize) -> Model {
        let weights = |to: usize, from: usize| s.randn::<f32>([to, from]) / (from as f64).sqrt();
        let biases = |to: usize| s.zeros::<f32>([to, 1]);
        let parameters = vec![weights(hidden, PIXELS), biases(hidden), weights(CLASSES, hidden), biases(CLASSES)];
        let names = &["hidden.weights", "hidden.biases", "scores.weights", "scores.biases"];
        let scores = |p: &[Array], images: &Array| p[2].matmul(&(p[0].matmul(images) + &p[1]).tanh()) + &p[3];
        Model { parameters, names, scores }
    }

    /// Writes the parameters to a `safetensors` file, which other programs read, too.
    ///
    /// # Errors
    /// What happened to their computation; the error of writing the file.
    pub async fn save(&self, path: &Path) -> Result<()> {
        let tensors = self.names.iter().zip(&self.parameters).map(|(name, parameter)| {
            let is_vector = name.ends_with("biases");
            (*name, if is_vector { Tensor::vector(parameter) } else { Tensor::from(parameter) })
        });
        safetensors::write(path, tensors).await
    }

    /// Takes the parameters of a file that `save` wrote for such a model.
    ///
    /// # Errors
    /// The error of reading the file; `ErrorKind::Argument` for a parameter that is missing there, `ErrorKind::Shape`
    /// and `ErrorKind::DType` for one of another model. The model is as before then.
    pub async fn load(&mut self, s: &Session, path: &Path) -> Result<()> {
        let file = safetensors::open(path).await?;
        let mut loaded = Vec::new();
        for (name, own) in self.names.iter().zip(&self.parameters) {
            let parameter = file.read(s, name).await?.real()?;
            let (shape, dtype) = (parameter.shape()?, parameter.dtype()?);
            if shape != own.shape()? || dtype != DType::F32 {
                let kind = if dtype == DType::F32 { ErrorKind::Shape } else { ErrorKind::DType };
                let own = own.shape()?;
                let what = format!("{}: {name} is {shape} {dtype}, and the model's is {own} f32", path.display());
                return Err(Error::new(kind, what));
            }
            loaded.push(parameter);
        }
        self.parameters = loaded;
        Ok(())
    }

    /// Trains once on all digits in a random order and returns the mean loss of the batches, which is not computed yet.
    ///
    /// # Errors
    /// The error of recording the loss or its gradients (see `Session::value_and_gradient`).
    pub fn learn(&mut self, s: &Session, optimiser: &mut Optimiser, digits: &Digits, batch: usize) -> Result<Array> {
        let order = s.rand::<f32>([digits.count, 1]).argsort(0);
        let mut total = s.zeros::<f32>([1, 1]);
        let batch = batch.clamp(1, digits.count.max(1));
        let batches = digits.count.div_ceil(batch);
        for first in (0..batches).map(|n| n * batch) {
            let index = order.slice((first..digits.count.min(first + batch), 0));
            let (images, labels) = (digits.images.take_dim(1, &index), digits.labels.take_dim(1, &index));
            let scores = self.scores;
            let (loss, gradients) =
                s.value_and_gradient(&self.parameters, |p| Ok(loss(&scores(p, &images), &labels)))?;
            optimiser.step(s, &mut self.parameters, gradients)?;
            total += loss;
        }
        Ok(total / batches)
    }

    /// Records the accuracy of the model on `digits`: an array of one element, the number of digits whose label the
    /// model predicts divided by the number of all digits.
    ///
    /// # Errors
    /// The fault that the arrays of `digits` or the parameters carry.
    pub fn accuracy(&self, digits: &Digits) -> Result<Array> {
        let scores = (self.scores)(&self.parameters, &digits.images);
        scores.argmax(0).eq_to(&digits.labels).mean(..).checked()
    }
}

/// The mean negative logarithm of the probability of the right class, from the scores of each.
fn loss(scores: &Array, labels: &Array) -> Array {
    (scores.logsumexp(0) - scores.take_along(0, labels)).mean(..)
}

impl Optimiser {
    /// Stochastic gradient descent.
    pub fn sgd(rate: f64) -> Optimiser {
        Optimiser::Sgd { rate }
    }

    /// Adam.
    pub fn adam(rate: f64) -> Optimiser {
        Optimiser::Adam { rate, means: Vec::new(), steps: 0 }
    }

    fn step(&mut self, s: &Session, parameters: &mut [Array], gradients: Vec<Array>) -> Result<()> {
        match self {
            Optimiser::Sgd { rate } => {
                for (parameter, gradient) in parameters.iter_mut().zip(gradients) {
                    *parameter -= gradient * *rate;
                }
            }
            Optimiser::Adam { rate, means, steps } => {
                const FIRST: f64 = 0.9;
                const SECOND: f64 = 0.999;
                if means.is_empty() {
                    for parameter in &*parameters {
                        let zeros = s.zeros::<f32>(parameter.shape()?);
                        means.push((zeros.clone(), zeros));
                    }
                }
                *steps += 1;
                // Both means begin at 0, and are too small at first.
                let (first, second) = (1.0 - FIRST.powi(*steps), 1.0 - SECOND.powi(*steps));
                for ((parameter, gradient), (mean, square)) in parameters.iter_mut().zip(gradients).zip(means) {
                    *mean = &*mean * FIRST + &gradient * (1.0 - FIRST);
                    *square = &*square * SECOND + gradient.square() * (1.0 - SECOND);
                    *parameter -= &*mean * (*rate / first) / ((&*square / second).sqrt() + 1e-8);
                }
            }
        }
        Ok(())
    }
}
