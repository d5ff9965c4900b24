"""The peer of benches/random.rs: the same numbers by NumPy's Generator (PCG64), on one thread."""

import time

import numpy as np

COUNT = 1 << 22
rng = np.random.default_rng(1)
DRAWS = [
    ("uniform f32", lambda: rng.random(COUNT, dtype=np.float32)),
    ("uniform f64", lambda: rng.random(COUNT)),
    ("normal f64", lambda: rng.standard_normal(COUNT)),
    ("exponential f32", lambda: rng.standard_exponential(COUNT, dtype=np.float32)),
    ("exponential f64", lambda: rng.standard_exponential(COUNT)),
    ("integers 0..1000", lambda: rng.integers(0, 1000, COUNT, dtype=np.int32)),
    ("bernoulli 0.3", lambda: rng.random(COUNT, dtype=np.float32) < 0.3),
    ("gamma 2.5 f32", lambda: rng.standard_gamma(2.5, COUNT, dtype=np.float32)),
    ("gamma 2.5 f64", lambda: rng.standard_gamma(2.5, COUNT)),
    ("beta 2, 3 f64", lambda: rng.beta(2.0, 3.0, COUNT)),
    ("poisson 4 f64", lambda: rng.poisson(4.0, COUNT)),
    ("poisson 100 f64", lambda: rng.poisson(100.0, COUNT)),
    ("binomial 40, 0.1 f64", lambda: rng.binomial(40, 0.1, COUNT)),
    ("binomial 1000, 0.4 f64", lambda: rng.binomial(1000, 0.4, COUNT)),
    ("permutation", lambda: rng.permutation(COUNT)),
]
for name, draw in DRAWS:
    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - begin)
    print(f"{name:24} {COUNT / best / 1e6:8.1f} million a second")
