import mlx.core as mx

got = mx.cummax(mx.array([1, complex("nan"), 3], dtype=mx.complex64))
assert mx.isnan(got).tolist() == [False, True, True], got
