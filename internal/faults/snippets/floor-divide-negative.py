import mlx.core as mx

got = mx.array(-7) // mx.array(2)
assert got.item() == -4, got
