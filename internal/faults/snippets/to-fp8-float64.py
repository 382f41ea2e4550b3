import mlx.core as mx

x = mx.array([1.0, 2.0, 3.0], dtype=mx.float64)
got = mx.from_fp8(mx.to_fp8(x), mx.float32)
assert got.tolist() == [1, 2, 3], got
