"""NumPy's side of `cargo bench --bench figures`: the same work on the same machine, in the same run.

One line a workload: name, median milliseconds, check value. usage: numpy_peer.py REPEATS
"""
import statistics
import sys
import time

import numpy as np

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def measure(name, work):
    check = work()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    print(name, statistics.median(times), float(check), flush=True)


def chain(x):
    y0 = np.sin(x) * np.exp(-x / 10.0)
    y1 = y0 * np.cos(x / 4.0) + 0.25 * (y0 * y0)
    return np.tanh(y1) + 0.1 * y1


def normalise(generator):
    pictures = generator.random((2, 2160, 3840), dtype="f4")
    mean = pictures.mean((1, 2), keepdims=True)
    spread = np.sqrt(((pictures - mean) ** 2).mean((1, 2), keepdims=True) + 1e-6)
    out = np.maximum((pictures - mean) / spread * 1.0123 - 0.02, 0) ** 1.8
    error = out - pictures
    return (error * error).mean()


for dtype, name in (("f4", "chain_f32"), ("f8", "chain_f64")):
    x = np.linspace(0, 12.566, 5_000_000).astype(dtype)
    measure(name, lambda: chain(x).sum())
generator = np.random.default_rng(0)
measure("normalise_4k", lambda: normalise(generator))
