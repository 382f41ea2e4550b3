import mlx.core as mx

one = mx.ones((1, 1))
f = lambda c, a, b: mx.addmm(c, a, b, alpha=2.0, beta=3.0)
_, (got,) = mx.jvp(f, [one, one, one], [one, one, one])
assert got.item() == 3 + 2 + 2, got
