import mlx.core as mx

nan = mx.array(complex("nan"))
f = mx.compile(lambda x: (x + nan) * x)
got = f(mx.array([1j]))
assert mx.isnan(got).all(), got
