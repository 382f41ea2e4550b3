import gc

import mlx.core as mx


def run():
    c = mx.ones((1000, 1000)) + 0
    mx.eval(c)
    f = mx.compile(lambda x: mx.split(x + c, 2)[0] + 1)
    mx.eval(f(mx.zeros((1000, 1000))))


run()
gc.collect()
before = mx.get_active_memory()
for _ in range(5):
    run()
gc.collect()
kept = mx.get_active_memory() - before
assert kept < 2**20, f"{kept} bytes are kept"
