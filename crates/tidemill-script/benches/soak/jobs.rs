//! The jobs of a soak. Each job is drawn at random, runs on a session of its own or on a long-lived one, and reports
//! wrong results.

use super::pricing::{self, Terms};
use super::programs::{Dice, Program, Twist, decode, run};
use super::scripts::{self, Case, Ends};
use super::tally::{Kind, Tally};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemill::testing::Injection;
use tidemill::{ErrorKind, Runtime, Session};
use tidemill_script::Script;
use tokio::time::timeout;

/// A job that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(60);
/// The number of structures of random programs on a GPU, which compiles pipelines for each.
const STRUCTURES_ON_GPU: u64 = 12;
/// The number of structures of random programs on the host.
const STRUCTURES: u64 = 10_000;

/// The intended end of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ends,
    Fails,
    IsDropped,
}

pub struct Jobs {
    runtime: Arc<Runtime>,
    tally: Arc<Tally>,
    structures: u64,
    /// Sessions of several weights that live as long as the soak.
    steady: Vec<Session>,
}

impl Jobs {
    pub fn new(runtime: Arc<Runtime>, tally: Arc<Tally>, has_gpu: bool) -> Jobs {
        let steady = [1, 2, 8].map(|weight| runtime.session("steady").weight(weight).seed(1).open()).into();
        Jobs { runtime, tally, structures: if has_gpu { STRUCTURES_ON_GPU } else { STRUCTURES }, steady }
    }

    /// Returns a session for a job. One job in eight shares a session.
    fn session(&self, dice: &mut Dice) -> Session {
        if dice.one_in(8) {
            return self.steady[dice.below(self.steady.len())].clone();
        }
        self.tally.session();
        self.runtime.session("job").weight(1 + dice.below(3) as u32).seed(dice.next()).open()
    }

