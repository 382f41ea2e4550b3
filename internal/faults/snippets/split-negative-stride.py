import mlx.core as mx

first, _ = mx.split(mx.arange(6)[::-1], 2)
mx.eval(first)
got = first + 1
assert got.tolist() == [6, 5, 4], got
