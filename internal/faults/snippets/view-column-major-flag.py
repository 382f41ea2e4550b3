import mlx.core as mx

a = mx.array([[1.0], [2.0], [3.0]]).view(mx.uint8)
b = mx.arange(12, dtype=mx.uint8).reshape(4, 3).T
got = a + b
want = mx.array(a.tolist(), dtype=mx.uint8) + b
assert mx.array_equal(got, want), got
