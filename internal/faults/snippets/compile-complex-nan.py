import mlx.core as mx

nan = mx.array(complex("nan"))
f = mx.compile(lambda x: (x + nan) * x)
try:
    got = f(mx.array([1j]))
    assert mx.isnan(got).all(), got
except RuntimeError as error:
    raise AssertionError("the kernel does not compile") from error
