import mlx.core as mx

f = lambda x: mx.fast.rope(x, 2, traditional=True, base=10000.0, scale=1.0, offset=0)
_, (got,) = mx.vjp(f, [mx.ones((1, 1, 2))], [mx.array([[[1.0, 2.0]]])])
assert got.tolist() == [[[1, 2]]], got
