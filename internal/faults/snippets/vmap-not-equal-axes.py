import mlx.core as mx

row = mx.arange(4)
got = mx.vmap(lambda x: row != x)(mx.zeros((2, 3, 4)))
assert got.shape == (2, 3, 4), got.shape
