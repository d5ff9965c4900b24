"""The peers' side of `cargo bench --bench peers`: one library in this process.

usage: peers.py torch|compile|jax|cupy|numpy gpu|cpu

The process prints a line of JSON that names the library, and then reads lines `ROW SIZE` from its standard input. It
answers each with a line of JSON: the times of a few turns in milliseconds, and the number of the row (see `check`).

An array of Tidemill's is column-major. An array of shape (d0, d1) is therefore held here as one of shape (d1, d0), so
that both lie in memory in the same order: dimension 0 there is the last axis here.
"""

import datetime
import gc
import json
import math
import os
import sys
import time

NAME, PLACE = sys.argv[1], sys.argv[2]
GOLDEN = 0.6180339887498949
DRIFT, SCALE = (0.05 - 0.5 * 0.04) / 252.0, 0.2 * math.sqrt(1.0 / 252.0)

if NAME in ("torch", "compile"):
    import torch as xp

    DEVICE = "cuda"
    xp.cuda.init()
    xp.set_default_device(DEVICE)
    xp.backends.cuda.matmul.allow_tf32 = False
    sync, version = xp.cuda.synchronize, f"PyTorch {xp.__version__}"
    f32, f64, i32 = xp.float32, xp.float64, xp.int32
    cast = lambda x, to: x.to(to)
    rand = lambda shape: xp.rand(shape)
    randn = lambda shape: xp.randn(shape)
elif NAME == "jax":
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if PLACE == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as xp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    if PLACE == "gpu":
        jax.devices("gpu")
    version = f"JAX {jax.__version__}"
    sync = lambda: None
    f32, f64, i32 = xp.float32, xp.float64, xp.int32
    cast = lambda x, to: x.astype(to)
else:
    if NAME == "cupy":
        import cupy as xp

        sync, version = xp.cuda.Device().synchronize, f"CuPy {xp.__version__}"
        generator = xp.random.default_rng(1)
    else:
        import numpy as xp

        sync, version = (lambda: None), f"NumPy {xp.__version__}"
        generator = xp.random.default_rng(1)
    f32, f64, i32 = xp.float32, xp.float64, xp.int32
    cast = lambda x, to: x.astype(to)
    rand = lambda shape: generator.random(shape, dtype=f32)
    randn = lambda shape: generator.standard_normal(shape, dtype=f32)

IS_TORCH = NAME in ("torch", "compile")


def even(shape, dtype=f32):
    """Numbers spread evenly over [-0.5, 0.5), the same as Tidemill's, in the order of memory."""
    x = xp.arange(1, math.prod(shape) + 1, dtype=f64) * GOLDEN
    return cast((x - xp.floor(x) - 0.5).reshape(shape[::-1]), dtype)


def places(count, of):
    at = xp.floor((even((count,), f64) + 0.5) * of)
    return cast(xp.clip(at, 0, of - 1), xp.int64 if IS_TORCH else i32)


def check(outputs):
    """The outputs, each weighted by a number that grows from 0 to 1 along the array, and added."""
    total = 0.0
    for x in outputs:
        x = cast(xp.asarray(x) if not IS_TORCH else x, f64).reshape(-1)
        total += float((x * xp.linspace(0, 1, x.shape[0], dtype=f64)).sum()) if x.shape[0] > 1 else float(x.sum())
    return total


# The programs. Each takes the inputs of its row and gives a tuple of outputs.


def chain(x):
    y0 = xp.sin(x) * xp.exp(-x / 10.0)
    y1 = y0 * xp.cos(x / 4.0) + 0.25 * (y0 * y0)
    return (xp.tanh(y1) + 0.1 * y1,)


def image(x):
    centred = x - x.mean(axis=(1, 2), keepdims=True)
    deviation = xp.sqrt((centred * centred).mean(axis=(1, 2), keepdims=True) + 1e-6)
    out = xp.clip(centred / deviation * 1.0123 - 0.02, 0, None) ** 1.8
    error = out - x
    return ((error * error).mean(),)


def brownian_step(price, z):
    return price * xp.exp(DRIFT + SCALE * z)


