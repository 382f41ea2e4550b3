import mlx.core as mx

f = lambda x: mx.expand_dims(x, (0, 2))
got = mx.vmap(f, in_axes=2)(mx.zeros((3, 4, 2)))
assert got.shape == (2, 1, 3, 1, 4), got.shape