    /// Runs one job.
    ///
    /// # Errors
    /// The wrong result or error, with the data that is needed to run the job again.
    pub async fn one(&self, dice: &mut Dice) -> Result<(), String> {
        let fate = match dice.below(10) {
            0 => Fate::Fails,
            1 => Fate::IsDropped,
            _ => Fate::Ends,
        };
        let kind = match dice.below(4) {
            0 | 1 => Kind::Program,
            2 => Kind::Book,
            _ => Kind::Script,
        };
        let asked = Instant::now();
        let drawn = dice.0;
        let ended = match kind {
            Kind::Program => timeout(HANG, self.program(fate, dice)).await,
            Kind::Book => timeout(HANG, self.book(fate, dice)).await,
            Kind::Script => timeout(HANG, self.script(fate, dice)).await,
        };
        let name = ["program", "book", "script"][kind as usize];
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(said)) => return Err(format!("a {name} (dice {drawn}): {said}")),
            Err(_) => return Err(format!("a {name} (dice {drawn}) hangs; {}", self.runtime.stats())),
        }
        match fate {
            Fate::Ends => {}
            Fate::Fails => self.tally.fault(),
            Fate::IsDropped => self.tally.cancel(),
        }
        self.tally.finished(kind, (fate == Fate::Ends).then(|| asked.elapsed()));
        Ok(())
    }

    fn random(&self, dice: &mut Dice) -> Program {
        let structure = dice.next() % self.structures;
        let mut steps = Dice::new(structure);
        let steps: Vec<u64> = (0..14).map(|_| steps.next()).collect();
        decode(structure, &steps)
    }

    async fn program(&self, fate: Fate, dice: &mut Dice) -> Result<(), String> {
        let (program, session) = (self.random(dice), self.session(dice));
        let twist = match fate {
            Fate::Ends => Twist::None,
            Fate::Fails => Twist::Poison(dice.below(99)),
            Fate::IsDropped => Twist::Cancel,
        };
        run(&session, &program, twist).await.map_err(|said| format!("{said}\n{program:?}"))
    }

    async fn book(&self, fate: Fate, dice: &mut Dice) -> Result<(), String> {
        let options = 1 + dice.below(20_000);
        let mut prices: Vec<f32> = (0..options).map(|_| 50.0 + dice.below(10_000) as f32 * 0.01).collect();
        let terms = Terms { strike: 80.0 + dice.below(40) as f32, ..Terms::default() };
        let session = self.session(dice);
        match fate {
            Fate::Ends => {
                let due = worth(&prices, terms);
                let quote = pricing::price_in(&session, prices, terms).await.map_err(|e| e.to_string())?;
                let near = |got: f32, due: f64| (f64::from(got) - due).abs() <= 2e-3 * due.abs().max(1.0);
                match near(quote.calls, due[0]) && near(quote.delta, due[1]) {
                    true => Ok(()),
                    false => Err(format!("{quote:?} beside calls of {} and a delta of {}", due[0], due[1])),
                }
            }
            Fate::Fails => {
                prices[dice.below(options)] = -1.0;
                match pricing::price_in(&session, prices, terms).await {
                    Err(error) if error.kind() == ErrorKind::Domain => Ok(()),
                    other => Err(format!("a price below zero gave {other:?}")),
                }
            }
            Fate::IsDropped => {
                let limit = Duration::from_micros(dice.below(2000) as u64);
                match timeout(limit, pricing::price_in(&session, prices, terms)).await {
                    Ok(Err(error)) => Err(error.to_string()),
                    _ => Ok(()),
                }
            }
        }
    }

    async fn script(&self, fate: Fate, dice: &mut Dice) -> Result<(), String> {
        let Case { text, ends } = match fate {
            Fate::Fails => scripts::failing(dice),
            _ => scripts::working(dice),
        };
        // A script has a session to itself, since it marks the arrays that it records.
        self.tally.session();
        let session = self.runtime.session("script").seed(dice.next()).open();
        let script = Script::parse(&text).map_err(|error| format!("{error:?}\n{text}"))?;
        let ran = match fate {
            Fate::IsDropped => {
                let limit = Duration::from_micros(dice.below(2000) as u64);
                match timeout(limit, script.run(&session)).await {
                    Ok(ran) => ran,
                    Err(_) => return Ok(()),
                }
            }
            _ => script.run(&session).await,
        };
        match (ends, ran) {
            (Ends::Prints(due), Ok(workspace)) if workspace.printed() == due => Ok(()),
            (Ends::Prints(due), Ok(workspace)) => {
                Err(format!("printed {:?} in place of {due:?}\n{text}", workspace.printed()))
            }
            (Ends::Fails(says), Err(error)) if error.to_string().contains(says) => Ok(()),
            (Ends::Fails(says), Err(error)) => Err(format!("said {error} in place of '{says}'\n{text}")),
            (Ends::Fails(says), Ok(_)) => Err(format!("did not say '{says}'\n{text}")),
            (Ends::Prints(_), Err(error)) => Err(format!("{error}\n{text}")),
        }
    }

    /// Runs some programs on a runtime that loses its device again and again, from its start to its end.
    ///
    /// # Errors
    /// Those of [`Jobs::one`].
    pub async fn with_losses(&self, device: &str, dice: &mut Dice) -> Result<(), String> {
        let injection = Injection { lose_device_every: Some(3 + dice.below(12) as u64), ..Injection::default() };
        let what = format!("{injection:?}, dice {}", dice.0);
        let builder =
            Runtime::builder().device(device).fold_elements_max(0).batches_in_flight(1 + dice.below(4) as u32);
        let builder = builder.injection(injection).worker_threads(2).drain(Duration::from_secs(5));
        let runtime = builder.start().await.map_err(|e| e.to_string())?;
        self.tally.runtime();
        for _ in 0..4 {
            let programs: Vec<Program> = (0..8).map(|_| self.random(dice)).collect();
            let runs = programs.iter().enumerate().map(|(i, program)| {
                let session = runtime.session("lossy").seed(i as u64).open();
                let twist = if dice.one_in(5) { Twist::Cancel } else { Twist::None };
                async move {
                    match timeout(HANG, run(&session, program, twist)).await {
                        Ok(Err(said)) if said.contains("lost") => Ok(true),
                        Ok(Err(said)) => Err(format!("{said}\n{program:?}")),
                        Ok(Ok(())) => Ok(false),
                        Err(_) => Err(format!("hangs\n{program:?}")),
                    }
                }
            });
            for ended in futures::future::join_all(runs).await {
                if ended.map_err(|said| format!("{what}: {said}"))? {
                    self.tally.loss();
                }
                self.tally.finished(Kind::Program, None);
            }
        }
        match timeout(HANG, runtime.shutdown()).await {
            Ok(ended) => ended.map_err(|e| format!("{what}: {e}")),
            Err(_) => Err(format!("{what}: the shutdown hangs")),
        }
    }
}

/// Computes in f64, for call options on these prices, the sum of the values and the sum of the deltas.
fn worth(prices: &[f32], terms: Terms) -> [f64; 2] {
    let [strike, rate, volatility, years] = [terms.strike, terms.rate, terms.volatility, terms.years].map(f64::from);
    let cumulative = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let spread = volatility * years.sqrt();
    let of = |price: f64| {
        let d1 = ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
        let n1 = cumulative(d1);
        [price * n1 - strike * (-rate * years).exp() * cumulative(d1 - spread), n1]
    };
    prices.iter().map(|&price| of(price.into())).fold([0.0; 2], |sum, own| [sum[0] + own[0], sum[1] + own[1]])
}
