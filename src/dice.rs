//! Random numbers of the tests, also of those in `tests/`: the same seed gives the same numbers everywhere.

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): small, and good enough for choices in tests.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub u64);

impl Dice {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// One of the first `n` numbers.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// SplitMix64's output function.
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Calls `run` with each seed, on all cores. `SEED` in the environment names a single seed; `SEEDS` sets the number of
/// seeds, and `FIRST` the first one. The first seed that panics is printed, and ends the test.
pub(crate) fn for_seeds(usual: u64, run: impl Fn(u64) + Sync) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FIRST").unwrap_or(0);
    let (first, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (first, first + number("SEEDS").unwrap_or(usual)),
    };
    let next = std::sync::atomic::AtomicU64::new(first);
    let work = || {
        loop {
            let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
            if let Err(panic) = done {
                eprintln!("it failed with SEED={seed}");
                next.store(end, std::sync::atomic::Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64).min(end - first);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}
