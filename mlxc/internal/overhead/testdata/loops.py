"""The loops of loops.c on MLX's Python package, timed one at a time on request.

Prints MLX's version. For each line on stdin with a loop's name and a number of turns, it
runs the loop and prints the nanoseconds.
"""

import sys
import time

import mlx.core as mx

mx.set_default_device(mx.cpu)
a, b = mx.ones(8), mx.ones(8)
x, w = mx.ones((8, 64)), mx.ones(64)
mx.eval(a, b, x, w)


def add(n):
    for _ in range(n):
        a + b


def chain(n):
    for _ in range(n):
        y = a
        for _ in range(1000):
            y = y + a
        mx.eval(y)


value_and_grad = mx.value_and_grad(lambda x, w: mx.fast.rms_norm(x, w, 1e-5).sum(), argnums=(0, 1))


def build(n):
    for _ in range(n):
        value_and_grad(x, w)


def step(n):
    for _ in range(n):
        mx.eval(value_and_grad(x, w))


loops = {"add": add, "chain": chain, "build": build, "step": step}
print(mx.__version__, flush=True)
for line in sys.stdin:
    name, n = line.split()
    start = time.perf_counter_ns()
    loops[name](int(n))
    print(time.perf_counter_ns() - start, flush=True)
