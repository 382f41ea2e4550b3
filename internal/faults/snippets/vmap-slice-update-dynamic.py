import mlx.core as mx

f = lambda x: mx.slice_update(x, mx.array([8.0, 9.0]), mx.array([1]), (0,))
got = mx.vmap(f)(mx.zeros((3, 4)))
assert got.tolist() == [[0, 8, 9, 0]] * 3, got
