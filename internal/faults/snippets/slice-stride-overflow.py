import mlx.core as mx

got = mx.arange(10)[0 : 10 : 2**31 - 1]
assert got.tolist() == [0], got