def volatility_step(x, v, z1, z2):
    v = xp.clip(v + 0.01 * (0.04 - v) + 0.02 * xp.sqrt(v) * z2, 1e-4, None)
    return x + 0.0001 + xp.sqrt(v / 252.0) * z1, v


def mandelbrot_step(zr, zi, count, real, imaginary):
    r2, i2 = zr * zr, zi * zi
    inside = r2 + i2 <= 4
    new_zi = xp.where(inside, 2 * zr * zi + imaginary, zi)
    return xp.where(inside, r2 - i2 + real, zr), new_zi, count + cast(inside, f32)


def mandelbrot_start(n):
    real = xp.linspace(-2, 0.5, n, dtype=f32)[:, None]
    imaginary = xp.linspace(-1.25, 1.25, n, dtype=f32)[None, :]
    return real, imaginary, [xp.zeros((n, n), dtype=f32) for _ in range(3)]


def stencil_step(u):
    return 0.25 * (xp.roll(u, 1, 1) + xp.roll(u, -1, 1) + xp.roll(u, 1, 0) + xp.roll(u, -1, 0))


def blur(x):
    n = x.shape[0]
    total = None
    for i, j in ((k % 3, k // 3) for k in range(9)):
        part = x[j : n - 2 + j, i : n - 2 + i]
        total = part if total is None else total + part
    return (total / 9.0,)


def fdtd_start(n):
    sigma = xp.ones((n, n), dtype=f64)
    edge = list(range(8)) + list(range(n - 8, n))
    if NAME == "jax":
        sigma = sigma.at[xp.array(edge), :].set(0.97).at[:, xp.array(edge)].set(0.97)
    else:
        sigma[edge, :] = 0.97
        sigma[:, edge] = 0.97
    return xp.zeros((n, n), dtype=f64), xp.zeros((n - 1, n), dtype=f64), xp.zeros((n, n - 1), dtype=f64), sigma


def fdtd_step(e, hx, hy, sigma, step):
    """One step of the wave. It updates in place if the library can do that."""
    n, at = e.shape[0], e.shape[0] // 2 - 1
    if NAME == "jax":
        hx = hx - 0.5 * (e[1:, :] - e[:-1, :])
        hy = hy + 0.5 * (e[:, 1:] - e[:, :-1])
        curl = hy[1:-1, 1:] - hy[1:-1, :-1] - hx[1:, 1:-1] + hx[:-1, 1:-1]
        e = e.at[1:-1, 1:-1].add(0.5 * curl) * sigma
        return e.at[at, at].add(xp.exp(-(((step - 30.0) / 10.0) ** 2))), hx, hy
    hx -= 0.5 * (e[1:, :] - e[:-1, :])
    hy += 0.5 * (e[:, 1:] - e[:, :-1])
    e[1:-1, 1:-1] += 0.5 * (hy[1:-1, 1:] - hy[1:-1, :-1] - hx[1:, 1:-1] + hx[:-1, 1:-1])
    e *= sigma
    e[at, at] += math.exp(-(((step - 30.0) / 10.0) ** 2))
    return e, hx, hy


def pairs(x, y):
    x, y = x.reshape(-1, 1), y.reshape(-1, 1) * 0.7
    return ((1.0 / xp.sqrt((x - x.T) ** 2 + (y - y.T) ** 2 + 1e-4)).sum(1).mean(),)


def regression_step(w, x, target):
    error = 1.0 / (1.0 + xp.exp(-(w @ x))) - target
    return w - 0.5 * ((error @ x.T) / x.shape[1])


def softmax(x, axis):
    if IS_TORCH:
        return (xp.softmax(x, axis),)
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    return (e / e.sum(axis=axis, keepdims=True),)


def variance(x, axis):
    return (x.var(axis) if IS_TORCH else x.var(axis=axis, ddof=1),)


def sort(x):
    if IS_TORCH:
        return tuple(xp.sort(x, -1))
    places = xp.argsort(x, axis=-1, **({"stable": True} if NAME in ("numpy", "jax") else {}))
    return xp.take_along_axis(x, places, -1), places


def written(x):
    return (x + 0.5,)


def moved(x):
    """A copy of a view, with the elements in the view's order. (In NumPy and CuPy, the result of an op on a transposed
    array has the order of that array's memory, so an op would move nothing.)"""
    if IS_TORCH:
        return (x.contiguous(),)
    return (x + 0.0,) if NAME == "jax" else (xp.ascontiguousarray(x),)


def unfusable(steps):
    m = xp.eye(32, dtype=f32)
    y = xp.ones((32, 32), dtype=f32)
    for _ in range(steps):
        y = (m @ xp.cumsum(y, -1)) * 0.03
    return (y.sum(),)


def tiny(steps):
    y = xp.zeros(1000, dtype=f32)
    for _ in range(steps):
        y = y + 1.0
    return (y.mean(),)


def looped(step, state, turns):
    """`step(state, turn)` for turns 1 to `turns`."""
    for turn in range(1, turns + 1):
        state = step(state, turn)
    return state


if NAME == "jax":

    def looped(step, state, turns):
        return jax.lax.fori_loop(1, turns + 1, lambda turn, state: step(state, turn), state)


def brownian(n, key=None):
    def step(state, _):
        if NAME != "jax":
            return (brownian_step(state[0], randn((n,))),)
        key, use = jax.random.split(state[1])
        return brownian_step(state[0], jax.random.normal(use, (n,), dtype=f32)), key

    price = xp.full((n,), 100.0, dtype=f32)
    price = looped(step, (price, key) if NAME == "jax" else (price,), 256)[0]
    return (xp.clip(price - 100.0, 0, None).mean(),)


def volatility(n, key=None):
    def step(state, _):
        if NAME != "jax":
            return volatility_step(*state, randn((n,)), randn((n,)))
        x, v, key = state
        key, one, two = jax.random.split(key, 3)
        normal = lambda key: jax.random.normal(key, (n,), dtype=f32)
        return (*volatility_step(x, v, normal(one), normal(two)), key)

    state = (xp.zeros((n,), dtype=f32), xp.full((n,), 0.04, dtype=f32))
    return (xp.exp(looped(step, (*state, key) if NAME == "jax" else state, 256)[0]).mean(),)


def mandelbrot(n):
    real, imaginary, state = mandelbrot_start(n)
    return (looped(lambda s, _: mandelbrot_step(*s, real, imaginary), tuple(state), 100)[2].mean(),)


def stencil(u):
    u = looped(lambda u, _: stencil_step(u), u, 100)
    return ((u * u).mean() * 1e6,)


def fdtd(n):
    e, hx, hy, sigma = fdtd_start(n)
    e, _, _ = looped(lambda s, turn: fdtd_step(*s, sigma, turn), (e, hx, hy), 200)
    return ((e * e).sum(),)


def regression(x):
    target = cast(x[0:1, :] > 0.1, f32)
    w = looped(lambda w, _: regression_step(w, x, target), xp.zeros((1, 256), dtype=f32), 20)
    return ((w * w).sum(),)


def gradients_of(loss, arrays):
    """The gradients of a loss by each of these arrays."""
    if NAME == "jax":
        return jax.grad(lambda *a: loss(*a), tuple(range(len(arrays))))(*arrays)
    if not IS_TORCH:
        raise KeyError("a library without gradients")
    arrays = [x.detach().requires_grad_() for x in arrays]
    return xp.autograd.grad(loss(*arrays), arrays)


def chain_gradient(x):
    return tuple(gradients_of(lambda x: chain(x)[0].sum(), [x]))


def greeks(n, key=None):
    def loss(start, volatility):
        drift, scale = (0.05 - 0.5 * volatility * volatility) / 252.0, volatility * math.sqrt(1.0 / 252.0)

        def step(state, _):
            if NAME != "jax":
                return (state[0] * xp.exp(drift + scale * randn((n,))),)
            key, use = jax.random.split(state[1])
            return state[0] * xp.exp(drift + scale * jax.random.normal(use, (n,), dtype=f32)), key

        price = start * xp.ones((n,), dtype=f32)
        if NAME == "jax":
            body = jax.checkpoint(lambda state, k: (step(state, k), None))
            price = jax.lax.scan(body, (price, key), None, length=256)[0][0]
        else:
            price = looped(step, (price,), 256)[0]
        return xp.clip(price - 100.0, 0, None).mean()

    numbers = [xp.full((), 100.0, dtype=f32), xp.full((), 0.2, dtype=f32)]
    delta, vega = gradients_of(loss, numbers)
    return (delta + vega / 100.0,)


def network(images, labels, w1, b1, w2, b2):
    def loss(w1, b1, w2, b2):
        scores = xp.clip(images @ w1 + b1, 0, None) @ w2 + b2
        if IS_TORCH:
            return xp.nn.functional.cross_entropy(scores, labels)
        chosen = xp.take_along_axis(scores, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(scores, axis=1) - chosen).mean()

    return tuple(gradients_of(loss, [w1, b1, w2, b2]))


def regression_gradient(x, w):
    target = cast(x[0:1, :] > 0.1, f32)

    def loss(w):
        z = w @ x
        if IS_TORCH:
            return xp.nn.functional.binary_cross_entropy_with_logits(z, target)
        return (xp.maximum(z, 0) - z * target + xp.log1p(xp.exp(-xp.abs(z)))).mean()

    return tuple(gradients_of(loss, [w]))


def to_device(host):
    if IS_TORCH:
        return (host.to(DEVICE) + 0.5,)
    return (xp.asarray(host) + 0.5,)


def to_host(x):
    if IS_TORCH:
        return x.cpu()
    if NAME == "cupy":
        return x.get()
    import numpy

    return numpy.array(x, copy=True)


def own_memory(n):
    import numpy

    x = (numpy.arange(1, n + 1, dtype="f8") * GOLDEN) % 1.0 - 0.5
    host = x.astype("f4")
    return xp.from_numpy(host) if IS_TORCH else host


line = lambda n: (even((n, 1)).reshape(-1),)
square = lambda n: (even((n, n)),)
whole = lambda n: (n,)

# Row: how its inputs are made from the size (not timed), and its program. `n` inputs are static for JAX.
ROWS = {
    "chain": (line, chain),
    "chain_f64": (lambda n: (even((n, 1), f64),), chain),
    "add": (line, written),
    "sum_all": (square, lambda x: (x.sum(),)),
    "sum_fast": (square, lambda x: ((x + 0.5).sum(axis=-1),)),
    "sum_slow": (square, lambda x: ((x + 0.5).sum(axis=0),)),
    "var_fast": (square, lambda x: variance(x, -1)),
    "var_slow": (square, lambda x: variance(x, 0)),
    "argmax_slow": (square, lambda x: (x.argmax(axis=0),)),
    "softmax_fast": (square, lambda x: softmax(x, 1)),
    "softmax_slow": (square, lambda x: softmax(x, 0)),
    "transpose": (square, lambda x: moved(x.T)),
    "permute": (
        lambda n: (even((n, n // 64, 64)),),
        # (d0, d1, d2) by (2, 0, 1) is (d2, d0, d1): here (d1, d0, d2) of (d2, d1, d0).
        lambda x: moved(x.permute(1, 2, 0) if IS_TORCH else xp.transpose(x, (1, 2, 0))),
    ),
    "cumsum": (line, lambda x: (xp.cumsum(x + 0.5, -1),)),
    "cumsum_fast": (square, lambda x: (xp.cumsum(x + 0.5, -1),)),
    "cumsum_slow": (square, lambda x: (xp.cumsum(x + 0.5, 0),)),
    "sort": (line, sort),
    "sort_rows": (lambda n: (even((n, 1000)),), sort),
    "take": (lambda n: (even((10 * n,)), places(n, 10 * n)), lambda x, at: (x[at],)),
    "matmul": (lambda n: (even((n, n)), even((n, n))), lambda a, b: (b @ a,)),
    "matmul_f64": (lambda n: (even((n, n), f64), even((n, n), f64)), lambda a, b: (b @ a,)),
    "matvec": (lambda n: (even((n, n)), even((n,))), lambda a, v: (a.T @ v,)),
    "matvec_t": (lambda n: (even((n, n)), even((n,))), lambda a, v: (a @ v,)),
    "batched": (lambda n: (even((64, 64, n)),), lambda a: (a @ a,)),
    "pairs": (lambda n: (even((n,)), even((n,))), pairs),
    "stencil100": (square, stencil),
    "blur9": (square, blur),
    "logreg20": (lambda n: (even((n, 256)),), regression),
    "chain_grad": (line, chain_gradient),
    "net_grad": (
        lambda n: (even((784, n)), places(n, 10), even((512, 784)), even((512, 1)), even((10, 512)), even((10, 1))),
        network,
    ),
    "logreg_grad": (lambda n: (even((n, 256)), even((256, 1))), regression_gradient),
    "trip": (line, lambda x: ((x + 1.0)[0:1],)),
    "gather": (line, written),
    "upload": (lambda n: (own_memory(n),), to_device),
    # Programs whose size is known when they are compiled.
    "tiny1000": (whole, tiny),
    "unfusable": (whole, unfusable),
    "mandel100": (whole, mandelbrot),
    "fdtd200": (whole, fdtd),
    "gbm256": (whole, brownian),
    "gbm_grad": (whole, greeks),
    "vol256": (whole, volatility),
    "randn": (whole, lambda n, key=None: (jax.random.normal(key, (n,), dtype=f32) if key is not None else randn((n,)),)),
    "image4k": (
        whole,
        lambda n, key=None: image(
            jax.random.uniform(key, (n, 2160, 3840), dtype=f32) if key is not None else rand((n, 2160, 3840))
        ),
    ),
}
RANDOM = {"gbm256", "gbm_grad", "vol256", "randn", "image4k"}
SIZED = RANDOM | {"tiny1000", "unfusable", "mandel100", "fdtd200"}
WITH_A_NUMBER = SIZED - {"randn"} | {"pairs", "stencil100", "logreg20", "sum_all", "trip"}
# Rows that are measured op by op: a compiler of whole programs would compute them at compile time.
EAGER = {"tiny1000", "unfusable"}
COMPILED_BY_TORCH = {"chain", "chain_grad", "net_grad", "logreg_grad", "chain_f64", "add", "image4k", "softmax_fast", "softmax_slow", "blur9", "pairs", "transpose"}


def program_of(row):
    """The row's program, compiled if the library compiles."""
    run = ROWS[row][1]
    if NAME == "jax" and row in EAGER:
        raise KeyError(row)
    if NAME == "compile":
        if row not in COMPILED_BY_TORCH:
            raise KeyError(row)
        return xp.compile(run)
    if NAME != "jax" or row == "upload":
        return run
    if row in RANDOM:
        key = jax.random.key(1)
        compiled = jax.jit(run, static_argnums=0)
        return lambda n: compiled(n, key)
    return jax.jit(run, static_argnums=0) if row in SIZED else jax.jit(run)


def turn(row, program, inputs):
    outputs = program(*inputs)
    if row in WITH_A_NUMBER:
        float(outputs[0].reshape(()) if hasattr(outputs[0], "reshape") else outputs[0])
    elif row == "gather":
        to_host(outputs[0])
    elif NAME == "jax":
        jax.block_until_ready(outputs)
    else:
        sync()
    return outputs


KEPT = {}


def measure(row, size):
    """Times turns for a third of a second, at least three. Returns the times, and the check value of the row."""
    if (row, size) not in KEPT:
        KEPT.clear()
        gc.collect()
        if IS_TORCH:
            xp.cuda.empty_cache()
        inputs, program = ROWS[row][0](size), program_of(row)
        KEPT[row, size] = inputs, program, check(turn(row, program, inputs))
    inputs, program, number = KEPT[row, size]
    turn(row, program, inputs)
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < 0.3 and len(times) < 200):
        start = time.perf_counter()
        turn(row, program, inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return {"times_ms": times, "check": number}


def main():
    title = version + (" compiled" if NAME == "compile" else "")
    print(json.dumps({"title": title, "date": datetime.date.today().isoformat()}), flush=True)
    for words in sys.stdin:
        row, size = words.split()
        try:
            reply = measure(row, int(size))
        except KeyError:
            reply = {}
        except Exception as error:
            reply = {"error": repr(error)[:300]}
            KEPT.clear()
        print(json.dumps(reply), flush=True)


main()
