import mlx.core as mx

got = mx.tril(mx.ones((2, 2)), -(2**31))
assert got.tolist() == [[0, 0], [0, 0]], got
